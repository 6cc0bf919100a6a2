//! A global allocator that counts: bytes held now and their peak, exactly.
//!
//! The binary installs it; everything else reads the counters:
//!
//! ```
//! use tbps_metrics::memory::alloc;
//!
//! #[global_allocator]
//! static ALLOCATOR: alloc::Counting = alloc::Counting;
//!
//! fn main() {
//!     alloc::reset_peak();
//!     let before = alloc::current_bytes();
//!     drop(vec![1_u8; 1 << 20]);
//!     assert!(alloc::peak_bytes() >= before + (1 << 20));
//! }
//! ```
//!
//! Counted are the sizes asked for, not what the allocator rounds them up to, and only what goes
//! through Rust's allocator: memory maps, thread stacks and C libraries show in
//! [`rss`](super::rss) alone.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

// Relaxed suffices: each counter is right by itself, and no other memory is published through it.
static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator with two counters before it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counting;

/// Bytes held on the heap now; 0 when [`Counting`] is not installed.
pub fn current_bytes() -> u64 {
    CURRENT.load(Relaxed) as u64
}

/// The most bytes held at once since the start or the last [`reset_peak`]; 0 when [`Counting`] is
/// not installed.
pub fn peak_bytes() -> u64 {
    PEAK.load(Relaxed) as u64
}

/// Begins a new peak at what is held now.
///
/// Allocations that other threads make during this call may be missing from the new peak; call it
/// where they rest.
pub fn reset_peak() {
    PEAK.store(CURRENT.load(Relaxed), Relaxed);
}

/// Whether [`Counting`] is the global allocator: the runtime itself allocates before `main`, so a
/// counter at zero means that nobody counts.
pub fn is_installed() -> bool {
    PEAK.load(Relaxed) > 0
}

fn grow(bytes: usize) {
    let now = CURRENT.fetch_add(bytes, Relaxed) + bytes;
    // Most allocations set no new peak: a load is cheaper than a contended write.
    if now > PEAK.load(Relaxed) {
        PEAK.fetch_max(now, Relaxed);
    }
}

fn shrink(bytes: usize) {
    CURRENT.fetch_sub(bytes, Relaxed);
}

#[expect(unsafe_code, reason = "a global allocator is an unsafe trait by nature")]
// SAFETY: every call is passed on to `System` unchanged; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is `System`'s too.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            grow(layout.size());
        }
        block
    }

    // Without this, the default would touch every page of a large zeroed block.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            grow(layout.size());
        }
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: `block` came from `System` with `layout`, as the caller promises.
        let moved = unsafe { System.realloc(block, layout, new_size) };
        // A failed call leaves the old block as it was.
        if !moved.is_null() {
            if new_size >= layout.size() {
                grow(new_size - layout.size());
            } else {
                shrink(layout.size() - new_size);
            }
        }
        moved
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System` with `layout`, as the caller promises.
        unsafe { System.dealloc(block, layout) };
        shrink(layout.size());
    }
}
