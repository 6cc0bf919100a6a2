//! The index file: written whole or not at all, mapped into memory.

use super::layout::{HEADER_BYTES, Header, MAGIC, RECORD_BYTES, Record, Unreadable, VERSION};
use super::{Identity, Precision, Source};
use crate::failure::Failure;
use anyhow::{Context, Result, bail, ensure};
use memmap2::Mmap;
use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tbps_metrics::retrieval::Rows;

/// The features of a gallery and where each is from.
pub(crate) struct Index {
    map: Mmap,
    header: Header,
    path: PathBuf,
}

impl Index {
    /// Opens an index; nothing when there is no such file. Its content is not read: see
    /// [`Index::verify`].
    ///
    /// # Errors
    /// A usage failure when the file is something else, which nobody wants replaced; a damaged
    /// header or a length that is not the header's.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>> {
        let shown = path.display();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
        };
        #[expect(unsafe_code, reason = "a file of that name is only ever renamed to")]
        // SAFETY: the bytes do not change while they are mapped: an index is written under another
        // name and replaced as a whole, and a replaced file lives until it is unmapped.
        let map = unsafe { Mmap::map(&file) }.with_context(|| format!("cannot map {shown}"))?;
        if !map.starts_with(MAGIC) {
            return Err(Failure::usage(format!(
                "{shown} is no index of images: name another file with --index"
            )));
        }
        let parsed = || -> Result<Header> {
            let header = map.get(..HEADER_BYTES).context("it ends within its header")?;
            let header: Header = serde_json::from_slice(header).context("its header")?;
            ensure!(header.version == VERSION, "it has version {}", header.version);
            let expected = header.num_bytes().context("its header has absurd numbers")?;
            ensure!(map.len() == expected, "it has {} bytes, not {expected}", map.len());
            Ok(header)
        };
        let header = parsed().with_context(|| damaged(path))?;
        // The casts of `rows` need it; every processor that burn runs on is.
        ensure!(cfg!(target_endian = "little"), "an index needs a little-endian processor");
        Ok(Some(Self { map, header, path: path.to_path_buf() }))
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.header.identity
    }

    /// The folder of its gallery.
    pub(crate) fn root(&self) -> &str {
        &self.header.root
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Number of images.
    pub(crate) fn len(&self) -> usize {
        self.header.num_images
    }

    pub(crate) fn dim(&self) -> usize {
        self.header.identity.embed_dim
    }

    /// The features, `[len, dim]`.
    pub(crate) fn rows(&self) -> Rows<'_> {
        let bytes = self.header.features().map_or(&[][..], |place| &self.map[place]);
        match self.header.identity.precision {
            Precision::F32 => Rows::F32(bytemuck::cast_slice(bytes)),
            Precision::F16 => Rows::F16(bytemuck::cast_slice(bytes)),
        }
    }

    /// The feature of an image, `[dim]`, if there is such an image.
    pub(crate) fn row(&self, image: usize) -> Option<Vec<f32>> {
        let place =
            image.checked_mul(self.dim())?..image.checked_add(1)?.checked_mul(self.dim())?;
        Some(match self.rows() {
            Rows::F32(values) => values.get(place)?.to_vec(),
            Rows::F16(values) => values.get(place)?.iter().map(|x| x.to_f32()).collect(),
        })
    }

    /// The stored bytes of a feature.
    pub(super) fn row_bytes(&self, image: usize) -> &[u8] {
        let size = self.header.row_bytes();
        let start = HEADER_BYTES + image * size;
        &self.map[start..start + size]
    }

    /// The file of an image, and the state that it was in.
    ///
    /// # Errors
    /// When the record is damaged.
    pub(crate) fn source(&self, image: usize) -> Result<Source> {
        Ok(self.file(image)?.source)
    }

    /// Images first, then what could not be read.
    fn file(&self, index: usize) -> Result<Unreadable> {
        let record = || -> Option<Unreadable> {
            let records = &self.map[self.header.records()?];
            let text = &self.map[self.header.records()?.end..];
            let record = records.as_chunks::<RECORD_BYTES>().0.get(index)?;
            let record = Record::of_bytes(record);
            let start = usize::try_from(record.text_start).ok()?;
            let middle = start.checked_add(record.path_len as usize)?;
            let end = middle.checked_add(record.reason_len as usize)?;
            let path = std::str::from_utf8(text.get(start..middle)?).ok()?.to_owned();
            let reason = std::str::from_utf8(text.get(middle..end)?).ok()?.to_owned();
            let (modified_ns, num_bytes) = (record.modified_ns, record.num_bytes);
            Some(Unreadable { source: Source { path, modified_ns, num_bytes }, reason })
        };
        record().with_context(|| damaged(&self.path))
    }

    /// What could not be read, with the reasons.
    pub(crate) fn unreadable(&self) -> Result<Vec<Unreadable>> {
        (0..self.header.num_unreadable).map(|n| self.file(self.len() + n)).collect()
    }

    /// Reads all of the file and compares its checksum.
    ///
    /// # Errors
    /// When it is damaged.
    pub(crate) fn verify(&self) -> Result<()> {
        if crc32fast::hash(&self.map[HEADER_BYTES..]) != self.header.crc32 {
            bail!("{}: another checksum", damaged(&self.path));
        }
        Ok(())
    }
}

