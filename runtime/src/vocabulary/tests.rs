//! Vocabularies from small tokenizers written by hand.

use std::fs;

use serde_json::{Value, json};

use super::*;

/// Returns a tokenizer file with these pieces, numbered from zero, and
/// whatever `parts` add or replace.
fn tokenizer(kind: &str, pieces: &[&str], parts: &Value) -> Vec<u8> {
    let vocab: serde_json::Map<String, Value> = pieces
        .iter()
        .enumerate()
        .map(|(id, piece)| ((*piece).to_owned(), json!(id)))
        .collect();
    let mut file = json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": null,
        "decoder": null,
        "model": {"type": kind, "vocab": vocab, "merges": ["a b"]},
    });
    for (key, value) in parts.as_object().expect("parts are an object") {
        match (&mut file[key.as_str()], value) {
            (Value::Object(old), Value::Object(new)) => {
                old.extend(new.clone());
            }
            (old, new) => *old = new.clone(),
        }
    }
    serde_json::to_vec(&file).expect("values can be written")
}

fn read(kind: &str, pieces: &[&str], parts: &Value) -> Vocabulary {
    Vocabulary::from_tokenizer_json(&tokenizer(kind, pieces, parts))
        .expect("a good tokenizer")
}

fn bytes(vocabulary: &Vocabulary, id: u32) -> Option<&[u8]> {
    vocabulary.token_bytes(TokenId(id))
}

fn message(error: &VocabularyError) -> String {
    error.to_string()
}

const BYTE_LEVEL_SIGNS: [&str; 3] = ["decoder", "pre_tokenizer", "normalizer"];

#[test]
fn byte_level_is_recognised_wherever_it_is_declared() {
    let pieces = ["Ġ\"", "Ġ./", "a", "\"", "Ċ", "âĤ¬"];
    let plain = json!({"type": "ByteLevel", "add_prefix_space": false});
    for component in BYTE_LEVEL_SIGNS {
        let list = match component {
            "decoder" => "decoders",
            "pre_tokenizer" => "pretokenizers",
            _ => "normalizers",
        };
        let nested = json!({"type": "Sequence", list: [
            {"type": "Fuse"},
            {"type": "Sequence", list: [plain]},
        ]});
        for value in [&plain, &nested] {
            let vocabulary = read("BPE", &pieces, &json!({component: value}));
            assert_eq!(bytes(&vocabulary, 0), Some(&b"\x20\x22"[..]));
            assert_eq!(bytes(&vocabulary, 1), Some(&b" ./"[..]));
            assert_eq!(bytes(&vocabulary, 4), Some(&b"\n"[..]));
            assert_eq!(bytes(&vocabulary, 5), Some("€".as_bytes()));
        }
    }
    // No component says anything: the pieces themselves do.
    let vocabulary = read("BPE", &pieces, &json!({}));
    assert_eq!(bytes(&vocabulary, 0), Some(&b"\x20\x22"[..]));
}

#[test]
fn pieces_that_merely_contain_the_letter_are_not_byte_level() {
    let vocabulary = read("BPE", &["Ġ", "漢"], &json!({}));
    assert_eq!(bytes(&vocabulary, 0), Some("Ġ".as_bytes()));
}

#[test]
fn space_markers_and_byte_pieces_become_bytes() {
    let pieces = ["▁", "x", "<0x0A>", "▁▁a", "<unk>"];
    let replace =
        json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "});
    let prepare =
        json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    let metaspace = json!({"type": "Metaspace", "replacement": "▁"});
    let model = json!({"byte_fallback": true, "unk_token": "<unk>"});
    for parts in [
        json!({"decoder": {"type": "Sequence", "decoders": [
            replace, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]}}),
        json!({"normalizer": prepare, "model": model}),
        json!({"pre_tokenizer": metaspace, "model": model}),
        json!({"decoder": metaspace, "model": model}),
        json!({"model": model}),
    ] {
        let vocabulary = read("BPE", &pieces, &parts);
        // A decode of this token alone is empty; its bytes are not.
        assert_eq!(bytes(&vocabulary, 0), Some(&b" "[..]));
        assert_eq!(bytes(&vocabulary, 1), Some(&b"x"[..]));
        assert_eq!(bytes(&vocabulary, 2), Some(&b"\n"[..]));
        assert_eq!(bytes(&vocabulary, 3), Some(&b"  a"[..]));
    }
    // Without byte fallback the same piece is six letters.
    let vocabulary = read("BPE", &pieces, &json!({"decoder": metaspace}));
    assert_eq!(bytes(&vocabulary, 2), Some(&b"<0x0A>"[..]));
    let odd = json!({"type": "Metaspace", "replacement": "_"});
    let vocabulary = read("BPE", &["_a"], &json!({"decoder": odd}));
    assert_eq!(bytes(&vocabulary, 0), Some(&b" a"[..]));
}

