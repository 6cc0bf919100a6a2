//! Results as text.

use super::Found;
use std::fmt::Write as _;

/// A heading per query, a line per image found.
pub(super) fn render(names: &[String], found: &[Vec<Found>]) -> String {
    let mut text = String::new();
    for (name, hits) in names.iter().zip(found) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", visible(name));
        for Found { rank, score, path, pid, .. } in hits {
            let person = pid.map_or_else(String::new, |pid| format!("  person {pid}"));
            let _ = writeln!(text, "{rank:>4}  {score:.4}  {}{person}", visible(path));
        }
    }
    text
}

/// Without characters that would steer a terminal.
fn visible(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_and_its_images() {
        let hit = |rank, pid| Found { rank, id: 7, score: 0.5, path: "a\u{1b}/b.png".into(), pid };
        let found = [vec![hit(1, Some(3)), hit(10, None)]];
        assert_eq!(
            render(&["a man".to_owned()], &found),
            "a man\n   1  0.5000  a /b.png  person 3\n  10  0.5000  a /b.png\n"
        );
    }
}
