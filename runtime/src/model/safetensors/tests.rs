use std::fs;

use tempfile::TempDir;

use super::*;

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// A file with one tensor of one value.
fn one(tensor: &str, value: f32) -> Vec<u8> {
    let header = format!(
        r#"{{"{tensor}":
            {{"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}}}"#
    );
    file(&header, &value.to_le_bytes())
}

fn directory(files: &[(&str, Vec<u8>)]) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, bytes) in files {
        fs::write(directory.path().join(name), bytes).expect("a file");
    }
    directory
}

fn open(header: &str, data: &[u8]) -> Result<Safetensors, ModelError> {
    let directory = directory(&[("m.safetensors", file(header, data))]);
    Safetensors::open(directory.path())
}

fn refusal(files: &[(&str, Vec<u8>)]) -> String {
    let directory = directory(files);
    let error = Safetensors::open(directory.path()).expect_err("a lie");
    error.to_string()
}

#[test]
fn reads_what_the_header_describes() {
    let data: Vec<u8> =
        [1.0f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let header = r#"{"__metadata__": {"format": "pt"},
        "w": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}}"#;
    let mut file = open(header, &data).expect("valid");
    assert_eq!(file.names().collect::<Vec<_>>(), ["w"]);
    assert_eq!(file.shape("w"), Some(&[1, 2][..]));
    let (tensor, _) = file.tensor("w").expect("readable").expect("present");
    assert_eq!(tensor.to_vec2::<f32>().expect("2d"), [[1.0, -2.0]]);
    assert!(file.tensor("v").expect("readable").is_none());
}

#[test]
fn half_precision_stays_what_it_is() {
    let header = r#"{
        "b": {"dtype": "BF16", "shape": [1], "data_offsets": [2, 4]},
        "h": {"dtype": "F16", "shape": [1], "data_offsets": [0, 2]}}"#;
    let mut file = open(header, &[0, 0x3c, 0x80, 0x3f]).expect("valid");
    for (name, dtype, bytes) in
        [("h", DType::F16, [0, 0x3c]), ("b", DType::BF16, [0x80, 0x3f])]
    {
        let found = file.tensor_bytes(name).expect("readable");
        assert_eq!(found, Some((dtype, vec![1], bytes.to_vec())));
        let (tensor, _) =
            file.tensor(name).expect("readable").expect("present");
        assert_eq!(tensor.to_vec1::<f32>().expect("1d"), [1.0]);
    }
}

#[test]
fn other_types_are_refused_by_name_when_they_are_asked_for() {
    for dtype in ["F64", "I64", "Q9"] {
        let header = format!(
            r#"{{"w": {{"dtype": "{dtype}", "shape": [1],
                "data_offsets": [0, 8]}}}}"#
        );
        let mut file = open(&header, &[0; 8]).expect("valid");
        let error = file.tensor("w").expect_err("unsupported").to_string();
        assert!(error.contains("\"w\"") && error.contains(dtype), "{error}");
    }
}

