//! CLIP's byte-pair tokenizer: text to token ids, equal to OpenAI's and open_clip's.
//!
//! A text is cleaned ([`clean`]), cut into words, and each word into the longest pieces that the
//! merge table knows. Ids are: 256 bytes, 256 bytes that end a word, one id per merge, then the
//! start and the end of text. Id 0 is both the padding and the token of `!`, so that the end of a
//! text is found by its id, never by the first 0.

mod clean;
mod html;
mod repair;
mod vocab;

use rayon::prelude::*;
use regex::Regex;
use tokenizers::Model;
use tokenizers::models::bpe::{BPE, Vocab};

pub use clean::clean;

use crate::error::DataError;
use vocab::{BYTES, MERGES, WORD_END};

/// Words as CLIP cuts them: special tokens, contractions, runs of letters, single digits, runs of
/// anything else that is not white space.
///
/// Python's `regex` lets no case decide what a letter is, but what is none: U+0345, the one mark that
/// becomes a letter in capitals, is in no word.
const WORD: &str = r"(?i)<start_of_text>|<end_of_text>|'s|'t|'re|'ve|'m|'ll|'d|(?-i:\p{L})+|\p{N}|[^\s\p{L}\p{N}]+";

/// Turns captions into token ids.
#[derive(Debug)]
pub struct Tokenizer {
    word: Regex,
    model: BPE,
    vocab_size: usize,
}

impl Tokenizer {
    /// Ids in CLIP's full vocabulary: 512 bytes, 48,894 merges, start and end.
    pub const CLIP_VOCAB_SIZE: usize = 2 * BYTES + MERGES + 2;
    /// Ids in the smallest vocabulary, which spells every byte.
    pub const MIN_VOCAB_SIZE: usize = 2 * BYTES + 2;

    /// A tokenizer with `vocab_size` ids: [`Tokenizer::CLIP_VOCAB_SIZE`] for CLIP's own.
    ///
    /// A smaller one, for small models, keeps the first `vocab_size - 514` merges, which are the
    /// most frequent. It still spells any text, with more ids, and its start and end of text move
    /// down to `vocab_size - 2` and `vocab_size - 1`.
    ///
    /// # Errors
    ///
    /// [`DataError::Setting`] when `vocab_size` is not in `514..=49408`.
    pub fn new(vocab_size: usize) -> Result<Self, DataError> {
        if !(Self::MIN_VOCAB_SIZE..=Self::CLIP_VOCAB_SIZE).contains(&vocab_size) {
            return Err(DataError::Setting {
                name: "vocab_size",
                value: vocab_size.to_string(),
                expected: "a number from 514 (bytes only) to 49408 (CLIP's)",
            });
        }
        let merges = vocab::merges(vocab_size - Self::MIN_VOCAB_SIZE);
        let ids: Vocab = vocab::pieces(&merges).into_iter().zip(0..).collect();
        let model = BPE::builder()
            .vocab_and_merges(ids, merges)
            .end_of_word_suffix(WORD_END.to_owned())
            .build()
            .expect("each merge joins two pieces that stand before it in the table");
        let word = Regex::new(WORD).expect("the pattern is a constant that the tests compile");
        Ok(Self { word, model, vocab_size })
    }

    /// Number of ids: all are below it.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// The id that starts every text.
    #[must_use]
    pub fn start_id(&self) -> i32 {
        self.vocab_size as i32 - 2
    }

    /// The id that ends every text; the largest of all, so that `argmax` finds it.
    #[must_use]
    pub fn end_id(&self) -> i32 {
        self.vocab_size as i32 - 1
    }

    /// The ids of one text: start, words, end, then zeros up to `context_length`.
    ///
    /// A text that is too long loses its last words, never its end.
    #[must_use]
    pub fn encode(&self, text: &str, context_length: usize) -> Vec<i32> {
        let mut ids = vec![self.start_id()];
        self.push_words(text, context_length, &mut ids);
        ids.push(self.end_id());
        if ids.len() > context_length {
            ids.truncate(context_length);
            if let Some(last) = ids.last_mut() {
                *last = self.end_id();
            }
        }
        ids.resize(context_length, 0);
        ids
    }

    /// The ids of many texts, `[texts.len(), context_length]`, made on all cores.
    #[must_use]
    pub fn encode_batch(&self, texts: &[&str], context_length: usize) -> Vec<i32> {
        texts.par_iter().flat_map_iter(|text| self.encode(text, context_length)).collect()
    }

