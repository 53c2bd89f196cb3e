//! `extract` with many documents, as a process: killed, interrupted, and on a
//! full disk.
#![cfg(unix)]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

#[path = "../src/model/testing/tiny.rs"]
#[expect(dead_code, reason = "the library's tests use the rest of it")]
mod tiny;

const N_DOCUMENTS: usize = 24;

/// A folder with a model, a schema and documents.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Case {
        let folder = tempfile::tempdir().expect("a folder");
        let case = Case { folder };
        for name in ["model", "in"] {
            fs::create_dir(case.path(name)).expect("a folder");
        }
        tiny::TinyModel::new().write_directory(&case.path("model"));
        let schema = r#"{"type": "object", "properties": {
            "a": {"type": "string", "maxLength": 8},
            "b": {"type": "integer", "minimum": 0, "maximum": 99}},
            "required": ["a", "b"], "additionalProperties": false}"#;
        fs::write(case.path("schema.json"), schema).expect("a file");
        for number in 0..N_DOCUMENTS {
            let text = format!("document {number}");
            let name = format!("in/{number:02}.txt");
            fs::write(case.path(&name), text).expect("a file");
        }
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn arguments(&self) -> Vec<String> {
        let path = |name| self.path(name).display().to_string();
        [
            "extract",
            "--schema",
            &path("schema.json"),
            "--input-dir",
            &path("in"),
            "--output",
            &path("out.jsonl"),
            "--model",
            &path("model"),
            "--max-tokens",
            "64",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maskwright"));
        command.args(self.arguments()).stderr(Stdio::piped());
        command
    }

    fn run(&self, more: &[&str]) -> (Output, String) {
        let output = self.command().args(more).output().expect("it starts");
        let stderr = String::from_utf8(output.stderr.clone()).expect("UTF-8");
        (output, stderr)
    }

    /// Starts the command, and returns it when so many documents are done.
    fn start(&self, n_done: usize) -> (Child, impl BufRead + use<>) {
        let mut child = self.command().spawn().expect("it starts");
        let stderr = child.stderr.take().expect("it is piped");
        let mut stderr = BufReader::new(stderr);
        let mut n_seen = 0;
        let mut line = String::new();
        while n_seen < n_done {
            line.clear();
            let n_read = stderr.read_line(&mut line).expect("UTF-8");
            assert!(n_read > 0, "it ended early");
            n_seen += usize::from(line.contains(".txt: "));
        }
        (child, stderr)
    }

    /// Returns the whole lines of the output.
    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("out.jsonl")).expect("a file");
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let parse = |line| serde_json::from_str(line).expect("a whole line");
        whole.lines().map(parse).collect()
    }

    /// Asserts that each document has one line.
    fn assert_whole(&self) {
        let text = fs::read_to_string(self.path("out.jsonl")).expect("a file");
        assert!(text.ends_with('\n'));
        let lines = self.lines();
        let files = lines.iter().filter_map(|line| line["file"].as_str());
        let expected = (0..N_DOCUMENTS).map(|n| format!("{n:02}.txt"));
        assert!(files.eq(expected), "{text}");
        for line in lines {
            assert!(line["value"]["a"].is_string(), "{line}");
            assert!(line["value"]["b"].is_number(), "{line}");
        }
    }
}

#[test]
fn killed_again_and_again_it_loses_nothing_and_does_nothing_twice() {
    let case = Case::new();
    let mut done = Vec::new();
    for _ in 0..3 {
        let (mut child, _stderr) = case.start(5);
        child.kill().expect("it is running");
        child.wait().expect("it was killed");
        let lines = case.lines();
        assert!(lines.len() >= done.len() + 5);
        assert_eq!(lines[..done.len()], done[..]);
        done = lines;
    }
    let (output, stderr) = case.run(&[]);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains(&format!("{} of 24 are done", done.len())));
    assert_eq!(case.lines()[..done.len()], done[..]);
    case.assert_whole();
}

#[test]
fn ctrl_c_ends_it_and_says_how_to_go_on() {
    let case = Case::new();
    let (mut child, mut stderr) = case.start(3);
    // The shell has one of its own; the program need not be there.
    let kill = format!("kill -INT {}", child.id());
    let sent = Command::new("sh").args(["-c", &kill]).status();
    assert!(sent.expect("it starts").success());
    let status = child.wait().expect("it was asked to end");
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut rest).expect("UTF-8");
    assert_eq!(status.code(), Some(130), "{rest}");
    assert!(rest.contains("the same command goes on from there"), "{rest}");
    assert!(case.lines().len() < N_DOCUMENTS);
    let (output, stderr) = case.run(&[]);
    assert!(output.status.success(), "{stderr}");
    case.assert_whole();
}

/// A limit on the size of files fails in the middle of a line, as a full disk
/// does.
#[test]
fn on_a_full_disk_the_file_stays_valid() {
    let case = Case::new();
    let script = "trap '' XFSZ; ulimit -f 4; exec \"$@\"";
    let program = env!("CARGO_BIN_EXE_maskwright");
    let output = Command::new("sh")
        .args(["-c", script, "sh", program])
        .args(case.arguments())
        .output()
        .expect("it starts");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(6), "{stderr}");
    assert!(stderr.contains("out.jsonl: the line of "), "{stderr}");
    assert!(stderr.contains("File too large"), "{stderr}");
    let text = fs::read_to_string(case.path("out.jsonl")).expect("a file");
    assert!(text.ends_with("}\n"), "{text}");
    let n_lines = case.lines().len();
    assert!((1..N_DOCUMENTS).contains(&n_lines));
    let (output, stderr) = case.run(&[]);
    assert!(output.status.success(), "{stderr}");
    case.assert_whole();
}

#[test]
fn failures_are_lines_that_are_counted_and_done_again() {
    let case = Case::new();
    fs::write(case.path("in/03.txt"), b"\xff").expect("a file");
    fs::write(case.path("in/04.txt"), "long ".repeat(500)).expect("a file");
    let (output, stderr) = case.run(&["--json-output"]);
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    assert!(
        stderr.contains("2 of 24 documents failed (1 not_utf8, 1 too_long)"),
        "{stderr}"
    );
    let summary: Value =
        serde_json::from_slice(&output.stdout).expect("a line of JSON");
    assert_eq!(summary["failed_by_kind"]["too_long"], 1);
    assert_eq!(case.lines()[4]["error"]["kind"], "too_long");
    for number in [3, 4] {
        let name = format!("in/{number:02}.txt");
        fs::write(case.path(&name), "short").expect("a file");
    }
    let (output, stderr) = case.run(&[]);
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    let (output, stderr) = case.run(&["--retry-failed"]);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(case.lines().len(), N_DOCUMENTS);
    // Another option would make other lines.
    let (output, stderr) = case.run(&["--escapes", "any"]);
    assert_eq!(output.status.code(), Some(6));
    assert!(stderr.contains("made with other options"), "{stderr}");
}
