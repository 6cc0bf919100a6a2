//! Slips of the fingers: typing errors, stray spaces, capitals, forgotten full stops.

use super::Carelessness;
use crate::synth::stream::Stream;

/// Passes `text` through careless fingers.
pub(super) fn apply(mut text: String, carelessness: &Carelessness, stream: &mut Stream) -> String {
    if stream.chance(carelessness.typo) {
        text = mistype(&text, stream);
    }
    if stream.chance(carelessness.no_stop) {
        text.truncate(text.trim_end_matches('.').len());
    }
    if stream.chance(carelessness.odd_case) {
        text = if stream.chance(0.1) { text.to_uppercase() } else { text.to_lowercase() };
    }
    if stream.chance(carelessness.stray_space) {
        text = match stream.below(3) {
            0 => text + " ",
            1 => text.replacen(". ", ".  ", 1),
            _ => text.replacen(' ', "  ", 1),
        };
    }
    text
}

/// Drops, doubles or swaps a letter inside one of the longer words.
fn mistype(text: &str, stream: &mut Stream) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let long: Vec<usize> = (0..words.len()).filter(|&i| words[i].len() >= 5).collect();
    if long.is_empty() {
        return text.to_owned();
    }
    let word = stream.pick(&long);
    let mut letters: Vec<char> = words[word].chars().collect();
    let place = 1 + stream.below(letters.len() - 3);
    match stream.below(3) {
        0 => drop(letters.remove(place)),
        1 => letters.insert(place, letters[place]),
        _ => letters.swap(place, place + 1),
    }
    words[word] = letters.into_iter().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::stream::Purpose;

    #[test]
    fn a_typo_changes_one_word_by_at_most_one_letter_in_length() {
        let text = "A woman carries a yellow backpack.";
        for index in 0..200 {
            let typed = mistype(text, &mut Stream::new(1, Purpose::Caption, index));
            let pairs: Vec<_> = text.split(' ').zip(typed.split(' ')).collect();
            let changed: Vec<_> = pairs.iter().filter(|(a, b)| a != b).collect();
            assert!(changed.len() <= 1, "{typed}");
            assert!(changed.iter().all(|(a, b)| a.len().abs_diff(b.len()) <= 1), "{typed}");
        }
    }
}
