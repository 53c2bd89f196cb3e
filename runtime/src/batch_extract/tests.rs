use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;

use super::{
    BatchError, Document, Event, Extracted, Journal, MAX_BYTES, Name, Outcome,
    Problem, RunId, Summary, run,
};

/// A folder with documents, and a place for the output.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new(files: &[(&str, &[u8])]) -> Case {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("in")).expect("a folder");
        let case = Case { folder };
        for (name, bytes) in files {
            fs::write(case.input().join(name), bytes).expect("a file");
        }
        case
    }

    /// Five documents, of which `c` fails.
    fn five() -> Case {
        let files = ["a", "b", "c", "d", "e"];
        let files = files.map(|name| (name, name.as_bytes()));
        Case::new(&files)
    }

    fn input(&self) -> PathBuf {
        self.folder.path().join("in")
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("out.jsonl")
    }

    fn documents(&self) -> Vec<Document> {
        Document::from_directory(&self.input(), &self.output())
            .expect("a folder")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.output()).expect("an output")
    }

    /// Runs with `extract`, and returns which texts it was asked for.
    fn run_with(
        &self,
        mut extract: impl FnMut(&str) -> Outcome,
    ) -> (Summary, Vec<String>) {
        let mut journal = Journal::open(&self.output(), id()).expect("ours");
        let mut asked = Vec::new();
        let mut noting = |text: &str| {
            asked.push(text.to_owned());
            extract(text)
        };
        let documents = self.documents();
        let summary = run(&documents, &mut journal, &mut noting, &mut |_| ())
            .expect("room on the disk");
        (summary, asked)
    }

    fn run(&self) -> (Summary, Vec<String>) {
        self.run_with(upper)
    }
}

fn id() -> RunId {
    RunId::of("schema", "model", "options")
}

fn upper(text: &str) -> Outcome {
    match text {
        "c" => Outcome::Failed(Problem::new("no_c", "c is not liked")),
        text => Outcome::Extracted(Extracted::new(text.to_uppercase().into())),
    }
}

fn open(path: &Path) -> Result<Journal, BatchError> {
    Journal::open(path, id())
}

#[test]
fn there_is_one_line_a_document_in_the_order_of_names() {
    let case = Case::five();
    let (summary, asked) = case.run();
    assert_eq!(asked, ["a", "b", "c", "d", "e"]);
    assert_eq!((summary.n_extracted, summary.failures.len()), (4, 1));
    let lines: Vec<serde_json::Value> = case
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let files: Vec<&str> =
        lines.iter().filter_map(|line| line["file"].as_str()).collect();
    assert_eq!(files, asked);
    assert_eq!(lines[0]["value"], "A");
    assert_eq!(lines[2]["error"]["kind"], "no_c");
    assert!(lines[2].get("value").is_none());
}

/// A power cut takes what is not on the disk yet: nothing if lines are
/// brought there one by one, and in any case nothing once the work has ended,
/// however it did.
#[test]
fn lines_are_brought_onto_the_disk_while_the_work_goes_on() {
    for (sync_every, are_synced) in
        [(Duration::ZERO, true), (Duration::MAX, false)]
    {
        let case = Case::five();
        let mut journal = open(&case.output()).expect("a file");
        journal.sync_every = sync_every;
        let text = Extracted::new("a".into());
        for number in 1..=3 {
            let outcome = Outcome::Extracted(text.clone());
            journal.write(&Name::Line(number), &outcome).expect("room");
            let len = case.text().len() as u64;
            let expected = if are_synced { len } else { 0 };
            assert_eq!(journal.n_synced(), expected);
        }
        journal.sync().expect("a disk");
        let len = case.text().len() as u64;
        assert_eq!(journal.n_synced(), len);
        drop(journal);
        // What was there before is on the disk before anything is added.
        let journal = open(&case.output()).expect("ours");
        assert_eq!(journal.n_synced(), len);
    }
    let case = Case::five();
    let mut journal = open(&case.output()).expect("a file");
    journal.sync_every = Duration::MAX;
    let mut stop = |text: &str| match text {
        "d" => Outcome::Cancelled,
        text => upper(text),
    };
    let summary = run(&case.documents(), &mut journal, &mut stop, &mut |_| ());
    assert!(summary.expect("room").is_cancelled);
    assert_eq!(journal.n_synced(), case.text().len() as u64);
    // Taking lines out is brought there, too.
    assert_eq!(journal.forget_failures().expect("room"), 1);
    assert_eq!(journal.n_synced(), case.text().len() as u64);
}

