//! Readings from the driver's management library.

use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use super::sampler::Reading;

/// Which device is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceId {
    /// Position in the driver's list, which is by PCI bus.
    Index(u32),
    /// Full identifier, such as `GPU-...` or `MIG-...`.
    Uuid(String),
}

impl DeviceId {
    /// The driver's name for the CUDA device `ordinal`, given the value of `CUDA_VISIBLE_DEVICES`.
    ///
    /// `None` when that variable hides the device. Where unlike GPUs share a machine, CUDA numbers
    /// the fastest first unless `CUDA_DEVICE_ORDER` is `PCI_BUS_ID`, which this takes for granted.
    pub fn of_cuda(ordinal: u32, visible_devices: Option<&str>) -> Option<Self> {
        let Some(list) = visible_devices else { return Some(Self::Index(ordinal)) };
        // CUDA stops at the first entry that names no device, usually -1.
        let mut visible = list.split(',').map(str::trim).map_while(Self::of_entry);
        visible.nth(ordinal as usize)
    }

    fn of_entry(entry: &str) -> Option<Self> {
        if entry.starts_with("GPU-") || entry.starts_with("MIG-") {
            Some(Self::Uuid(entry.to_owned()))
        } else {
            entry.parse().ok().map(Self::Index)
        }
    }

    fn find<'nvml>(&self, nvml: &'nvml Nvml) -> Result<Device<'nvml>, NvmlError> {
        match self {
            Self::Index(index) => nvml.device_by_index(*index),
            Self::Uuid(uuid) => nvml.device_by_uuid(uuid.as_str()),
        }
    }
}

/// What the driver says of a device, for a run's provenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Product name.
    pub name: String,
    /// Version of the driver.
    pub driver_version: String,
    /// Bytes of memory, those that the driver keeps for itself included.
    pub total_bytes: u64,
}

/// Name, driver and size of `device`; `None` where there is no driver or no such device.
pub fn describe(device: &DeviceId) -> Option<DeviceInfo> {
    let nvml = Nvml::init().ok()?;
    let device = device.find(&nvml).ok()?;
    Some(DeviceInfo {
        name: device.name().ok()?,
        driver_version: nvml.sys_driver_version().ok()?,
        total_bytes: device.memory_info().ok()?.total,
    })
}

/// Reads the memory of one device.
pub(super) struct Reader {
    nvml: Nvml,
    device: DeviceId,
    /// This process's id as the driver lists it; `None` where it cannot be known.
    process_id: Option<u32>,
}

impl Reader {
    /// Loads the library and looks the device up once.
    pub(super) fn open(device: &DeviceId) -> Option<Self> {
        let nvml = Nvml::init().ok()?;
        device.find(&nvml).ok()?;
        let process_id = sees_host_process_ids().then(std::process::id);
        Some(Self { nvml, device: device.clone(), process_id })
    }

    /// The use now, or `None` where the driver does not answer.
    pub(super) fn read(&self) -> Option<Reading> {
        let device = self.device.find(&self.nvml).ok()?;
        Some(Reading {
            device_bytes: device.memory_info().ok()?.used,
            process_bytes: self.process_id.and_then(|id| process_bytes(&device, id)),
        })
    }
}

/// The larger account, since a process that computes and draws is listed twice.
fn process_bytes(device: &Device<'_>, process_id: u32) -> Option<u64> {
    let computing = device.running_compute_processes().unwrap_or_default();
    let drawing = device.running_graphics_processes().unwrap_or_default();
    account(&computing, process_id).max(account(&drawing, process_id))
}

/// What is listed for the process, over all its entries.
fn account(listed: &[ProcessInfo], process_id: u32) -> Option<u64> {
    listed
        .iter()
        .filter(|process| process.pid == process_id)
        .filter_map(|process| match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        })
        .reduce(|a, b| a + b)
}

/// Whether process ids here are those of the host, as the driver lists them. A container with ids
/// of its own might otherwise be charged with a namesake's memory.
fn sees_host_process_ids() -> bool {
    // The inode of the host's process id namespace is fixed in the kernel (PROC_PID_INIT_INO).
    const HOST_NAMESPACE: &str = "pid:[4026531836]";
    if cfg!(target_os = "linux") {
        std::fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == HOST_NAMESPACE)
    } else {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuda_ordinals_follow_the_visible_devices() {
        let check = |ordinal, visible, expected: Option<DeviceId>| {
            assert_eq!(DeviceId::of_cuda(ordinal, visible), expected, "{ordinal} of {visible:?}");
        };
        check(1, None, Some(DeviceId::Index(1)));
        check(0, Some("3,1"), Some(DeviceId::Index(3)));
        check(1, Some("3, 1"), Some(DeviceId::Index(1)));
        check(2, Some("3,1"), None);
        check(0, Some(""), None);
        check(1, Some("0,-1,2"), None);
        check(0, Some("GPU-5f"), Some(DeviceId::Uuid("GPU-5f".into())));
        check(0, Some("MIG-7"), Some(DeviceId::Uuid("MIG-7".into())));
    }

    #[test]
    fn a_process_is_charged_with_its_own_entries_only() {
        let entry = |pid, used_gpu_memory| ProcessInfo {
            pid,
            used_gpu_memory,
            gpu_instance_id: None,
            compute_instance_id: None,
        };
        let listed = [
            entry(7, UsedGpuMemory::Used(5)),
            entry(8, UsedGpuMemory::Used(100)),
            entry(7, UsedGpuMemory::Used(6)),
            entry(9, UsedGpuMemory::Unavailable),
        ];
        assert_eq!(account(&listed, 7), Some(11));
        assert_eq!(account(&listed, 9), None);
        assert_eq!(account(&listed, 10), None);
    }

    /// True with and without a driver: nobody has this device.
    #[test]
    fn an_unknown_device_has_no_reading() {
        let nobody = DeviceId::Uuid("GPU-00000000-0000-0000-0000-000000000000".into());
        assert!(Reader::open(&nobody).is_none());
        assert_eq!(describe(&nobody), None);
    }
}
