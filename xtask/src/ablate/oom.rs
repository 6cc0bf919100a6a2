//! Whether a training ended because the machine ran out of memory: killed by the system, it could
//! not say so itself.

use std::fs;
use std::process::ExitStatus;

/// What Rust says before it aborts on an allocation that failed.
const FAILED_ALLOCATION: &str = "memory allocation of";

/// The kernel's count of processes it killed for want of memory, at the start of a training.
pub(crate) struct Watch {
    kills_before: Option<u64>,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self { kills_before: num_kills() }
    }

    /// Whether the process ran out of memory, by how it ended and what it said.
    pub(crate) fn is_oom(&self, status: ExitStatus, output: &str) -> bool {
        let killed_by_system = num_kills() > self.kills_before;
        match signal(status) {
            Some(libc_signal::KILL) => killed_by_system,
            Some(libc_signal::ABRT) => output.contains(FAILED_ALLOCATION),
            _ => false,
        }
    }
}

/// Signal numbers, the same on every Unix.
mod libc_signal {
    pub(super) const ABRT: i32 = 6;
    pub(super) const KILL: i32 = 9;
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// Linux counts them; elsewhere a kill by the system looks like any other.
fn num_kills() -> Option<u64> {
    oom_kills(&fs::read_to_string("/proc/vmstat").ok()?)
}

fn oom_kills(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn the_kernels_count_is_found() {
        assert_eq!(oom_kills("nr_dirty 3\noom_kill 12\noom_kill_x 1\n"), Some(12));
        assert_eq!(oom_kills("nr_dirty 3\n"), None);
    }

    #[test]
    fn only_want_of_memory_is_out_of_memory() {
        let [killed, aborted, failed] = [9, 6, 1 << 8].map(ExitStatus::from_raw);
        let before = |kills: u64| Watch { kills_before: Some(kills) };
        let allocation = "memory allocation of 4096 bytes failed\n";
        assert!(!before(u64::MAX).is_oom(killed, allocation)); // somebody's kill -9
        assert!(before(0).is_oom(aborted, allocation));
        assert!(!before(0).is_oom(aborted, "assertion failed"));
        assert!(!before(0).is_oom(failed, allocation));
        // A count that has grown since, where there is one.
        assert_eq!(Watch { kills_before: None }.is_oom(killed, ""), num_kills().is_some());
    }
}
