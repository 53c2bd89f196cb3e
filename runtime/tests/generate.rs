//! `generate` as a process, on a tiny model: what a model comes with for
//! sampling, and the page that shows a run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use candle_core::quantized::{GgmlDType, gguf_file::Value as GgufValue};
use serde_json::{Value, json};
use tempfile::TempDir;

#[path = "../src/model/testing/tiny.rs"]
#[expect(dead_code, reason = "the library's tests use the rest of it")]
mod tiny;

/// A folder with models.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Case {
        Case { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a model as a directory, with what is given as its
    /// `generation_config.json`.
    fn directory(&self, name: &str, config: Option<&Value>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).expect("a folder");
        tiny::TinyModel::new().write_directory(&path);
        if let Some(config) = config {
            let file = path.join("generation_config.json");
            fs::write(file, config.to_string()).expect("a file");
        }
        path
    }

    /// Writes a model as GGUF, with more metadata.
    fn gguf(&self, name: &str, more: &[(&str, GgufValue)]) -> PathBuf {
        let path = self.path(name);
        let model = tiny::TinyModel::new();
        model.write_gguf_with(&path, GgmlDType::F32, more);
        path
    }
}

fn generate(model: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maskwright"));
    command.args(["generate", "--raw", "--max-tokens", "24", "--model"]);
    command.arg(model).args(args).output().expect("it starts")
}

/// Returns the line of the one sequence. Without a grammar the tiny model
/// never ends, so that it is cut off.
fn line(model: &Path, args: &[&str]) -> Value {
    let args = [&["--prompt", "abc", "--json-output"], args].concat();
    let output = generate(model, &args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).expect("a line of JSON")
}

/// Asserts what is in effect, and who says so.
fn assert_setting(line: &Value, name: &str, value: f64, source: &str) {
    let setting = &line["sampling"][name];
    let given = setting["value"].as_f64().expect("a number");
    assert!((given - value).abs() < 1e-6, "{name}: {setting}");
    assert_eq!(setting["source"], source, "{name}: {setting}");
}

fn warned(line: &Value) -> Vec<String> {
    let warnings = line["sampling_warnings"].as_array().expect("a list");
    let text = |it: &Value| it.as_str().expect("a text").to_owned();
    warnings.iter().map(text).collect()
}

#[test]
fn the_defaults_of_a_directory_are_in_effect() {
    let case = Case::new();
    let config = json!({
        "do_sample": true, "temperature": 0.7, "top_k": 20, "top_p": 0.8,
        "repetition_penalty": 1.5, "num_beams": 4,
    });
    let plain = case.directory("plain", None);
    let advised = case.directory("advised", Some(&config));
    let flags: &[&str] =
        &["--temperature", "0.7", "--top-k", "20", "--top-p", "0.8"];
    let penalty: &[&str] = &["--repetition-penalty", "1.5"];
    let seed: &[&str] = &["--seed", "5"];

    let made = line(&advised, seed);
    for (name, value) in [
        ("temperature", 0.7),
        ("top_k", 20.0),
        ("top_p", 0.8),
        ("repetition_penalty", 1.5),
    ] {
        assert_setting(&made, name, value, "model");
    }
    assert_setting(&made, "seed", 5.0, "user");
    let told = warned(&made);
    assert_eq!(told, ["`num_beams` 4 of the model is not applied"]);
    let said = line(&plain, &[flags, penalty, seed].concat());
    assert_eq!(made["tokens"], said["tokens"]);
    assert_setting(&said, "top_p", 0.8, "user");
    // Without any of it the likeliest token is taken.
    let greedy = line(&plain, &[]);
    assert_setting(&greedy, "temperature", 0.0, "command");
    assert_ne!(made["tokens"], greedy["tokens"]);

    // The user comes first; what the user does not speak of stays.
    let zero: &[&str] = &["--temperature", "0"];
    let cold = line(&advised, zero);
    assert_setting(&cold, "temperature", 0.0, "user");
    assert_setting(&cold, "repetition_penalty", 1.5, "model");
    let said = line(&plain, &[zero, penalty].concat());
    assert_eq!(cold["tokens"], said["tokens"]);
    assert_ne!(cold["tokens"], greedy["tokens"]);

    // Under a grammar a penalty that nobody asked for is off.
    let grammar: &[&str] = &["--regex", "[a-f]{20}"];
    let ruled = line(&advised, &[grammar, seed].concat());
    assert_eq!(ruled["sampling"]["repetition_penalty"], Value::Null);
    assert!(warned(&ruled)[0].starts_with("`repetition_penalty` 1.5"));
    let said = line(&plain, &[grammar, flags, seed].concat());
    assert_eq!(ruled["text"], said["text"]);
    let asked = line(&advised, &[grammar, penalty, seed].concat());
    assert_setting(&asked, "repetition_penalty", 1.5, "user");
    assert_ne!(ruled["text"], asked["text"]);
}

