//! The tokenizer against ids recorded from open_clip (`fixtures/tokenizer`, `fixtures/unicode`), and
//! what holds for any text.

#![expect(clippy::unwrap_used, reason = "a test helper that fails should fail the test")]

use std::io::Read;

use flate2::read::GzDecoder;
use serde::Deserialize;
use tbps_data::Tokenizer;
use tbps_data::rng::{Purpose, Stream};

const CONTEXT_LENGTH: usize = 77;

#[derive(Deserialize)]
struct Caption {
    text: String,
    ids: Vec<i32>,
}

fn check(captions: impl Iterator<Item = Caption>, at_least: usize) {
    let tokenizer = Tokenizer::new(Tokenizer::CLIP_VOCAB_SIZE).unwrap();
    let mut num_captions = 0;
    let mut wrong = Vec::new();
    for Caption { text, mut ids } in captions {
        num_captions += 1;
        ids.resize(CONTEXT_LENGTH, 0);
        let ours = tokenizer.encode(&text, CONTEXT_LENGTH);
        if ours != ids {
            wrong.push(format!(
                "{text:?}\n  ours {:?}\n  open_clip {:?}",
                tokenizer.decode(&ours),
                tokenizer.decode(&ids)
            ));
        }
    }
    assert!(num_captions >= at_least, "only {num_captions} captions");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn ids_equal_those_of_open_clip() {
    let lines = include_str!("fixtures/tokenizer/captions.jsonl").lines();
    check(lines.map(|line| serde_json::from_str(line).unwrap()), 250);
}

#[test]
fn ids_of_random_strings_equal_those_of_open_clip() {
    let mut lines = String::new();
    let file = &include_bytes!("fixtures/unicode/strings.jsonl.gz")[..];
    GzDecoder::new(file).read_to_string(&mut lines).unwrap();
    let captions = lines.lines().map(|line| {
        let (text, ids) = serde_json::from_str(line).unwrap();
        Caption { text, ids }
    });
    check(captions, 5_000);
}

/// A string of up to 40 code points, half of them from the pages where repairs happen.
fn any_string(stream: &mut Stream) -> String {
    let len = stream.below(41);
    let code_point = |stream: &mut Stream| loop {
        let bound = [0x110000, 0x3000, 0x400, 0x80][stream.below(4) as usize];
        if let Some(c) = char::from_u32(stream.below(bound) as u32) {
            return c;
        }
    };
    (0..len).map(|_| code_point(stream)).collect()
}

#[test]
fn any_text_is_framed_by_start_and_end_and_stays_in_range() {
    for vocab_size in [Tokenizer::CLIP_VOCAB_SIZE, 1_024] {
        let tokenizer = Tokenizer::new(vocab_size).unwrap();
        for index in 0..3_000 {
            let mut stream = Stream::new(index, Purpose::Augment, &[vocab_size as u64]);
            let text = any_string(&mut stream);
            let context_length = 2 + stream.below(100) as usize;
            let ids = tokenizer.encode(&text, context_length);
            assert_eq!(ids.len(), context_length, "{text:?}");
            assert_eq!(ids[0], tokenizer.start_id(), "{text:?}");
            let end = ids.iter().rposition(|&id| id != 0).unwrap();
            assert_eq!(ids[end], tokenizer.end_id(), "{text:?}");
            assert!(ids.iter().all(|id| (0..vocab_size as i32).contains(id)), "{text:?}");
        }
    }
}