#[test]
fn a_header_that_lies_is_an_error() {
    let entry = |rest: &str| format!(r#"{{"w": {{{rest}}}}}"#);
    for (header, expected) in [
        ("{".to_owned(), "the header"),
        ("[]".to_owned(), "an entry for each tensor"),
        (
            entry(r#""dtype": "F32", "shape": [2], "data_offsets": [0, 4]"#),
            "do not fit shape [2]",
        ),
        (
            entry(r#""dtype": "F32", "shape": [9], "data_offsets": [0, 36]"#),
            "0..36 are not in 0..8",
        ),
        (
            entry(r#""dtype": "F32", "shape": [1], "data_offsets": [4, 0]"#),
            "4..0 are not in",
        ),
        (
            entry(
                r#""dtype": "F32", "shape": [9999999999999, 9999999999],
                "data_offsets": [0, 8]"#,
            ),
            "do not fit shape",
        ),
        (
            entry(
                r#""dtype": "F32", "shape": [18446744073709551616],
                "data_offsets": [0, 8]"#,
            ),
            "the header",
        ),
        (
            entry(r#""dtype": "F32", "shape": [1], "data_offsets": [4, 8]"#),
            "begins at offset 4",
        ),
        (
            entry(r#""dtype": "F32", "shape": [1], "data_offsets": [0, 4]"#),
            "4 bytes behind the last tensor",
        ),
        (
            r#"{"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                "v": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}"#
                .to_owned(),
            "begins at offset 0",
        ),
        (
            r#"{"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                "w": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}"#
                .to_owned(),
            "two tensors are named \"w\"",
        ),
        (
            r#"{"w": {"dtype": "I8", "shape": [1], "data_offsets": [0, 1]},
                "v": {"dtype": "F16", "shape": [1], "data_offsets": [1, 3]}}"#
                .to_owned(),
            "offset 1 is not aligned for F16",
        ),
    ] {
        let found = open(&header, &[0; 8]).expect_err("a lie").to_string();
        assert!(found.contains(expected), "{found:?} is not {expected:?}");
    }
    let huge = u64::MAX.to_le_bytes().to_vec();
    let found = refusal(&[("m.safetensors", huge)]);
    assert!(found.contains("18446744073709551615"), "{found}");
    assert!(open("", b"").is_err());
}

fn index(map: &str) -> (&'static str, Vec<u8>) {
    let text = format!(r#"{{"metadata": {{}}, "weight_map": {map}}}"#);
    ("model.safetensors.index.json", text.into_bytes())
}

#[test]
fn only_the_files_of_an_index_are_read() {
    let directory = directory(&[
        index(r#"{"a": "1.safetensors", "b": "2.safetensors"}"#),
        ("1.safetensors", one("a", 1.0)),
        ("2.safetensors", one("b", 2.0)),
        ("consolidated.safetensors", one("a", 3.0)),
    ]);
    let mut files = Safetensors::open(directory.path()).expect("complete");
    assert_eq!(files.names().collect::<Vec<_>>(), ["a", "b"]);
    let (tensor, _) = files.tensor("a").expect("readable").expect("present");
    assert_eq!(tensor.to_vec1::<f32>().expect("1d"), [1.0]);
}

#[test]
fn files_that_contradict_their_index_are_errors() {
    let first = || ("1.safetensors", one("a", 1.0));
    let second = || ("2.safetensors", one("b", 2.0));
    let both = r#"{"a": "1.safetensors", "b": "2.safetensors"}"#;
    for (files, expected) in [
        (vec![index(both), first()], "2.safetensors"),
        (
            vec![index(r#"{"b": "1.safetensors"}"#), first()],
            "tensor \"b\" is not in 1.safetensors",
        ),
        (
            vec![
                index(r#"{"a": "2.safetensors", "b": "1.safetensors"}"#),
                first(),
                second(),
            ],
            "not in 2.safetensors",
        ),
        (
            vec![index(both), first(), ("2.safetensors", one("a", 2.0))],
            "tensor \"a\" is also in",
        ),
        (vec![index(r#"{"a": "../1.safetensors"}"#)], "../1.safetensors"),
        (vec![index(r#"{"a": "/etc/passwd"}"#)], "/etc/passwd"),
        (vec![index("{}")], "names no tensor"),
        (vec![("model.safetensors.index.json", vec![b'{'])], "index.json"),
    ] {
        let found = refusal(&files);
        assert!(found.contains(expected), "{found:?} is not {expected:?}");
    }
}

#[test]
fn without_an_index_no_tensor_may_be_in_two_files() {
    let found = refusal(&[
        ("1.safetensors", one("a", 1.0)),
        ("2.safetensors", one("a", 2.0)),
    ]);
    assert!(found.contains("1.safetensors") && found.contains("\"a\""));
    assert!(refusal(&[]).contains("no .safetensors file"));
}