#[test]
fn the_defaults_of_a_gguf_file_are_in_effect() {
    let case = Case::new();
    let plain = case.gguf("plain.gguf", &[]);
    let text = |text: &str| GgufValue::String(text.to_owned());
    let advised = case.gguf(
        "advised.gguf",
        &[
            ("general.sampling.temp", GgufValue::F32(0.9)),
            ("general.sampling.top_k", GgufValue::I32(30)),
            ("general.sampling.top_p", GgufValue::F32(0.7)),
            ("general.sampling.min_p", GgufValue::F32(0.05)),
            ("general.sampling.penalty_repeat", GgufValue::F32(1.5)),
            ("general.sampling.penalty_last_n", GgufValue::I32(6)),
            ("general.sampling.sequence", text("kfypmt")),
            ("general.sampling.xtc_threshold", text("much")),
        ],
    );
    let seed: &[&str] = &["--seed", "9"];
    let made = line(&advised, seed);
    for (name, value) in [
        ("temperature", 0.9),
        ("top_k", 30.0),
        ("top_p", 0.7),
        ("min_p", 0.05),
        ("repetition_penalty", 1.5),
        ("penalty_last_n", 6.0),
    ] {
        assert_setting(&made, name, value, "model");
    }
    let told = warned(&made);
    assert_eq!(told.len(), 2, "{told:?}");
    for key in ["sequence", "xtc_threshold"] {
        let start = format!("`general.sampling.{key}` ");
        assert!(told.iter().any(|it| it.starts_with(&start)), "{told:?}");
    }
    let flags: &[&str] = &[
        "--temperature",
        "0.9",
        "--top-k",
        "30",
        "--top-p",
        "0.7",
        "--min-p",
        "0.05",
        "--repetition-penalty",
        "1.5",
        "--penalty-last-n",
        "6",
    ];
    let said = line(&plain, &[flags, seed].concat());
    assert_eq!(made["tokens"], said["tokens"]);
    assert_ne!(made["tokens"], line(&plain, &[])["tokens"]);

    let mirostat = case.gguf(
        "mirostat.gguf",
        &[
            ("general.sampling.temp", GgufValue::F32(1.0)),
            ("general.sampling.mirostat", GgufValue::I32(2)),
            ("general.sampling.mirostat_tau", GgufValue::F32(1.5)),
            ("general.sampling.mirostat_eta", GgufValue::F32(0.3)),
        ],
    );
    let made = line(&mirostat, seed);
    assert_setting(&made, "mirostat", 2.0, "model");
    assert_setting(&made, "mirostat_tau", 1.5, "model");
    let flags: &[&str] = &[
        "--temperature",
        "1",
        "--mirostat",
        "2",
        "--mirostat-tau",
        "1.5",
        "--mirostat-eta",
        "0.3",
    ];
    let said = line(&plain, &[flags, seed].concat());
    assert_eq!(made["tokens"], said["tokens"]);
    let off = line(&mirostat, &[&["--mirostat", "0"], seed].concat());
    assert_ne!(made["tokens"], off["tokens"]);
}

/// What a browser would fetch, or follow to elsewhere. Text is escaped, so
/// that whatever begins with `<` is a tag.
fn references(html: &str) -> Vec<&str> {
    let tags = html.split('<').skip(1);
    let tags = tags.map(|rest| rest.split('>').next().unwrap_or(rest));
    let values = tags.flat_map(|tag| {
        let marks = [" src=", " href=", " srcset=", " action="];
        let found = marks.into_iter().filter_map(|mark| tag.split_once(mark));
        found.map(|(_, value)| value.trim_start_matches('"'))
    });
    values.filter(|value| !value.starts_with('#')).collect()
}

