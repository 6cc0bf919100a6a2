//! A curve in one line of text.

/// The heights that one character can have.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The means of equal stretches of a series, never more than `2 * width` of them: when they are full,
/// each two become one.
pub(super) struct Spark {
    width: usize,
    /// Values in a stretch.
    len: usize,
    means: Vec<f64>,
    /// Sum and number of the values in the stretch under way.
    open: (f64, usize),
}

impl Spark {
    pub(super) fn new(width: usize) -> Self {
        Self { width, len: 1, means: Vec::new(), open: (0.0, 0) }
    }

    /// Adds a value; one that is not finite has no height and is left out.
    pub(super) fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.open = (self.open.0 + value, self.open.1 + 1);
        if self.open.1 < self.len {
            return;
        }
        self.means.push(self.open.0 / self.len as f64);
        self.open = (0.0, 0);
        if self.means.len() == 2 * self.width {
            self.means = self.means.as_chunks().0.iter().map(|[a, b]| (a + b) / 2.0).collect();
            self.len *= 2;
        }
    }

    /// The curve, from the lowest to the highest mean, at most `2 * width` characters wide.
    pub(super) fn line(&self) -> String {
        let low = self.means.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self.means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let range = (high - low).max(f64::MIN_POSITIVE);
        let height = |mean: &f64| HEIGHTS[((mean - low) / range * 7.0).round() as usize];
        self.means.iter().map(height).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_the_lowest_to_the_highest() {
        let mut spark = Spark::new(4);
        assert_eq!(spark.line(), "");
        spark.push(5.0);
        assert_eq!(spark.line(), "▁");
        for value in [f64::NAN, 12.0, 8.5, f64::INFINITY] {
            spark.push(value);
        }
        assert_eq!(spark.line(), "▁█▅");
    }

    #[test]
    fn a_long_series_keeps_its_shape_in_few_characters() {
        let mut spark = Spark::new(2);
        for value in 0..16 {
            spark.push(f64::from(value));
        }
        assert_eq!(spark.means, [3.5, 11.5]);
        assert_eq!(spark.line(), "▁█");
    }
}