#[test]
fn unigram_lists_its_pieces() {
    let json = tokenizer(
        "Unigram",
        &[],
        &json!({
            "decoder": {"type": "Metaspace", "replacement": "▁"},
            "model": {"vocab": [["<unk>", 0.0], ["▁a", -1.5], ["b", -2]],
                      "unk_id": 0, "byte_fallback": false},
        }),
    );
    let vocabulary = Vocabulary::from_tokenizer_json(&json).expect("unigram");
    assert_eq!(vocabulary.n_tokens(), 3);
    assert!(vocabulary.is_special(TokenId(0)));
    assert_eq!(bytes(&vocabulary, 0), None);
    assert_eq!(bytes(&vocabulary, 1), Some(&b" a"[..]));
    assert_eq!(bytes(&vocabulary, 2), Some(&b"b"[..]));
}

#[test]
fn escaped_pieces_are_unescaped() {
    let vocabulary = read("BPE", &["\"\\", "\t", "é"], &json!({}));
    assert_eq!(bytes(&vocabulary, 0), Some(&b"\"\\"[..]));
    assert_eq!(bytes(&vocabulary, 1), Some(&b"\t"[..]));
    let text = r#"{"model": {"type": "BPE", "merges": [],
        "vocab": {"\u0120\u0022": 1, "\ud83d\ude00": 0}}}"#;
    let vocabulary = Vocabulary::from_tokenizer_json(text.as_bytes())
        .expect("a good tokenizer");
    assert_eq!(bytes(&vocabulary, 0), Some("😀".as_bytes()));
    assert_eq!(bytes(&vocabulary, 1), Some("Ġ\"".as_bytes()));
}

#[test]
fn added_tokens_are_special_or_text_by_their_flag() {
    let vocabulary = read(
        "BPE",
        &["hello", "Ġ"],
        &json!({
            "decoder": {"type": "ByteLevel"},
            "added_tokens": [
                {"id": 2, "content": "<|im_end|>", "special": true},
                {"id": 3, "content": "<tool call>", "special": false},
                {"id": 6, "content": "<unused49>", "special": false},
                {"id": 7, "content": "[control_36]", "special": true},
            ],
        }),
    );
    assert_eq!(vocabulary.n_tokens(), 8);
    assert_eq!(bytes(&vocabulary, 0), Some(&b"hello"[..]));
    assert_eq!(bytes(&vocabulary, 2), None);
    assert_eq!(vocabulary.text(TokenId(2)), "<|im_end|>");
    assert_eq!(vocabulary.end_tokens(), [TokenId(2)]);
    // Written as text: its space is a space.
    assert_eq!(bytes(&vocabulary, 3), Some(&b"<tool call>"[..]));
    assert_eq!(vocabulary.kind(TokenId(4)), TokenKind::Unused);
    assert_eq!(bytes(&vocabulary, 4), None);
    assert_eq!(bytes(&vocabulary, 6), None);
    assert_eq!(bytes(&vocabulary, 7), None);
    for (text, id) in [
        ("<|im_end|>", 2),
        ("<tool call>", 3),
        ("<unused49>", 6),
        ("[control_36]", 7),
    ] {
        assert_eq!(vocabulary.id_of_special(text), Some(TokenId(id)));
    }
    assert_eq!(vocabulary.id_of_special("hello"), None);

    let vocabulary =
        vocabulary.with_special_tokens([TokenId(3)]).expect("token 3");
    assert_eq!(bytes(&vocabulary, 3), None);
    assert!(vocabulary.is_special(TokenId(3)));
}

#[test]
fn added_space_markers_are_spaces() {
    let vocabulary = read(
        "BPE",
        &["a", "▁▁"],
        &json!({
            "decoder": {"type": "Metaspace", "replacement": "▁"},
            "added_tokens": [{"id": 1, "content": "▁▁", "special": false}],
        }),
    );
    assert_eq!(bytes(&vocabulary, 1), Some(&b"  "[..]));
}

