//! The command `maskwright pipeline`, as its users run it.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

/// The row of the worked numbers.
const DISHES: &str = "[3.0, 2.4, 2.0, 1.0, 0.4, -0.5]";

/// Runs `maskwright pipeline` with these arguments and this input.
fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_maskwright"))
        .arg("pipeline")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A command that refuses its arguments does not read.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Runs it over the dishes and returns its JSON.
fn json_of(arguments: &[&str]) -> Value {
    let all = [&["--logits", "-", "--json-output"], arguments].concat();
    let output = run(&all, DISHES.as_bytes());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns the probabilities after a stage, to two digits, by token.
fn shown(output: &Value, stage: &str) -> String {
    let stages = output["stages"].as_array().expect("stages");
    let stage = stages
        .iter()
        .find(|one| one["stage"] == stage)
        .expect("the stage ran");
    let mut cells = vec!["--".to_owned(); 6];
    for token in stage["tokens"].as_array().expect("tokens") {
        let id = token["id"].as_u64().expect("an id");
        let p = token["probability"].as_f64().expect("a number");
        let place = usize::try_from(id).expect("small");
        cells[place] = format!("{p:.2}");
    }
    cells.join(" ")
}

#[test]
fn orders_keep_other_tokens_with_the_same_parameters() {
    let parameters =
        ["--temperature", "1.5", "--top-k", "0", "--top-p", "0.9"];
    let of = |order: &str, last: &str| {
        let all = [&parameters[..], &["--min-p", "0.1", "--order", order]];
        shown(&json_of(&all.concat()), last)
    };
    assert_eq!(of("hf", "min_p"), "0.38 0.26 0.20 0.10 0.07 --");
    assert_eq!(of("vllm", "top_p"), "0.41 0.27 0.21 0.11 -- --");
    assert_eq!(of("llama.cpp", "temperature"), "0.41 0.27 0.21 0.11 -- --");
    let own = of("mask,temperature,min_p,top_p", "top_p");
    assert_eq!(own, "0.41 0.27 0.21 0.11 -- --");
}

#[test]
fn an_order_that_is_named_brings_its_defaults() {
    let sampling = |arguments: &[&str]| json_of(arguments)["sampling"].clone();
    let llama = sampling(&["--order", "llama.cpp"]);
    let expected = json!({ "value": 40, "source": "order" });
    assert_eq!(llama["top_k"], expected);
    let none = sampling(&[]);
    assert_eq!(none, json!({ "order": "hf" }));
    let user = sampling(&["--order", "hf", "--top-k", "3"]);
    assert_eq!(user["top_k"], json!({ "value": 3, "source": "user" }));
}

#[test]
fn the_table_tells_of_each_stage() {
    let arguments = ["--logits", "-", "--mask", "2-4", "--top-k", "2"];
    let output = run(&arguments, DISHES.as_bytes());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let mut lines = table.lines();
    assert!(lines.next().is_some_and(|head| head.starts_with("stage")));
    let rows: Vec<Vec<&str>> =
        lines.map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..4], ["logits", "6", "0:", "0.4637"]);
    assert_eq!(rows[1][..3], ["mask", "3", "2:"]);
    assert_eq!(rows[2][..2], ["top_k", "2"]);
    assert_eq!(rows[3][0], "drawn:");
    assert_eq!(text(&output.stderr), "sampling: order hf, top_k 2\n");
}

#[test]
fn raw_rows_are_read_too() {
    let row = [3.0_f32, 2.4, 2.0, 1.0, 0.4, -0.5, f32::NEG_INFINITY];
    let bytes: Vec<u8> =
        row.iter().flat_map(|logit| logit.to_le_bytes()).collect();
    let directory = tempfile::tempdir().expect("a directory");
    let file: PathBuf = directory.path().join("row.f32");
    std::fs::write(&file, &bytes).expect("written");
    let path = file.to_str().expect("text");
    let arguments = ["--logits", path, "--json-output", "--temperature", "0"];
    let output = run(&arguments, b"");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output["choice"]["token"], 0);
    assert_eq!(output["stages"][0]["left"], 6);
    let output = run(&["--logits", "-"], b"abc");
    assert_eq!(output.status.code(), Some(6));
    assert!(text(&output.stderr).contains("4 bytes each"));
}

#[test]
fn what_is_wrong_is_said_with_its_range() {
    let cases = [
        (&["--top-p", "1.5"][..], 2, "top_p is 1.5; it must be from 0 to 1"),
        (&["--temperature=-1"], 2, "it must be at least 0 and finite"),
        (&["--order", "top_k,mask", "--top-k", "1"], 2, "put mask first"),
        (&["--order", "mask,topk"], 2, "no stage \"topk\""),
        (&["--mask", "9"], 2, "the mask names token 9"),
        (&["--suppress-tokens", "0-5"], 1, "no token is left"),
        (&["--logit-bias", "1"], 2, "IDS=X"),
        (&["--mirostat", "3"], 2, "0 (off), 1 or 2"),
    ];
    for (arguments, code, reason) in cases {
        let all = [&["--logits", "-"], arguments].concat();
        let output = run(&all, DISHES.as_bytes());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(reason), "{stderr}");
    }
    let output = json_of(&["--temperature", "0", "--top-k", "5"]);
    let warning = "`top_k` has no effect at temperature 0";
    assert_eq!(output["warnings"], json!([warning]));
}

#[test]
fn the_model_says_what_the_user_does_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("generation_config.json");
    let config = r#"{"do_sample": true, "top_k": 3,
        "repetition_penalty": 1.1, "num_beams": 2}"#;
    std::fs::write(&file, config).expect("written");
    let path = file.to_str().expect("text");
    let output = json_of(&["--generation-config", path, "--mask", "0-5"]);
    assert_eq!(output["sampling"]["top_k"]["source"], "model");
    let warnings = output["warnings"].to_string();
    assert!(warnings.contains("off under a grammar"), "{warnings}");
    assert!(warnings.contains("`num_beams`"), "{warnings}");
}

#[test]
fn lines_are_answered_in_order_and_one_error_stays_alone() {
    let rows = [
        json!({ "id": "a", "logits": [1.0, null, 3.0],
            "parameters": { "top_k": 1 } }),
        json!({ "id": "b", "logits": [1.0], "parameters": { "top_q": 1 } }),
        json!({ "id": "c", "logits": [1.0, 2.0], "mask": [0],
            "history": [0, 0], "parameters": { "no_repeat_ngram_size": 1 } }),
        json!({ "id": "d", "logits": [null], "order": "vllm" }),
    ];
    let input = rows.map(|row| row.to_string()).join("\n");
    let output = run(&["--jsonl", "-"], input.as_bytes());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answers: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(answers.len(), 4);
    assert_eq!(answers[0]["id"], "a");
    assert_eq!(answers[0]["error"], Value::Null);
    assert_eq!(answers[0]["choice"]["token"], 2);
    assert_eq!(answers[0]["choice"]["probability"].as_f64(), Some(1.0));
    let error = answers[1]["error"].as_str().expect("an error");
    assert!(error.starts_with("line 2: "), "{error}");
    assert_eq!(answers[2]["yielded"], json!(["no_repeat_ngram"]));
    assert_eq!(answers[2]["choice"]["token"], 0);
    let error = answers[3]["error"].as_str().expect("an error");
    assert!(error.contains("no token is left"), "{error}");
}
