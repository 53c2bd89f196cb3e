//! Masks from files are those that would be made.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Barrier},
    thread,
    time::{Duration, SystemTime},
};

use maskwright::{
    compiled::CompiledGrammar,
    compiler::{Compiler, GrammarSource},
    grammar::{
        GbnfOptions, Grammar, NamedGrammar, Order, SchemaOptions, ToolStyle,
        Whitespace,
    },
    interrupt::Interrupt,
    mask::TokenTrie,
    matcher::Matcher,
    precompute::PrecomputeEnd,
    saved::{GrammarFileError, SaveOptions, SavedError},
    vocabulary::TokenId,
};
use maskwright_tests::{
    maskbench,
    vocabularies::{Random, pieces},
};

/// Everything is saved, however quickly it was made.
fn all(max_places: usize) -> SaveOptions {
    let min_time = Duration::ZERO;
    SaveOptions { max_places, min_time, ..SaveOptions::default() }
}

fn compile(
    source: &GrammarSource,
    trie: &Arc<TokenTrie>,
) -> Arc<CompiledGrammar> {
    source.compile().expect("valid").compile(trie).expect("no atoms")
}

/// Goes on at random with two matchers whose masks must be the same. Returns
/// how many masks the second one had without making a walk.
fn compare(
    name: &str,
    [one, other]: [&Arc<CompiledGrammar>; 2],
    seed: u64,
    n_steps: usize,
) -> usize {
    let mut random = Random::new(seed);
    let [mut one, mut other] = [one, other]
        .map(|compiled| Matcher::new(Arc::clone(compiled)).expect("a start"));
    let mut n_hits = 0;
    for _ in 0..n_steps {
        let mask = one.mask().expect("a mask").clone();
        assert_eq!(other.mask(), Ok(&mask), "{name}: {}", one.describe());
        let stats = other.mask_stats();
        n_hits += usize::from(stats.is_hit());
        if random.chance(10) {
            assert_eq!(other.brute_force_mask(), Ok(mask.clone()), "{name}");
        }
        let tokens: Vec<TokenId> = mask.tokens().collect();
        let token = *random.pick(&tokens);
        one.accept(token).expect("a token of the mask");
        other.accept(token).expect("a token of the mask");
        if one.is_terminated() {
            break;
        }
    }
    n_hits
}

#[test]
fn masks_of_real_schemas_are_the_same_from_files() {
    let Some(entries) = maskbench::entries(70) else { return };
    let (mut n_schemas, mut n_texts, mut n_more) = (0, 0, 0);
    for (seed, entry) in (0..).zip(entries) {
        let source = GrammarSource::schema(entry.schema.to_string());
        if source.compile().is_err() {
            continue;
        }
        let trie = entry.pieces(seed);
        let user = compile(&source, &trie);
        user.remember_texts();
        for seed in 0..3 {
            compare(&entry.name, [&user, &user], seed, 20);
        }
        let saved = user.to_bytes(&all(40));
        let (bytes, report) = saved.expect("no limit");
        assert_eq!(report.n_bytes, bytes.len());
        let loaded = compile(&source, &trie);
        let places = loaded.load_bytes(&bytes).expect("just saved").n_places;
        assert_eq!(places, report.n_texts, "{}", entry.name);
        n_texts += places;
        n_schemas += 1;
        // Without the tries that other grammars have made already.
        let bare = TokenTrie::new(Arc::clone(trie.vocabulary()));
        let bare = compile(&source, &Arc::new(bare));
        for seed in 0..5 {
            let hits = compare(&entry.name, [&bare, &loaded], seed, 20);
            let new = compile(&source, &trie);
            let other = compare(&entry.name, [&bare, &new], seed, 20);
            n_more += hits.saturating_sub(other);
        }
    }
    assert!(n_schemas >= 50, "{n_schemas}");
    assert!(n_texts > n_schemas, "{n_texts}");
    assert!(n_more > n_schemas, "{n_more}");
}

const SCHEMA: &str = r#"{"type": "object", "properties": {
    "id": {"type": "string", "pattern": "^[a-c]{2,4}-[0-9]+$"},
    "kind": {"enum": ["plain", "other"]},
    "list": {"type": "array", "items": {"type": "integer"}}},
    "required": ["id"], "additionalProperties": false}"#;