#[test]
fn duplicate_empty_and_very_long_tokens_are_held() {
    let spaces = vec![b' '; 4000];
    let tokens = vec![b"a".to_vec(), spaces.clone(), vec![], b"a".to_vec()];
    let vocabulary = Vocabulary::from_tokens(tokens, []).expect("good tokens");
    assert_eq!(bytes(&vocabulary, 1), Some(&spaces[..]));
    assert_eq!(bytes(&vocabulary, 2), None);
    assert_eq!(bytes(&vocabulary, 0), bytes(&vocabulary, 3));
    assert_eq!(bytes(&vocabulary, 4), None);
    assert_eq!(bytes(&vocabulary, u32::MAX), None);
    let ids: Vec<u32> =
        vocabulary.text_tokens().map(|(token, _)| token.0).collect();
    assert_eq!(ids, [0, 1, 3]);
}

#[test]
fn end_tokens_are_a_set_and_never_text() {
    let vocabulary = Vocabulary::from_tokens(
        ["ok", "x", "y"],
        [TokenId(2), TokenId(1), TokenId(2)],
    )
    .expect("good tokens");
    assert_eq!(vocabulary.end_tokens(), [TokenId(1), TokenId(2)]);
    assert_eq!(bytes(&vocabulary, 1), None);
    // A token that is no longer an end token spells its text again.
    let vocabulary =
        vocabulary.with_end_tokens([TokenId(2)]).expect("token 2");
    assert_eq!(bytes(&vocabulary, 1), Some(&b"x"[..]));
    assert!(vocabulary.is_end(TokenId(2)));
    let error = vocabulary.with_end_tokens([TokenId(3)]);
    assert_eq!(
        message(&error.expect_err("token 3 is not there")),
        "end token 3 is not in the vocabulary of 3 tokens; does it belong \
         to another model?",
    );
}

#[test]
fn padding_is_never_text_and_text_is_never_cut_off() {
    let mut vocabulary =
        Vocabulary::from_tokens(["a", "b", "<end>"], [TokenId(2)])
            .expect("good tokens");
    assert_eq!(vocabulary.n_logits(), 3);
    vocabulary.set_n_logits(8).expect("padding");
    assert_eq!((vocabulary.n_logits(), vocabulary.n_tokens()), (8, 3));
    assert_eq!(bytes(&vocabulary, 5), None);
    for (width, token) in [(2, "token 2"), (0, "token 0")] {
        let error = vocabulary.set_n_logits(width).expect_err("too narrow");
        assert!(message(&error).contains(token), "{error}");
        assert_eq!(vocabulary.n_logits(), 8);
    }
    assert!(vocabulary.set_n_logits(usize::MAX).is_err());
    // A special token at the end may be left out by the model.
    let mut vocabulary = vocabulary
        .with_special_tokens([TokenId(2)])
        .and_then(|vocabulary| vocabulary.with_end_tokens([TokenId(1)]))
        .expect("good tokens");
    vocabulary.set_n_logits(2).expect("only a special token is cut off");
    assert!(vocabulary.with_end_tokens([TokenId(2)]).is_err());
}

#[test]
fn fingerprints_tell_what_masks_depend_on() {
    let toy = |tokens: &[&str]| {
        Vocabulary::from_tokens(tokens, []).expect("good tokens")
    };
    let base = toy(&["ab", "c", "d"]);
    assert_eq!(base.fingerprint(), toy(&["ab", "c", "d"]).fingerprint());
    let moved = toy(&["a", "bc", "d"]);
    let ended = toy(&["ab", "c", "d"]).with_end_tokens([TokenId(2)]);
    let special = toy(&["ab", "c", "d"]).with_special_tokens([TokenId(2)]);
    let mut wide = toy(&["ab", "c", "d"]);
    wide.set_n_logits(4).expect("padding");
    let mut all = vec![
        base.fingerprint(),
        moved.fingerprint(),
        ended.expect("token 2").fingerprint(),
        special.expect("token 2").fingerprint(),
        wide.fingerprint(),
    ];
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 5);
}