/// Whatever the length at which a kill or a power cut ended the file, the
/// next run makes it what it would have been, and does nothing twice.
#[test]
fn an_output_that_was_cut_anywhere_is_finished() {
    let case = Case::five();
    case.run();
    let whole = case.text();
    for n_kept in 0..=whole.len() {
        fs::write(case.output(), &whole[..n_kept]).expect("a file");
        let n_lines = whole[..n_kept].matches('\n').count();
        let (summary, asked) = case.run();
        assert_eq!(case.text(), whole, "cut after {n_kept} bytes");
        assert_eq!(asked.len(), 5 - n_lines, "cut after {n_kept} bytes");
        assert_eq!(summary.n_before, n_lines);
        assert_eq!(summary.failures.len(), 1);
    }
}

#[test]
fn cancelling_leaves_whole_lines_and_the_next_run_goes_on() {
    let case = Case::five();
    let (summary, _) = case.run_with(|text| match text {
        "d" => Outcome::Cancelled,
        text => upper(text),
    });
    assert!(summary.is_cancelled);
    assert_eq!(summary.n_done(), 3);
    assert_eq!(case.text().lines().count(), 3);
    let (summary, asked) = case.run();
    assert_eq!(asked, ["d", "e"]);
    assert!(!summary.is_cancelled);
    assert_eq!(summary.n_done(), 5);
}

#[test]
fn failures_are_done_again_only_when_asked_for() {
    let case = Case::five();
    case.run();
    let (summary, asked) = case.run();
    assert!(asked.is_empty());
    assert!(summary.failures[0].was_before);
    let mut journal = open(&case.output()).expect("ours");
    assert_eq!(journal.forget_failures().expect("room"), 1);
    assert_eq!(journal.forget_failures().expect("room"), 0);
    // The new file is locked as the old one was.
    let busy = open(&case.output()).expect_err("locked");
    assert!(matches!(busy, BatchError::Busy { .. }), "{busy}");
    drop(journal);
    let like = |text: &str| {
        Outcome::Extracted(Extracted::new(text.to_uppercase().into()))
    };
    let (summary, asked) = case.run_with(like);
    assert_eq!(asked, ["c"]);
    assert!(summary.failures.is_empty());
    let text = case.text();
    assert_eq!(text.lines().count(), 5);
    assert!(!text.contains("error"));
    let n_files = fs::read_dir(case.folder.path()).expect("a folder").count();
    assert_eq!(n_files, 2, "nothing else is left behind");
}

#[test]
fn a_file_of_somebody_else_is_left_as_it_is() {
    let case = Case::five();
    case.run();
    let ours = case.text();
    let (first, rest) = ours.split_once('\n').expect("lines");
    let other = RunId::of("schema", "other model", "other options");
    for (text, said) in [
        ("dear diary\n".to_owned(), "line 1 is not"),
        ("dear diary".to_owned(), "line 1 is not"),
        ("\n".to_owned(), "line 1 is not"),
        ("{\"file\": \"a\"}\n".to_owned(), "line 1 is not"),
        (first.replace("\"a\"", "1") + "\n", "line 1 is not"),
        (format!("{first}\nnotes\n{rest}"), "line 2 is not"),
        (format!("{first}\nnotes"), "line 2 is not"),
        (format!("{first}\n\u{0}\u{0}"), "line 2 is not"),
    ] {
        fs::write(case.output(), &text).expect("a file");
        let error = open(&case.output()).expect_err("not ours").to_string();
        assert!(error.contains(said), "{text:?}: {error}");
        assert_eq!(case.text(), text);
    }
    fs::write(case.output(), &ours).expect("a file");
    let error = Journal::open(&case.output(), other).expect_err("another");
    let said = "line 1 was made with other model and options";
    assert!(error.to_string().contains(said), "{error}");
    assert_eq!(case.text(), ours);
    let error = open(&case.input()).expect_err("a directory");
    assert!(matches!(error, BatchError::NotAFile { .. }), "{error}");
}