fn damaged(path: &Path) -> String {
    format!("{} is damaged: make it anew with --reindex", path.display())
}

/// Whether there is a file that is an index, whole or not, so that it may be replaced.
///
/// # Errors
/// A usage failure when the file is something else.
pub(super) fn require_replaceable(path: &Path) -> Result<()> {
    let mut start = Vec::new();
    if let Ok(file) = File::open(path) {
        file.take(MAGIC.len() as u64).read_to_end(&mut start)?;
    }
    if start.is_empty() || start == MAGIC {
        return Ok(());
    }
    let shown = path.display();
    Err(Failure::usage(format!("{shown} is no index of images: name another file with --index")))
}

/// Writes an index to `path`: `images` with their stored features, then what is unreadable.
pub(super) fn write<'a>(
    path: &Path,
    mut header: Header,
    images: &[(Source, Cow<'a, [u8]>)],
    unreadable: &[Unreadable],
) -> Result<()> {
    let partial = path.with_added_extension("partial");
    let mut attempt = || -> Result<()> {
        let mut out = Hashed::new(BufWriter::new(File::create(&partial)?));
        out.file.write_all(&[b' '; HEADER_BYTES])?;
        for (_, row) in images {
            out.put(row)?;
        }
        let mut text = Vec::new();
        let readable = images.iter().map(|(source, _)| (source, ""));
        let others = unreadable.iter().map(|file| (&file.source, file.reason.as_str()));
        for (source, reason) in readable.chain(others) {
            let record = Record {
                modified_ns: source.modified_ns,
                num_bytes: source.num_bytes,
                text_start: text.len() as u64,
                path_len: u32::try_from(source.path.len())?,
                reason_len: u32::try_from(reason.len())?,
            };
            out.put(&record.to_bytes())?;
            text.extend_from_slice(source.path.as_bytes());
            text.extend_from_slice(reason.as_bytes());
        }
        out.put(&text)?;
        (header.num_images, header.num_unreadable) = (images.len(), unreadable.len());
        (header.text_bytes, header.crc32) = (text.len(), out.crc.finalize());
        let mut page = serde_json::to_vec(&header)?;
        ensure!(page.len() < HEADER_BYTES, "the gallery's path is too long");
        page.resize(HEADER_BYTES - 1, b' ');
        page.push(b'\n');
        out.file.seek(SeekFrom::Start(0))?;
        out.file.write_all(&page)?;
        out.file.into_inner()?.sync_all()?;
        fs::rename(&partial, path)?;
        Ok(())
    };
    let written = attempt();
    if written.is_err() {
        // The error that stopped the work is the one to report.
        drop(fs::remove_file(&partial));
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// A file whose content is summed up as it is written.
struct Hashed {
    file: BufWriter<File>,
    crc: crc32fast::Hasher,
}

impl Hashed {
    fn new(file: BufWriter<File>) -> Self {
        Self { file, crc: crc32fast::Hasher::new() }
    }

    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.crc.update(bytes);
        self.file.write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Two gigabytes of zeros that take no room on the disk: opening reads the header alone.
    #[test]
    fn a_million_images_are_open_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.index");
        let identity = Identity {
            weights_sha256: String::new(),
            image_size: "8x4".to_owned(),
            activation: "gelu".to_owned(),
            pos_embed: None,
            compute: "f32".to_owned(),
            embed_dim: 512,
            precision: Precision::F32,
        };
        let mut header = Header::new(identity, "root".to_owned());
        header.num_images = 1_000_000;
        let mut page = serde_json::to_vec(&header).unwrap();
        page.resize(HEADER_BYTES, b' ');
        fs::write(&path, page).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(header.num_bytes().unwrap() as u64).unwrap();
        let began = Instant::now();
        let index = Index::open(&path).unwrap().unwrap();
        let took = began.elapsed();
        assert_eq!((index.len(), index.row(999_999)), (1_000_000, Some(vec![0.0; 512])));
        assert!(took < Duration::from_millis(50), "{took:?}");
        println!("opened in {took:?}");
    }
}