#[test]
fn spellable_bytes_err_below_and_occurring_bytes_above() {
    let vocabulary = Vocabulary::from_tokens(["a", "bc", "d"], [TokenId(2)])
        .expect("good tokens");
    let list = |set: [bool; 256]| -> Vec<u8> {
        (0..=255).filter(|&byte| set[usize::from(byte)]).collect()
    };
    assert_eq!(list(vocabulary.spellable_bytes()), b"a");
    assert_eq!(list(vocabulary.occurring_bytes()), b"abc");
}

#[test]
fn models_without_a_fixed_spelling_are_refused_by_name() {
    let cases = [
        ("WordPiece", json!({}), "model WordPiece"),
        ("WordLevel", json!({}), "model WordLevel"),
        ("Other", json!({}), "model Other"),
        (
            "BPE",
            json!({"model": {"end_of_word_suffix": "</w>"}}),
            "end_of_word_suffix",
        ),
        (
            "BPE",
            json!({"model": {"continuing_subword_prefix": "##"}}),
            "continuing_subword_prefix",
        ),
        ("BPE", json!({"decoder": {"type": "CTC"}}), "decoder CTC"),
        (
            "BPE",
            json!({"decoder": {"type": "Replace",
                               "pattern": {"String": "a"}, "content": "b"}}),
            "decoder Replace",
        ),
    ];
    for (kind, parts, expected) in cases {
        let json = tokenizer(kind, &["a"], &parts);
        let error = Vocabulary::from_tokenizer_json(&json)
            .expect_err("no fixed spelling");
        assert!(message(&error).contains(expected), "{error}");
    }
}