#[test]
fn a_trace_is_a_page_that_needs_nothing_else() {
    let case = Case::new();
    let model = case.directory("model", None);
    let page = case.path("out.html");
    // What stood there goes, as with every file that is named as an output.
    fs::write(&page, "x".repeat(1 << 20)).expect("a file");
    let hostile = "</script><img src=x onerror=alert(1)>&\"'";
    let regex = "[<>&](</script>|[a-c]{3})";
    let file = page.to_str().expect("UTF-8");
    let args = ["--prompt", hostile, "--regex", regex, "--trace", file];
    let output = generate(&model, &args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let html = fs::read_to_string(&page).expect("a page");
    assert!(html.starts_with("<!doctype html>") && html.len() < 1 << 20);
    assert!(html.trim_end().ends_with("</html>"));

    // One file: whatever it links to is within it.
    assert_eq!(references(&html), [""; 0]);
    for elsewhere in ["http:", "https:", "url(", "@import", "fetch("] {
        assert!(!html.contains(elsewhere), "{elsewhere}");
    }
    // Its only script and style are its own, and nothing of the prompt, the
    // grammar or the text is markup.
    assert_eq!(html.matches("<script").count(), 1);
    assert_eq!(html.matches("</script").count(), 1);
    assert!(!html.contains("<img") && !html.contains(hostile));
    assert!(!html.contains(regex));
    assert!(html.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)"));
    assert!(html.contains("&lt;/script&gt;|[a-c]{3}"));

    // The tokens of the run, one byte each, in their order.
    let chosen: Vec<String> = html
        .match_indices("<code class=\"chosen-token\"><bdi>")
        .map(|(at, mark)| &html[at + mark.len()..])
        .filter_map(|rest| rest.split("</bdi>").next())
        .map(str::to_owned)
        .collect();
    let escaped: Vec<String> = text
        .trim_end()
        .chars()
        .map(|it| match it {
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '&' => "&amp;".to_owned(),
            other => other.to_string(),
        })
        .collect();
    assert!(chosen.len() >= 4, "{text}");
    assert_eq!(chosen, escaped);
    // The model has no bent for any of it: something stronger is forbidden.
    assert!(html.contains("<span class=\"instead\">forbidden: <code>"));

    // Where it cannot be written, that is said, with the path.
    let nowhere = case.path("none/out.html");
    let nowhere = nowhere.to_str().expect("UTF-8");
    let args = ["--prompt", "a", "--regex", "b", "--trace", nowhere];
    let output = generate(&model, &args);
    assert_eq!(output.status.code(), Some(6));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(nowhere), "{stderr}");
}

#[test]
fn a_result_tells_what_it_depends_on() {
    let case = Case::new();
    let plain = case.directory("plain", None);
    let packed = case.gguf("packed.gguf", &[]);
    let of =
        |model: &Path, args: &[&str]| line(model, args)["fingerprint"].clone();
    let one = of(&plain, &["--seed", "1", "--threads", "1"]);
    assert_eq!(one["model"].as_str().map(str::len), Some(64), "{one}");
    let computation = one["computation"].as_str().expect("a text");
    assert!(computation.starts_with("cpu, "), "{one}");
    assert!(computation.ends_with("F32"), "{one}");
    // The number of threads changes nothing, so it is no part of it.
    assert_eq!(of(&plain, &["--seed", "1", "--threads", "2"]), one);
    assert_ne!(of(&packed, &["--seed", "1"])["model"], one["model"]);
    let hot = of(&plain, &["--seed", "1", "--temperature", "2"]);
    assert_ne!(hot["options"], one["options"]);
}

#[test]
fn a_context_that_the_model_has_not_is_refused() {
    let case = Case::new();
    let model = case.directory("plain", None);
    let output = generate(&model, &["--prompt", "abc", "--context", "601"]);
    assert_eq!(output.status.code(), Some(4));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("601") && stderr.contains("600"), "{stderr}");
}
