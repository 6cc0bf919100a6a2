//! How rows are cut for threads and caches: by their number alone.

/// Rows of a block: two such blocks and a weight fit a core's second-level cache.
pub(super) const BLOCK: usize = 128;

/// A backward sums a parameter's gradient in at most so many parts, added in order at the end.
const PARTS: usize = 8;

/// Rows of a part and rows of a block of it, so that parts and blocks are about even.
pub(super) fn even_rows(rows: usize) -> (usize, usize) {
    let part = rows.div_ceil(PARTS.min(rows.div_ceil(BLOCK)));
    (part, part.div_ceil(part.div_ceil(BLOCK)))
}

#[cfg(test)]
mod tests {
    use super::even_rows;

    #[test]
    fn parts_and_blocks_are_even() {
        assert_eq!(even_rows(3136), (392, 98));
        assert_eq!(even_rows(200), (100, 100));
        assert_eq!(even_rows(5), (5, 5));
    }
}
