//! The tokenizer against ids recorded from open_clip (`fixtures/tokenizer`).

use serde::Deserialize;
use tbps_data::Tokenizer;

const CONTEXT_LENGTH: usize = 77;

#[derive(Deserialize)]
struct Caption {
    text: String,
    ids: Vec<i32>,
}

#[test]
fn ids_equal_those_of_open_clip() {
    let tokenizer = Tokenizer::new(Tokenizer::CLIP_VOCAB_SIZE).unwrap();
    let mut num_captions = 0;
    let mut wrong = Vec::new();
    for line in include_str!("fixtures/tokenizer/captions.jsonl").lines() {
        let Caption { text, mut ids } = serde_json::from_str(line).unwrap();
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
    assert!(num_captions >= 250, "only {num_captions} captions");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