fn trie() -> Arc<TokenTrie> {
    pieces(&[r#"{"id": "abc-120", "kind": "plain", "list": [1, 20]}"#], 1)
}

/// A file of a grammar that was used, and the grammar.
fn saved() -> (GrammarSource, Arc<TokenTrie>, Vec<u8>) {
    let (source, trie) = (GrammarSource::schema(SCHEMA), trie());
    let compiled = compile(&source, &trie);
    let (bytes, report) = compiled.to_bytes(&all(60)).expect("no limit");
    assert!(report.n_texts > 10, "{report:?}");
    assert!(report.n_masks <= report.n_texts, "{report:?}");
    assert_eq!(report.end, PrecomputeEnd::Places);
    (source, trie, bytes)
}

fn refused(
    compiled: &CompiledGrammar,
    bytes: &[u8],
) -> Option<GrammarFileError> {
    compiled.load_bytes(bytes).err()
}

#[test]
fn what_is_damaged_is_refused_and_changes_nothing() {
    let (source, trie, bytes) = saved();
    let compiled = compile(&source, &trie);
    for length in 0..bytes.len() {
        assert!(refused(&compiled, &bytes[..length]).is_some(), "{length}");
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        assert!(refused(&compiled, &changed).is_some(), "{at}");
    }
    let longer = [&bytes[..], b"x"].concat();
    let error = refused(&compiled, &longer);
    assert!(
        matches!(error, Some(GrammarFileError::Saved(SavedError::Damaged))),
        "{error:?}"
    );
    let error = refused(&compiled, b"{}").expect("no file of ours");
    assert!(error.to_string().contains("not one that"), "{error}");
    compare("damaged", [&compile(&source, &trie), &compiled], 1, 30);
    assert!(refused(&compiled, &bytes).is_none());
}

#[test]
fn what_was_made_of_something_else_is_refused() {
    let (source, trie, bytes) = saved();
    let is_other = |compiled: &CompiledGrammar, bytes: &[u8]| {
        let error = refused(compiled, bytes);
        assert!(
            matches!(error, Some(GrammarFileError::Saved(SavedError::Source))),
            "{error:?}"
        );
    };
    let mut options = SchemaOptions::default();
    options.text.whitespace = Whitespace::Compact;
    let compact = GrammarSource::Schema { schema: SCHEMA.to_owned(), options };
    is_other(&compile(&compact, &trie), &bytes);
    let mut options = SchemaOptions::default();
    options.text.order = Order::Any;
    let any = GrammarSource::Schema { schema: SCHEMA.to_owned(), options };
    is_other(&compile(&any, &trie), &bytes);
    let mut options = SchemaOptions::default();
    let document = serde_json::json!({"type": "null"});
    options.parse.documents.insert("urn:x".to_owned(), document);
    let more = GrammarSource::Schema { schema: SCHEMA.to_owned(), options };
    is_other(&compile(&more, &trie), &bytes);
    let other = GrammarSource::schema(format!("{SCHEMA} "));
    is_other(&compile(&other, &trie), &bytes);
    is_other(&compile(&source, &pieces(&["{\"id\"}"], 2)), &bytes);
    let version = bytes
        .windows(5)
        .position(|at| at == env!("CARGO_PKG_VERSION").as_bytes())
        .expect("the version is in the head");
    let mut older = bytes.clone();
    older[version] = b'9';
    let error = refused(&compile(&source, &trie), &older).expect("other");
    assert!(error.to_string().contains("Maskwright 9"), "{error}");
    let mut newer = bytes;
    newer[8] += 1;
    let error = refused(&compile(&source, &trie), &newer).expect("other");
    assert!(error.to_string().contains("version 2 of"), "{error}");
}

#[test]
fn all_kinds_of_sources_have_files() {
    let trie = trie();
    let tags = r#"{"triggers": ["<f"], "tags": [{"begin": "<f>",
        "regex": "[ab]+", "end": "</f>"}]}"#;
    let tools = r#"[{"name": "f", "parameters": {"type": "object"}}]"#;
    let sources = [
        GrammarSource::regex("(ab|c){2,5}x?"),
        GrammarSource::choices(["abc", "ab", "kind"]),
        GrammarSource::gbnf("root ::= \"a\" root? [b-d]{2,3}"),
        GrammarSource::Tags {
            json: tags.to_owned(),
            options: SchemaOptions::default(),
        },
        GrammarSource::Tools {
            json: tools.to_owned(),
            style: ToolStyle::Hermes,
            options: SchemaOptions::default(),
        },
        GrammarSource::Tools {
            json: tools.to_owned(),
            style: ToolStyle::Function,
            options: SchemaOptions::default(),
        },
    ];
    let mut files: Vec<Vec<u8>> = Vec::new();
    for source in &sources {
        let compiled = compile(source, &trie);
        let saved = compiled.to_bytes(&all(50)).expect("no limit");
        assert!(saved.1.n_texts > 0, "{source:?}");
        for (other, bytes) in sources.iter().zip(&files) {
            assert!(refused(&compiled, bytes).is_some(), "{other:?}");
        }
        let loaded = compile(source, &trie);
        loaded.load_bytes(&saved.0).expect("just saved");
        for seed in 0..4 {
            let plain = compile(source, &trie);
            compare("kinds", [&plain, &loaded], seed, 12);
        }
        files.push(saved.0);
    }
}

