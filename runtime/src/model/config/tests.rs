use std::path::Path;

use super::*;
use crate::model::rope::Scaling;

const SMALL: &str = r#"{
    "model_type": "KIND", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 100,
    "max_position_embeddings": 256, "rms_norm_eps": 1e-5 EXTRA }"#;

fn parse_for(
    kind: &str,
    extra: &str,
    asked: Option<usize>,
) -> Result<Config, ModelError> {
    let text = SMALL.replace("KIND", kind).replace("EXTRA", extra);
    Config::from_json(Path::new("config.json"), &text, asked)
}

fn parse(kind: &str, extra: &str) -> Result<Config, ModelError> {
    parse_for(kind, extra, None)
}

#[test]
fn reads_a_config_json() {
    let config = parse("llama", r#", "rope_theta": 5e5"#).expect("valid");
    assert_eq!(config.head_dim, 16);
    assert_eq!(config.kv_layout().n_kv_heads, 2);
    let [rope] = config.ropes.as_slice() else { panic!("one rope") };
    assert!(matches!(rope.scaling, Scaling::None));
    assert!((rope.base - 5e5).abs() < 1e-9);
    assert_eq!(config.is_tied, Some(false));
    assert_eq!(config.unknown, [""; 0]);
}

#[test]
fn reads_the_scaling_of_llama_3() {
    let config = parse(
        "llama",
        r#", "rope_scaling": {"rope_type": "llama3", "factor": 32.0,
        "low_freq_factor": 1, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}"#,
    );
    let scaling = &config.expect("valid").ropes[0].scaling;
    assert!(matches!(scaling, Scaling::Llama3 { .. }), "{scaling:?}");
}

#[test]
fn windows_are_those_of_the_architecture() {
    let windows = |kind: &str, extra: &str| -> Vec<Option<usize>> {
        let config = parse(kind, extra).expect(extra);
        config.attention.iter().map(|layer| layer.window).collect()
    };
    let all = r#", "sliding_window": 100"#;
    assert_eq!(windows("mistral", all), [Some(100); 3]);
    assert_eq!(windows("phi3", all), [Some(100); 3]);
    assert_eq!(windows("mistral", r#", "sliding_window": null"#), [None; 3]);
    // The default of 4,096 and one as long as the context forbid nothing.
    assert_eq!(windows("mistral", ""), [None; 3]);
    assert_eq!(windows("phi3", r#", "sliding_window": 256"#), [None; 3]);
    assert_eq!(windows("qwen2", all), [None; 3]);
    let some = r#", "sliding_window": 100, "use_sliding_window": true,
        "max_window_layers": 2"#;
    assert_eq!(windows("qwen3", some), [None, None, Some(100)]);
    let pattern = r#", "sliding_window": 100, "sliding_window_pattern": 2"#;
    let expected = [Some(100), None, Some(100)];
    assert_eq!(windows("gemma3_text", pattern), expected);
    let types = r#", "sliding_window": 100, "layer_types":
        ["full_attention", "sliding_attention", "full_attention"]"#;
    assert_eq!(windows("gemma3_text", types), [None, Some(100), None]);
}

#[test]
fn what_is_left_out_of_a_file_is_what_transformers_takes() {
    let text = r#"{"model_type": "gemma3", "text_config": {
        "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 6, "model_type": "gemma3_text",
        "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
        "vision_config": {"hidden_size": 1152}}"#;
    let config = Config::from_json(Path::new("config.json"), text, None);
    let config = config.expect("valid");
    assert_eq!(config.head_dim, 256);
    assert_eq!(config.vocab_size, 262_208);
    assert_eq!(config.is_tied, Some(true));
    assert_eq!(config.attention[5], Attention { window: None, rope: 0 });
    let sliding = Attention { window: Some(4096), rope: 1 };
    assert_eq!(config.attention[0], sliding);
    assert!((config.ropes[1].base - 1e4).abs() < 1e-9);
    assert!((config.ropes[0].base - 1e6).abs() < 1e-9);
    assert_eq!(config.unknown, [""; 0]);
}

#[test]
fn the_context_chooses_the_factors_of_longrope() {
    let extra = r#", "original_max_position_embeddings": 64,
        "rope_scaling": {"type": "su", "short_factor": [1, 1, 1, 1, 1, 1,
        1, 1], "long_factor": [4, 4, 4, 4, 4, 4, 4, 4]}"#;
    for (asked, length, factor) in [
        (None, 64, 1.0),
        (Some(64), 64, 1.0),
        (Some(65), 65, 4.0),
        (Some(256), 256, 4.0),
    ] {
        let config = parse_for("phi3", extra, asked).expect("valid");
        assert_eq!(config.context_length, length);
        let Scaling::Factors(factors) = &config.ropes[0].scaling else {
            panic!("factors")
        };
        assert_eq!(factors, &[factor; 8]);
    }
    let error = parse_for("phi3", extra, Some(257)).expect_err("too long");
    assert!(error.to_string().contains("256"), "{error}");
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    for (kind, extra, name) in [
        ("mistral", r#", "attention_bias": true"#, "attention_bias"),
        ("llama", r#", "hidden_act": "relu""#, "relu"),
        ("llama", r#", "rope_scaling": {"type": "ntk"}"#, "ntk"),
        ("llama", r#", "rope_scaling": {"type": "linear"}"#, "factor"),
        (
            "llama",
            r#", "rope_scaling": {"type": "linear", "factor": 0}"#,
            "frequencies",
        ),
        ("llama", r#", "head_dim": 7"#, "rotary"),
        ("llama", r#", "head_dim": 0"#, "head width"),
        ("llama", r#", "partial_rotary_factor": 0.5"#, "partial_rotary"),
        ("llama", r#", "pretraining_tp": 2"#, "pretraining_tp"),
        ("llama", r#", "quantization_config": {}"#, "quantization_config"),
        ("gemma3_text", r#", "final_logit_softcapping": 30.0"#, "softcapping"),
        ("gemma3_text", r#", "layer_types": ["full_attention"]"#, "layer"),
        ("gemma3_text", r#", "sliding_window_pattern": 0"#, "pattern"),
        ("qwen2", r#", "layer_types": ["mamba", "", ""]"#, "mamba"),
        ("mistral", r#", "sliding_window": 0"#, "sliding window"),
        (
            "phi3",
            r#", "rope_scaling": {"type": "longrope", "short_factor": [1],
            "long_factor": [1]}"#,
            "8",
        ),
    ] {
        let error = parse(kind, extra).expect_err(extra).to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn keys_that_nobody_knows_are_named() {
    let extra = r#", "depth_charge": 4, "resid_pdrop": 0.0, "void": null,
        "rope_scaling": {"rope_type": "default", "spin": 2}"#;
    let config = parse("llama", extra).expect("valid");
    assert_eq!(config.unknown, ["rope_scaling.spin", "depth_charge"]);
}

#[test]
fn another_architecture_is_named_with_what_is_supported() {
    let error = parse("mamba", "").expect_err("unsupported").to_string();
    assert!(error.contains("mamba") && error.contains("qwen3"), "{error}");
}
