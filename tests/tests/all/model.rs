//! The main job on the real model.

use maskwright::{
    classify::{classify, prompt},
    extract::{ExtractOptions, extract, extract_json},
    generate::{Generator, Request},
    grammar::Grammar,
    pipeline::SamplingOptions,
};
use maskwright_tests::{
    sentences::{LABELS, TEXTS},
    vocabularies::real_model,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

fn generator(test: &str) -> Option<Generator> {
    real_model(test).map(|model| Generator::new(model).expect("a template"))
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Review {
    place: String,
    stars: u8,
    would_return: Option<bool>,
}

#[test]
fn a_rust_type_is_extracted() {
    let Some(mut generator) = generator("extraction") else { return };
    let text = "Dinner at Quán Bụi was lovely: five stars, we will be back.";
    let review: Review =
        extract(&mut generator, text).expect("a whole document");
    assert!(!review.place.is_empty());
    let _ = (review.stars, review.would_return);
}

/// The schema of the README, drawn at temperature 1 from several seeds: what
/// is finished is valid, whatever the model likes.
#[test]
fn documents_fit_their_schema_at_temperature_one() {
    let Some(mut generator) = generator("extraction at temperature 1") else {
        return;
    };
    let schema = include_str!("../../../examples/review.schema.json");
    let schema = serde_json::from_str(schema).expect("JSON");
    let text = include_str!("../../../examples/review.txt");
    for seed in 0..2 {
        let sampling = SamplingOptions { seed, ..SamplingOptions::default() };
        let options = ExtractOptions { sampling, ..ExtractOptions::default() };
        let extraction = extract_json(&mut generator, &schema, text, &options)
            .expect("bounded, so finished");
        let validator = jsonschema::validator_for(&schema).expect("valid");
        assert!(validator.is_valid(&extraction.value));
        assert_eq!(extraction.generation.text, extraction.text);
    }
}

#[test]
fn each_text_gets_one_of_the_labels() {
    let Some(mut generator) = generator("classification") else { return };
    for text in TEXTS {
        let scores = classify(&mut generator, &LABELS, text).expect("scores");
        assert!(LABELS.contains(&&*scores[0].label), "{text}");
        let total: f64 = scores.iter().map(|score| score.probability).sum();
        assert!((total - 1.0).abs() < 1e-9, "{total}");
    }
}

/// The label that `classify` picks is the one that sampling under the grammar
/// of the choices would write most often; greedy decoding may miss it, but
/// never leaves the labels.
#[test]
fn choices_are_decoded_whole() {
    let Some(mut generator) = generator("choices") else { return };
    let grammar = Grammar::from_choices(&LABELS).expect("three labels");
    let compiled = generator.compile(&grammar).expect("no atoms");
    for text in &TEXTS[..3] {
        let request = Request {
            prompt: prompt(&LABELS, text),
            grammar: Some(compiled.clone()),
            max_tokens: 8,
            sampling: SamplingOptions::greedy(),
            finish_within_budget: true,
            ..Request::default()
        };
        let mut streamed = String::new();
        let generation = generator
            .generate(&request, &mut |piece| {
                streamed.push_str(piece);
                std::ops::ControlFlow::Continue(())
            })
            .expect("a label");
        assert!(generation.is_complete(), "{generation:?}");
        assert!(LABELS.contains(&&*generation.text), "{generation:?}");
        assert_eq!(streamed, generation.text);
    }
}

#[test]
fn a_limit_on_tokens_is_an_outcome_of_its_own() {
    let Some(mut generator) = generator("the limit on tokens") else {
        return;
    };
    let schema =
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 50});
    let mut options =
        ExtractOptions { max_tokens: 5, ..ExtractOptions::default() };
    let error = extract_json(&mut generator, &schema, "1 2 3", &options)
        .expect_err("50 items do not fit in 5 tokens");
    assert!(error.to_string().contains("and 5 are allowed"), "{error}");
    options.finish_within_budget = false;
    let error = extract_json(&mut generator, &schema, "1 2 3", &options)
        .expect_err("50 items do not fit in 5 tokens");
    assert!(error.to_string().contains("cut off after 5 tokens"), "{error}");
}
