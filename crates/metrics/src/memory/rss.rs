//! Resident memory of this process, as the Linux kernel counts it. Elsewhere there is no reading.

use std::fs;

/// Bytes resident now; `None` where there is no `/proc/self/status`.
pub fn current_bytes() -> Option<u64> {
    field_bytes(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// The most bytes ever resident in the process's life; `None` where there is no
/// `/proc/self/status`.
pub fn peak_bytes() -> Option<u64> {
    field_bytes(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// A size field of `proc_pid_status(5)`, which is always given in kB of 1,024 bytes.
fn field_bytes(status: &str, field: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_kib() {
        let status = "Name:\ttbps\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t4\n";
        assert_eq!(field_bytes(status, "VmHWM:"), Some(2 << 20));
        assert_eq!(field_bytes(status, "VmRSS:"), Some(1 << 20));
        assert_eq!(field_bytes(status, "VmSwap:"), None);
        assert_eq!(field_bytes(status, "Threads:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn touched_memory_is_resident() {
        let before = current_bytes().unwrap();
        let touched = std::hint::black_box(vec![1_u8; 64 << 20]);
        // Tests that run beside this one free memory too: 8 MiB of slack.
        assert!(current_bytes().unwrap() >= before + (56 << 20));
        drop(touched);
        assert!(peak_bytes().unwrap() >= before + (56 << 20));
    }
}
