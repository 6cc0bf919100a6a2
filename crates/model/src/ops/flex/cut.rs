//! How rows are cut for threads and caches: by their number alone.

/// Rows of a block of a backward beside a small weight: two such blocks and the weight fit a
/// core's second-level cache.
pub const BLOCK: usize = 128;

/// Rows of a block beside a large weight, which is packed once a block.
const LARGE_BLOCK: usize = 256;

/// Rows below which a block is not worth a task of its own.
const SMALLEST: usize = 32;

/// A backward sums a parameter's gradient in at most so many parts, added in order at the end; and
/// blocks are cut so that they can be shared out evenly among a few threads.
pub const PARTS: usize = 8;

/// Rows of a part and rows of a block of it, so that parts and blocks are about even.
pub(super) fn even_rows(rows: usize) -> (usize, usize) {
    let part = rows.div_ceil(PARTS.min(rows.div_ceil(BLOCK)));
    (part, part.div_ceil(part.div_ceil(BLOCK)))
}

/// Rows of a block, so that there are even blocks for each of up to [`PARTS`] threads.
pub fn block_rows(rows: usize) -> usize {
    let blocks = rows.div_ceil(LARGE_BLOCK).next_multiple_of(PARTS);
    rows.div_ceil(blocks).max(SMALLEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_blocks_are_even() {
        assert_eq!(even_rows(3136), (392, 98));
        assert_eq!(even_rows(200), (100, 100));
        assert_eq!(even_rows(5), (5, 5));
        assert_eq!(block_rows(3136), 196); // 16 blocks
        assert_eq!(block_rows(1544), 193); // 8 blocks
        assert_eq!(block_rows(5), 32);
    }
}