#[test]
fn what_has_no_text_has_no_file() {
    let trie = trie();
    let grammar = Grammar::from_regex("a+").expect("valid");
    let compiled = grammar.compile(&trie).expect("no atoms");
    let error = compiled.to_bytes(&all(1)).expect_err("no source");
    assert!(matches!(error, GrammarFileError::NoSource), "{error:?}");
    let mut options = GbnfOptions::default();
    let named = NamedGrammar::Grammar(grammar);
    options.grammars.insert("letters".to_owned(), named);
    let gbnf = "root ::= %grammar letters".to_owned();
    let source = GrammarSource::Gbnf { gbnf, options };
    let error = compile(&source, &trie).to_bytes(&all(1));
    let error = error.expect_err("an object").to_string();
    assert!(error.contains("\"letters\""), "{error}");
    // And a compiler with a directory does without.
    let folder = tempfile::tempdir().expect("a folder");
    let compiler = Compiler::new(1 << 30).with_directory(folder.path(), 1);
    let compilation = compiler.compile(&trie, &source).expect("valid");
    compare("objects", [&compilation.compiled, &compilation.compiled], 1, 5);
    let report = compiler.save(&all(10));
    assert!(report.warnings.is_empty(), "{report:?}");
    assert_eq!(report.n_written, 0);
    assert_eq!(compiler.stats().n_refused_files, 0);
}

#[test]
fn limits_end_a_file() {
    let compiled = compile(&GrammarSource::schema(SCHEMA), &trie());
    let (_, report) = compiled.to_bytes(&all(7)).expect("no limit");
    assert_eq!((report.n_places, report.end), (7, PrecomputeEnd::Places));
    let few = SaveOptions { max_bytes: 0, ..all(1_000) };
    let (_, report) = compiled.to_bytes(&few).expect("no limit");
    assert_eq!((report.n_texts, report.end), (0, PrecomputeEnd::Bytes));
    let interrupt = Interrupt::after(Duration::ZERO);
    let none = SaveOptions { interrupt, ..all(1_000) };
    let (bytes, report) = compiled.to_bytes(&none).expect("no limit");
    assert_eq!(report.end, PrecomputeEnd::Interrupted);
    compiled.load_bytes(&bytes).expect("a file without masks");
    let slow = Duration::from_mins(10);
    let dear = SaveOptions { min_time: slow, ..all(1_000) };
    let (_, report) = compiled.to_bytes(&dear).expect("no limit");
    assert_eq!((report.n_texts, report.n_masks), (0, 0));
}

/// A grammar with a pattern that takes long enough to be noted on any
/// machine, and a text of it.
fn slow(name: &str) -> (GrammarSource, String) {
    let schema = format!(
        r#"{{"type": "object", "properties": {{"{name}": {{"type": "string",
        "pattern": "^(\\w|[a-z]{{3,40}}\\d)+x?$"}}}},
        "required": ["{name}"], "additionalProperties": false}}"#
    );
    (GrammarSource::schema(schema), format!("{{\"{name}\": \"abc"))
}

/// Reads a text byte by byte with a mask before each.
fn read(compiled: &Arc<CompiledGrammar>, text: &str) {
    let mut matcher = Matcher::new(Arc::clone(compiled)).expect("a start");
    for byte in text.as_bytes().chunks(1) {
        matcher.mask().expect("a mask");
        matcher.accept_bytes(byte).expect("valid");
    }
}

