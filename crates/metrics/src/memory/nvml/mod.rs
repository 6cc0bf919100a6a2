//! Peak device memory through NVIDIA's management library, which is loaded at run time: without a
//! driver there is no reading, and nothing to link.
//!
//! The figure wanted is the memory of this process. The driver reports it by process id as the host
//! sees it, so inside a container with its own process ids, and where the driver does not account
//! by process, the device's whole use less what was in use at the start stands in for it;
//! [`DevicePeak::source`] says which it is.

mod reader;
mod sampler;

pub use reader::{DeviceId, DeviceInfo, describe};
pub use sampler::{DevicePeak, Sampler, Source};

/// Starts to sample the memory of `device` every 20 ms, or returns `None` where there is no driver
/// or no such device.
///
/// Call it before the first use of the device: what is in use now is the baseline.
pub fn watch(device: &DeviceId) -> Option<Sampler> {
    let reader = reader::Reader::open(device)?;
    Some(Sampler::start(move || reader.read()))
}
