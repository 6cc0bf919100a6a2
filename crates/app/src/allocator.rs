//! The process's allocator: it counts every byte, so that peaks are exact, and keeps what is freed.

use tbps_metrics::memory::alloc::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Makes glibc keep freed memory instead of returning it to the system.
///
/// A training step frees and allocates the same buffers again and again, and by default each of
/// them would be mapped and zeroed by the kernel anew: a fifth of a small model's CPU time.
/// Call it before any thread is started.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "mallopt is a C function; it only sets numbers of the allocator")]
pub(crate) fn keep_freed_memory() {
    /// The largest that glibc takes: half of an arena's heap.
    const MMAP_THRESHOLD: i32 = 32 << 20;
    const TOP_PAD: i32 = 64 << 20;
    for (parameter, value) in [
        (libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD),
        (libc::M_TRIM_THRESHOLD, i32::MAX),
        (libc::M_TOP_PAD, TOP_PAD),
        (libc::M_ARENA_MAX, 1),
    ] {
        // SAFETY: no other thread runs yet, and mallopt has no other precondition. A value that it
        // refuses leaves the default, which is slower and nothing else.
        unsafe { libc::mallopt(parameter, value) };
    }
}

/// Other systems' allocators are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn keep_freed_memory() {}
