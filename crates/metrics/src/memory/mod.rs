//! How much memory a run needs: the heap to the byte, the process as the system sees it, the
//! device's pool, and the device as its driver sees it.
//!
//! | module | measures | exact |
//! | --- | --- | --- |
//! | [`alloc`] | bytes that Rust code holds on the heap | yes, every allocation |
//! | [`rss`] | resident memory of the process, C libraries and thread stacks included | yes, by the kernel |
//! | [`pool`] | the device allocator's bytes in use and reserved | at the moments sampled |
//! | [`nvml`] | device memory of the process, contexts and kernels included | sampled every 20 ms |
//!
//! All readings are bytes as `u64`; [`gib`] converts them for records.

pub mod alloc;
pub mod nvml;
pub mod pool;
pub mod rss;

/// Bytes in one GiB.
pub const GIB: u64 = 1 << 30;

/// Bytes as GiB (2^30 bytes).
pub fn gib(bytes: u64) -> f64 {
    bytes as f64 / GIB as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gib_is_two_to_the_thirty() {
        assert_eq!(gib(3 << 29), 1.5);
        assert_eq!(gib(0), 0.0);
    }
}
