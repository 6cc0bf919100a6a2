//! The counting allocator, installed in this test's own binary.
//!
//! One test function: the counters are the process's, and tests run side by side. The allocations
//! of the test harness itself are the slack.

use tbps_metrics::memory::alloc;

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

const MIB: u64 = 1 << 20;
const SLACK: u64 = MIB / 4;

#[track_caller]
fn assert_near(found: u64, expected: u64) {
    assert!(found.abs_diff(expected) < SLACK, "found {found}, expected {expected}");
}

#[test]
fn known_allocations_are_counted_to_their_size() {
    assert!(alloc::is_installed());
    let start = alloc::current_bytes();

    alloc::reset_peak();
    let mut block: Vec<u8> = Vec::with_capacity(8 << 20);
    assert_near(alloc::current_bytes(), start + 8 * MIB);
    block.reserve_exact(24 << 20); // realloc upwards
    assert_near(alloc::current_bytes(), start + 24 * MIB);
    block.shrink_to(2 << 20); // realloc downwards
    assert_near(alloc::current_bytes(), start + 2 * MIB);
    assert_near(alloc::peak_bytes(), start + 24 * MIB);

    alloc::reset_peak();
    assert_near(alloc::peak_bytes(), start + 2 * MIB);
    let zeroed = vec![0_u64; 1 << 20]; // alloc_zeroed
    assert_near(alloc::current_bytes(), start + 10 * MIB);
    drop(zeroed);
    drop(block);
    assert_near(alloc::current_bytes(), start);
    assert_near(alloc::peak_bytes(), start + 10 * MIB);

    alloc::reset_peak();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|n| drop(vec![1_u8; 64 + n])));
        }
    });
    assert_near(alloc::current_bytes(), start);
}
