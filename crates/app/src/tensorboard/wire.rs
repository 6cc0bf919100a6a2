//! The bytes of an event file: TensorFlow's record framing around protobuf messages
//! (`tensorboard/compat/proto/{event,summary}.proto`).

/// What TensorBoard expects a file to begin with.
const FILE_VERSION: &str = "brain.Event:2";
/// `SessionLog.START`: what an earlier file has from the event's step on is void.
const START: u64 = 1;

/// A serialised `Event`.
pub(super) struct Event(Vec<u8>);

impl Event {
    /// The first of a file.
    pub(super) fn version(wall_time: f64) -> Self {
        let mut event = Self::new(wall_time, 0);
        event.put_bytes(3, FILE_VERSION.as_bytes());
        event
    }

    /// Says that a run goes on with `step`.
    pub(super) fn restart(wall_time: f64, step: u64) -> Self {
        let mut log = Self(Vec::new());
        log.put_varint(1, START);
        let mut event = Self::new(wall_time, step);
        event.put_bytes(7, &log.0);
        event
    }

    /// Values of a step by name.
    pub(super) fn scalars(wall_time: f64, step: u64, scalars: &[(String, f32)]) -> Self {
        let mut summary = Self(Vec::new());
        for (tag, value) in scalars {
            let mut scalar = Self(Vec::new());
            scalar.put_bytes(1, tag.as_bytes());
            scalar.put_key(2, FIXED32);
            scalar.0.extend(value.to_le_bytes());
            summary.put_bytes(1, &scalar.0);
        }
        let mut event = Self::new(wall_time, step);
        event.put_bytes(5, &summary.0);
        event
    }

    fn new(wall_time: f64, step: u64) -> Self {
        let mut event = Self(Vec::new());
        event.put_key(1, FIXED64);
        event.0.extend(wall_time.to_le_bytes());
        if step > 0 {
            event.put_varint(2, step); // proto3 leaves zeros out
        }
        event
    }

    fn put_key(&mut self, field: u64, wire_type: u64) {
        self.put_raw_varint(field << 3 | wire_type);
    }

    fn put_varint(&mut self, field: u64, value: u64) {
        self.put_key(field, VARINT);
        self.put_raw_varint(value);
    }

    fn put_bytes(&mut self, field: u64, bytes: &[u8]) {
        self.put_key(field, LENGTH_DELIMITED);
        self.put_raw_varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// Seven bits a byte, the lowest first; the eighth says that more follow.
    fn put_raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// The event as a record of a file: length, checksum of the length, event, checksum.
    pub(super) fn framed(&self) -> Vec<u8> {
        let length = (self.0.len() as u64).to_le_bytes();
        [&length[..], &checksum(&length), &self.0, &checksum(&self.0)].concat()
    }
}

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FIXED32: u64 = 5;

/// CRC-32C, masked as TensorFlow does, so that the checksum of data with checksums in it is sound.
fn checksum(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by TensorBoard's own writer: see `fixtures/tensorboard/export.py`.
    const OFFICIAL: &[u8] =
        include_bytes!("../../tests/fixtures/tensorboard/events.out.tfevents.1");

    #[test]
    fn a_file_has_the_bytes_of_the_official_writer() {
        let scalar = |tag: &str, value| (tag.to_owned(), value);
        let events = [
            Event::version(1_700_000_000.25),
            Event::restart(1_700_000_000.5, 1),
            Event::scalars(
                1_700_000_001.0,
                1,
                &[scalar("train/loss", 3.25), scalar("train/skipped", 0.0)],
            ),
            Event::scalars(1_700_000_002.0, 300, &[scalar("val_t2i/r1", 12.345)]),
            Event::scalars(1_700_000_003.0, 1 << 40, &[scalar("train/loss", f32::NAN)]),
        ];
        let ours: Vec<u8> = events.iter().flat_map(Event::framed).collect();
        assert_eq!(ours, OFFICIAL);
    }
}