    /// The text of ids, cleaned and with a space after each word; start, end and ids out of range
    /// are left out, and so is all that follows the end.
    #[must_use]
    pub fn decode(&self, ids: &[i32]) -> String {
        let pieces: String = ids
            .iter()
            .take_while(|&&id| id != self.end_id())
            .filter_map(|&id| self.model.id_to_token(u32::try_from(id).ok()?))
            .collect();
        vocab::spell_out(&pieces)
    }

    /// Appends the ids of the words, without an end, until there are at least `enough`.
    fn push_words(&self, text: &str, enough: usize, ids: &mut Vec<i32>) {
        let text = clean(text);
        for word in self.word.find_iter(&text) {
            if ids.len() >= enough {
                return;
            }
            match word.as_str() {
                "<start_of_text>" => ids.push(self.start_id()),
                "<end_of_text>" => ids.push(self.end_id()),
                word => self.push_word(ids, word),
            }
        }
    }

    fn push_word(&self, ids: &mut Vec<i32>, word: &str) {
        let tokens = self
            .model
            .tokenize(&vocab::byte_level(word))
            .expect("every byte has an id, and only an unknown piece is an error");
        ids.extend(tokens.iter().map(|token| token.id as i32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clip() -> Tokenizer {
        Tokenizer::new(Tokenizer::CLIP_VOCAB_SIZE).unwrap()
    }

    #[test]
    fn sizes_are_those_of_clip() {
        assert_eq!(Tokenizer::CLIP_VOCAB_SIZE, 49_408);
        assert_eq!(Tokenizer::MIN_VOCAB_SIZE, 514);
        assert_eq!((clip().start_id(), clip().end_id()), (49_406, 49_407));
    }

    #[test]
    fn vocab_sizes_out_of_range_are_refused() {
        for vocab_size in [0, 513, 49_409] {
            let error = Tokenizer::new(vocab_size).unwrap_err().to_string();
            assert!(error.starts_with(&format!("vocab_size = {vocab_size}: ")), "{error}");
        }
    }

    #[test]
    fn truncation_keeps_the_end() {
        let tokenizer = clip();
        let ids = tokenizer.encode(&"red ".repeat(200), 77);
        assert_eq!(ids.len(), 77);
        assert_eq!(ids[75..], [736, 49_407]);
        assert_eq!(tokenizer.encode("red", 3), [49_406, 736, 49_407]);
        assert_eq!(tokenizer.encode("red", 2), [49_406, 49_407]);
        assert_eq!(tokenizer.encode("red", 1), [49_407]);
        assert_eq!(tokenizer.encode("red", 0), [0; 0]);
    }

    #[test]
    fn a_batch_is_its_texts_one_after_the_other() {
        let tokenizer = clip();
        let texts = ["A man.", "", "!!!"];
        let one_by_one: Vec<i32> =
            texts.iter().flat_map(|text| tokenizer.encode(text, 9)).collect();
        assert_eq!(tokenizer.encode_batch(&texts, 9), one_by_one);
    }

    #[test]
    fn small_vocabularies_spell_every_text() {
        let text = "A woman's 2 crème brûlée bags, 女人 😀!";
        let cleaned = "a woman 's 2 crème brûlée bags , 女人 😀!";
        for vocab_size in [514, 515, 1_024, 8_192, 49_408] {
            let tokenizer = Tokenizer::new(vocab_size).unwrap();
            let ids = tokenizer.encode(text, 77);
            assert!(ids.iter().all(|&id| (0..vocab_size as i32).contains(&id)), "{vocab_size}");
            assert_eq!(ids[0], vocab_size as i32 - 2);
            assert_eq!(ids.iter().max(), Some(&(vocab_size as i32 - 1)));
            assert_eq!(tokenizer.decode(&ids).trim_end(), cleaned, "{vocab_size}");
        }
    }

    #[test]
    fn a_small_vocabulary_is_the_head_of_the_full_one() {
        let (small, full) = (Tokenizer::new(8_192).unwrap(), clip());
        assert!((0..8_190).all(|id| small.model.id_to_token(id) == full.model.id_to_token(id)));
        // A frequent word has the same id in both, a rare one is cut into more pieces.
        assert_eq!(small.encode("woman", 4), [8_190, 2_308, 8_191, 0]);
        let num_ids = |tokenizer: &Tokenizer| {
            let ids = tokenizer.encode("jekyll", 20);
            ids.iter().position(|&id| id == tokenizer.end_id())
        };
        assert!(num_ids(&small) > num_ids(&full));
    }
}