#[test]
fn damaged_files_are_errors() {
    let json = |text: &str| {
        Vocabulary::from_tokenizer_json(text.as_bytes())
            .expect_err("a damaged file")
    };
    for text in ["", "{}", "[]", "{\"model\": 1}", "\u{0}", "{\"model\": {"] {
        let error = json(text);
        assert!(matches!(error, VocabularyError::Json { .. }), "{error}");
    }
    let model = |vocab: &str| {
        json(&format!(r#"{{"model": {{"type": "BPE", "vocab": {vocab}}}}}"#))
    };
    assert!(matches!(
        model(r#"{"a": 4000000000}"#),
        VocabularyError::TooManyTokens { id: 4_000_000_000, .. }
    ));
    assert!(matches!(
        model(r#"{"a": 0, "b": 0}"#),
        VocabularyError::DuplicateId { id: 0, .. }
    ));
    for vocab in [r#"{"a": -1}"#, r#"{"a": 0.5}"#, "[1]", r#"[["a"]]"#] {
        assert!(matches!(model(vocab), VocabularyError::Json { .. }));
    }
}

#[test]
fn files_beside_the_tokenizer_name_the_end_tokens() {
    let json = tokenizer(
        "BPE",
        &["a", "b", "</s>"],
        &json!({"added_tokens": [
            {"id": 3, "content": "<|end|>", "special": true},
            {"id": 4, "content": "<|turn|>", "special": true},
        ]}),
    );
    let ends = |files: &[(&str, Value)]| {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &[u8]| {
            fs::write(directory.path().join(name), text).expect("a file");
        };
        write("tokenizer.json", &json);
        for (name, value) in files {
            write(name, value.to_string().as_bytes());
        }
        let by_directory = Vocabulary::from_path(directory.path())?;
        let by_file =
            Vocabulary::from_path(directory.path().join("tokenizer.json"))?;
        assert_eq!(by_directory.end_tokens(), by_file.end_tokens());
        let ids = by_directory.end_tokens().iter().map(|token| token.0);
        Ok::<Vec<u32>, VocabularyError>(ids.collect())
    };
    let generation = "generation_config.json";
    let tokenizer = "tokenizer_config.json";
    let map = "special_tokens_map.json";
    assert_eq!(ends(&[]).expect("the table decides"), [3]);
    let one = [(generation, json!({"eos_token_id": 4}))];
    assert_eq!(ends(&one).expect("one id"), [4]);
    let files = [
        (generation, json!({"eos_token_id": [1, 3]})),
        ("config.json", json!({"eos_token_id": 0})),
        (tokenizer, json!({"eos_token": {"content": "<|turn|>"}})),
        (map, json!({"eos_token": "</s>"})),
    ];
    assert_eq!(ends(&files).expect("all together"), [1, 2, 3, 4]);
    assert_eq!(ends(&files[1..]).expect("no ids"), [0, 2, 4]);
    let silent = [
        (generation, json!({"eos_token_id": null})),
        (tokenizer, json!({"eos_token": null})),
    ];
    assert_eq!(ends(&silent).expect("the table decides"), [3]);
    for (name, value, expected) in [
        (generation, json!({"eos_token_id": 9}), "end token 9"),
        (generation, json!({"eos_token_id": 1_u64 << 40}), "end token"),
        (map, json!({"eos_token": "<other>"}), "\"<other>\""),
    ] {
        let error = ends(&[(name, value)]).expect_err("unknown token");
        assert!(message(&error).contains(expected), "{error}");
    }
    let error = Vocabulary::from_path("/nowhere/tokenizer.json")
        .expect_err("no such file");
    assert!(message(&error).contains("/nowhere/tokenizer.json"), "{error}");
}

/// Builds GGUF metadata from pieces with their types.
fn gguf(model: &str, tokens: &[(&str, i32)], ends: &[u32]) -> GgufTokenizer {
    GgufTokenizer {
        model: model.to_owned(),
        tokens: tokens.iter().map(|(text, _)| (*text).to_owned()).collect(),
        token_types: tokens.iter().map(|&(_, kind)| kind).collect(),
        end_tokens: ends.to_vec(),
    }
}

#[test]
fn gguf_types_decide_what_is_text() {
    let tokens = [
        ("<unk>", 2),
        ("<s>", 3),
        ("</s>", 3),
        ("<0x0A>", 6),
        ("▁a", 1),
        ("<unused0>", 5),
        ("<think>", 4),
        ("<0x0B>", 1),
    ];
    let vocabulary =
        Vocabulary::from_gguf_metadata(&gguf("llama", &tokens, &[2]))
            .expect("good metadata");
    for id in [0, 1, 2, 5] {
        assert_eq!(bytes(&vocabulary, id), None, "token {id}");
        let text = tokens[id as usize].0;
        assert_eq!(vocabulary.text(TokenId(id)), text);
        assert_eq!(vocabulary.id_of_special(text), Some(TokenId(id)));
    }
    assert_eq!(bytes(&vocabulary, 3), Some(&b"\n"[..]));
    assert_eq!(bytes(&vocabulary, 4), Some(&b" a"[..]));
    assert_eq!(bytes(&vocabulary, 6), Some(&b"<think>"[..]));
    assert_eq!(bytes(&vocabulary, 7), Some(&b"<0x0B>"[..]));
    assert_eq!(vocabulary.end_tokens(), [TokenId(2)]);
}

#[test]
fn gguf_byte_level_tokens_become_bytes() {
    let tokens = [("Ġa", 1), ("<|im_end|>", 3), ("Ċ", 1), ("é x", 4)];
    let vocabulary =
        Vocabulary::from_gguf_metadata(&gguf("gpt2", &tokens, &[]))
            .expect("good metadata");
    assert_eq!(bytes(&vocabulary, 0), Some(&b" a"[..]));
    assert_eq!(bytes(&vocabulary, 2), Some(&b"\n"[..]));
    assert_eq!(bytes(&vocabulary, 3), Some("é x".as_bytes()));
    // The file names no end token; the table knows this one.
    assert_eq!(vocabulary.end_tokens(), [TokenId(1)]);
}

#[test]
fn gguf_faults_are_errors() {
    let mut uneven = gguf("gpt2", &[("a", 1), ("b", 1)], &[]);
    uneven.token_types.pop();
    let cases = [
        (gguf("bert", &[("a", 1)], &[]), "\"bert\""),
        (gguf("gpt2", &[("a", 1)], &[1]), "end token 1"),
        (uneven, "tokenizer.ggml.token_type has 1 entries for 2 tokens"),
    ];
    for (metadata, expected) in cases {
        let error = Vocabulary::from_gguf_metadata(&metadata)
            .expect_err("faulty metadata");
        assert!(message(&error).contains(expected), "{error}");
    }
    let mut untyped = gguf("gpt2", &[("a", 1), ("b", 1)], &[]);
    untyped.token_types.clear();
    let vocabulary =
        Vocabulary::from_gguf_metadata(&untyped).expect("untyped");
    assert_eq!(bytes(&vocabulary, 1), Some(&b"b"[..]));
}