fn large_trie() -> Arc<TokenTrie> {
    let words: Vec<String> =
        (0..4_000_u32).map(|n| format!("{:x}{n}\"", n * 7_919)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    pieces(&words, 3)
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn a_directory_outlives_its_compiler() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("not/there/yet");
    let start = || Compiler::new(1 << 30).with_directory(&path, 1 << 30);
    let trie = large_trie();
    let (source, text) = slow("a");
    let compiler = start();
    let compiled = compiler.compile(&trie, &source).expect("valid").compiled;
    assert_eq!(compiler.save(&all(0)).n_written, 0, "nothing was noted");
    read(&compiled, &text);
    let report = compiler.save(&all(0));
    assert!(report.warnings.is_empty(), "{report:?}");
    assert_eq!((report.n_written, report.n_removed), (1, 0));
    let files = files_in(&path);
    assert_eq!(files.len(), 1);
    let length = fs::metadata(&files[0]).expect("a file").len();
    assert_eq!(report.n_bytes, length);
    assert_eq!(compiler.save(&all(0)).n_written, 0, "nothing is new");

    let again = start();
    let loaded = again.compile(&trie, &source).expect("valid").compiled;
    let stats = again.stats();
    assert_eq!((stats.n_loaded, stats.n_refused_files), (1, 0));
    assert_eq!(again.save(&all(0)).n_written, 0, "the file has all");
    compare("directory", [&compiled, &loaded], 5, 20);

    // What cannot be used is ignored, and replaced.
    let bytes = fs::read(&files[0]).expect("a file");
    let mut newer = bytes.clone();
    newer[8] += 1;
    for bad in [&newer[..], b"", b"something else", &bytes[..90]] {
        fs::write(&files[0], bad).expect("a file");
        let again = start();
        let plain = again.compile(&trie, &source).expect("valid").compiled;
        assert_eq!(again.stats().n_refused_files, 1);
        compare("ignored", [&compiled, &plain], 6, 20);
        read(&plain, &text);
        assert_eq!(again.save(&all(0)).n_written, 1);
        start().compile(&trie, &source).expect("valid");
        assert_ne!(fs::read(&files[0]).expect("a file"), bad);
    }
    assert_eq!(files_in(&path), files);
}

#[test]
fn a_directory_is_bounded_and_leaves_others_files_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let trie = large_trie();
    let compiler = |max_bytes: u64| {
        Compiler::new(1 << 30).with_directory(path, max_bytes)
    };
    let write = |name: &str, max_bytes: u64| {
        let compiler = compiler(max_bytes);
        let (source, text) = slow(name);
        let compilation = compiler.compile(&trie, &source).expect("valid");
        read(&compilation.compiled, &text);
        compiler.save(&all(0))
    };
    let own = path.join("notes.masks");
    let part = path.join("0123456789abcdef.masks.1-0.part");
    fs::write(&own, "not ours").expect("a file");
    fs::write(&part, "begun").expect("a file");
    let first = write("a", 1 << 30);
    let n_bytes = first.n_bytes;
    let kept = |file: &PathBuf| *file != own && *file != part;
    let file = files_in(path).into_iter().find(kept).expect("the first one");
    // Long ago.
    let then = SystemTime::now() - Duration::from_secs(9_999);
    for file in [&file, &part] {
        let file = fs::File::options().append(true).open(file);
        file.and_then(|file| file.set_modified(then)).expect("a file");
    }
    let second = write("b", n_bytes * 3 / 2);
    assert_eq!((second.n_written, second.n_removed), (1, 1), "{second:?}");
    let left = files_in(path);
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.contains(&own) && !left.contains(&file), "{left:?}");
    let none = write("c", 0);
    assert_eq!((none.n_written, none.n_removed, none.n_bytes), (1, 2, 0));
    assert_eq!(files_in(path), [own]);
}

#[test]
fn a_directory_that_cannot_be_written_is_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a file");
    fs::write(&file, "in the way").expect("a file");
    let compiler =
        Compiler::new(1 << 30).with_directory(file.join("below"), 1 << 30);
    let trie = large_trie();
    let (source, text) = slow("a");
    let compilation = compiler.compile(&trie, &source).expect("valid");
    read(&compilation.compiled, &text);
    for _ in 0..2 {
        let report = compiler.save(&all(0));
        assert_eq!(report.n_written, 0);
        assert!(!report.warnings.is_empty());
        let warning = report.warnings[0].to_string();
        assert!(warning.contains("below"), "{warning}");
    }
}

/// Compilers in many threads, as processes would, with one directory.
#[test]
fn writers_do_not_disturb_one_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let trie = large_trie();
    let (source, text) = slow("a");
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for number in 0..4_u64 {
            let (trie, source, text, barrier) =
                (&trie, &source, &text, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for round in 0..6 {
                    let max_bytes = if number == 3 { 0 } else { 1 << 30 };
                    let compiler =
                        Compiler::new(1 << 30).with_directory(path, max_bytes);
                    let compilation =
                        compiler.compile(trie, source).expect("valid");
                    let stats = compiler.stats();
                    assert_eq!(stats.n_refused_files, 0);
                    let plain = compile(source, trie);
                    let both = [&plain, &compilation.compiled];
                    compare("writers", both, number * 10 + round, 6);
                    read(&compilation.compiled, text);
                    let report = compiler.save(&all(0));
                    assert!(report.warnings.is_empty(), "{report:?}");
                }
            });
        }
    });
    let left = files_in(path);
    assert!(
        left.iter().all(|file| file
            .extension()
            .is_some_and(|end| { end == "masks" }))
    );
}