#[test]
fn what_cannot_be_read_is_a_line() {
    let case = Case::new(&[
        (".hidden", b"x"),
        ("bytes", b"caf\xe9"),
        ("fine", "cafÉ".as_bytes()),
    ]);
    fs::create_dir(case.input().join("more")).expect("a folder");
    let huge = fs::File::create(case.input().join("huge")).expect("a file");
    huge.set_len(MAX_BYTES + 1).expect("a sparse file");
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", case.input().join("gone"))
        .expect("a link");
    let (summary, asked) = case.run();
    assert_eq!(asked, ["cafÉ"]);
    let kinds: Vec<(String, &str)> = summary
        .failures
        .iter()
        .map(|it| (it.name.to_string(), &*it.problem.kind))
        .collect();
    let kind = |name: &str| {
        let found = kinds.iter().find(|(it, _)| it == name);
        found.map(|&(_, kind)| kind)
    };
    assert_eq!(kind("bytes"), Some("not_utf8"));
    assert_eq!(kind("huge"), Some("too_long"));
    #[cfg(unix)]
    assert_eq!(kind("gone"), Some("unreadable"));
    assert!(summary.failures[0].problem.message.contains("byte 3"));
}

#[test]
fn an_output_among_the_documents_is_none_of_them() {
    let case = Case::five();
    let output = case.input().join("out.jsonl");
    for _ in 0..2 {
        let mut journal = open(&output).expect("ours");
        let documents = Document::from_directory(&case.input(), &output)
            .expect("a folder");
        assert_eq!(documents.len(), 5);
        run(&documents, &mut journal, &mut upper, &mut |_| ())
            .expect("room on the disk");
    }
}

#[test]
fn lines_are_documents_by_their_ids() {
    let case = Case::new(&[]);
    let lines = br#"{"text": "a"}
        {"id": "x\n", "text": "b", "more": [1]}

        {"id": 12345678901234567890123, "text": "d"}
        {"id": ["y"], "text": "e"}
        no JSON"#;
    let documents = Document::from_jsonl(lines).expect("distinct ids");
    let names: Vec<&Name> = documents.iter().map(Document::name).collect();
    assert_eq!(*names[1], Name::Id(r#""x\n""#.to_owned()));
    for n_new in [5, 0] {
        let mut journal = open(&case.output()).expect("ours");
        let summary = run(&documents, &mut journal, &mut upper, &mut |_| ())
            .expect("room on the disk");
        assert_eq!(summary.n_documents - summary.n_before, n_new);
        assert_eq!(summary.failures.len(), 2);
    }
    let text = case.text();
    assert!(text.contains(r#""id":12345678901234567890123,"#), "{text}");
    assert!(text.contains(r#""line":6,"error":{"kind":"bad_line""#));
    let error = Document::from_jsonl(
        b"{\"id\": 1, \"text\": \"\"}\n\n{\"id\": 1, \"text\": \"\"}",
    );
    let error = error.expect_err("one id twice").to_string();
    assert!(error.contains("lines 1 and 3"), "{error}");
}

#[test]
fn whoever_watches_is_told_of_each_document() {
    let case = Case::five();
    let mut journal = open(&case.output()).expect("ours");
    let mut seen = Vec::new();
    run(&case.documents(), &mut journal, &mut upper, &mut |event| {
        seen.push(match event {
            Event::Start { n_documents, n_before } => {
                format!("{n_before} of {n_documents}")
            }
            Event::Begin(name) => format!("+{name}"),
            Event::End { name, n_done, .. } => format!("-{name} {n_done}"),
        });
    })
    .expect("room on the disk");
    assert_eq!(&seen[..3], ["0 of 5", "+a", "-a 1"]);
    assert_eq!(seen.len(), 11);
}
