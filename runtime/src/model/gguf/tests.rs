//! Files made by hand: honest ones, and one for each lie.

use candle_core::Device;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// The bytes of a file, field by field.
#[derive(Clone, Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn header(version: u32, n_tensors: u64, n_entries: u64) -> Bytes {
        Bytes(b"GGUF".to_vec()).u32(version).u64(n_tensors).u64(n_entries)
    }

    fn raw(mut self, bytes: &[u8]) -> Bytes {
        self.0.extend(bytes);
        self
    }

    fn u16(self, value: u16) -> Bytes {
        self.raw(&value.to_le_bytes())
    }

    fn u32(self, value: u32) -> Bytes {
        self.raw(&value.to_le_bytes())
    }

    fn u64(self, value: u64) -> Bytes {
        self.raw(&value.to_le_bytes())
    }

    fn string(self, bytes: &[u8]) -> Bytes {
        self.u64(bytes.len() as u64).raw(bytes)
    }

    /// A key and the type of its value.
    fn key(self, key: &str, kind: u32) -> Bytes {
        self.string(key.as_bytes()).u32(kind)
    }

    fn tensor(
        self,
        name: &str,
        dimensions: &[u64],
        kind: u32,
        offset: u64,
    ) -> Bytes {
        let n_dimensions = u32::try_from(dimensions.len()).expect("few");
        let start = self.string(name.as_bytes()).u32(n_dimensions);
        dimensions
            .iter()
            .fold(start, |bytes, dimension| bytes.u64(*dimension))
            .u32(kind)
            .u64(offset)
    }

    fn pad(mut self, alignment: usize) -> Bytes {
        self.0.resize(self.0.len().next_multiple_of(alignment), 0);
        self
    }
}

/// Every type of value and two tensors.
fn good() -> Bytes {
    let mut bytes = Bytes::header(3, 2, 19);
    let scalars: [(u32, &[u8]); 11] = [
        (0, &[7]),
        (1, &[0xf9]),
        (2, &[7, 0]),
        (3, &[0xf9, 0xff]),
        (4, &[7, 0, 0, 0]),
        (5, &[7, 0, 0, 0]),
        (6, &[0, 0, 0x80, 0x3f]),
        (7, &[1]),
        (10, &[7, 0, 0, 0, 0, 0, 0, 0]),
        (11, &[0xf9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        (12, &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
    ];
    for (kind, value) in scalars {
        bytes = bytes.key(&format!("scalar.{kind}"), kind).raw(value);
    }
    bytes = bytes
        .key("text", 8)
        .string("Gr\u{fc}\u{df}e".as_bytes())
        .key("broken", 8)
        .string(b"\xff")
        .key("texts", 9)
        .u32(8)
        .u64(2)
        .string(b"a")
        .string(b"")
        .key("flags", 9)
        .u32(7)
        .u64(2)
        .raw(&[0, 1])
        .key("numbers", 9)
        .u32(2)
        .u64(2)
        .u16(1)
        .u16(2)
        .key("floats", 9)
        .u32(6)
        .u64(1)
        .raw(&1.5f32.to_le_bytes())
        .key("nested", 9)
        .u32(9)
        .u64(2)
        .u32(0)
        .u64(1)
        .raw(&[5])
        .u32(8)
        .u64(0)
        .key("general.alignment", 4)
        .u32(64);
    bytes = bytes
        .tensor("small", &[3], 0, 0)
        .tensor("blocks", &[32, 2], 2, 64)
        .pad(64);
    for value in [1.0f32, 2.0, 3.0] {
        bytes = bytes.raw(&value.to_le_bytes());
    }
    bytes.pad(64).raw(&[0x11; 36])
}

fn write(bytes: &Bytes) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("m.gguf");
    std::fs::write(&path, &bytes.0).expect("a temporary file");
    (directory, path)
}

fn open(bytes: &Bytes) -> Result<Gguf, ModelError> {
    let (_directory, path) = write(bytes);
    Gguf::open(&path)
}

/// Opens a file that must be refused, and returns why.
fn refusal(bytes: &Bytes) -> String {
    open(bytes).expect_err("a lie").to_string()
}

#[test]
fn every_type_of_value_is_read() {
    let gguf = open(&good()).expect("honest");
    let get = |key: &str| gguf.get(key).cloned().expect("present");
    assert_eq!(get("scalar.0"), Value::U8(7));
    assert_eq!(get("scalar.1"), Value::I8(-7));
    assert_eq!(get("scalar.2"), Value::U16(7));
    assert_eq!(get("scalar.3"), Value::I16(-7));
    assert_eq!(get("scalar.4"), Value::U32(7));
    assert_eq!(get("scalar.5"), Value::I32(7));
    assert_eq!(get("scalar.6"), Value::F32(1.0));
    assert_eq!(get("scalar.7"), Value::Bool(true));
    assert_eq!(get("scalar.10"), Value::U64(7));
    assert_eq!(get("scalar.11"), Value::I64(-7));
    assert_eq!(get("scalar.12"), Value::F64(1.0));
    assert_eq!(get("broken"), Value::Bytes(vec![0xff]));
    assert_eq!(get("flags"), Value::Array(Array::Bool(vec![false, true])));
    let nested = vec![Array::U8(vec![5]), Array::String(Vec::new())];
    assert_eq!(get("nested"), Value::Array(Array::Array(nested)));
    assert_eq!(gguf.keys().count(), 19);
}

#[test]
fn getters_convert_and_name_the_key_of_a_wrong_type() {
    let gguf = open(&good()).expect("honest");
    assert_eq!(gguf.text("text").expect("a text"), Some("Gr\u{fc}\u{df}e"));
    assert_eq!(gguf.text("absent").expect("nothing"), None);
    assert_eq!(gguf.integer("scalar.5").expect("an integer"), Some(7));
    assert_eq!(gguf.float("scalar.12").expect("a float"), Some(1.0));
    assert_eq!(gguf.flag("scalar.7").expect("a flag"), Some(true));
    assert_eq!(gguf.texts("texts").expect("texts"), Some(vec!["a", ""]));
    assert_eq!(gguf.integers("numbers").expect("integers"), Some(vec![1, 2]));
    assert_eq!(gguf.floats("floats").expect("floats"), Some(vec![1.5]));
    let error = gguf.integer("scalar.11").expect_err("negative").to_string();
    assert!(error.contains("scalar.11"), "{error}");
    assert!(gguf.text("broken").is_err());
    assert!(gguf.texts("flags").is_err());
}

#[test]
fn tensors_are_read_by_name() {
    let (_directory, path) = write(&good());
    let mut gguf = Gguf::open(&path).expect("honest");
    assert_eq!(gguf.tensor_names().collect::<Vec<_>>(), ["blocks", "small"]);
    assert_eq!(gguf.tensor_shape("blocks"), Some(vec![2, 32]));
    let block = gguf.tensor_dtype("blocks").expect("present");
    assert_eq!(block.name, "Q4_0");
    let small = gguf.tensor("small", &Device::Cpu).expect("readable");
    let values = small
        .dequantize(&Device::Cpu)
        .and_then(|tensor| tensor.to_vec1::<f32>())
        .expect("floats");
    assert_eq!(values, [1.0, 2.0, 3.0]);
    let blocks = gguf.tensor("blocks", &Device::Cpu).expect("readable");
    assert_eq!(blocks.data().expect("bytes").as_ref(), [0x11; 36]);
    let error = gguf.tensor("none", &Device::Cpu).expect_err("absent");
    assert!(error.to_string().contains("none"), "{error}");
}

#[test]
fn every_type_that_is_computed_with_is_read_at_any_address() {
    for kind in [0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 30] {
        let block = BlockType::by_id(kind).expect("known");
        let bytes = Bytes::header(2, 1, 0)
            .tensor("w", &[block.n_values as u64], kind, 0)
            .pad(32)
            .raw(&vec![0x11; block.n_bytes]);
        let (_directory, path) = write(&bytes);
        let mut gguf = Gguf::open(&path).expect("honest");
        let tensor = gguf.tensor("w", &Device::Cpu).expect("readable");
        assert_eq!(tensor.shape().dims(), [block.n_values]);
    }
}

#[test]
fn a_type_that_nothing_computes_with_is_refused_when_asked_for() {
    let bytes = Bytes::header(3, 1, 0)
        .tensor("w", &[256], 23, 0)
        .pad(32)
        .raw(&[0; 136]);
    let (_directory, path) = write(&bytes);
    let mut gguf = Gguf::open(&path).expect("honest");
    let error = gguf.tensor("w", &Device::Cpu).expect_err("unsupported");
    let error = error.to_string();
    assert!(error.contains("IQ4_XS") && error.contains("Q4_K"), "{error}");
}

#[test]
fn a_scalar_is_an_error_of_the_tensor_library_and_no_panic() {
    let bytes = Bytes::header(3, 1, 0).tensor("w", &[], 0, 0).pad(32).u32(0);
    let (_directory, path) = write(&bytes);
    let mut gguf = Gguf::open(&path).expect("honest");
    assert!(gguf.tensor("w", &Device::Cpu).is_err());
}

/// One entry, whose value is all that follows.
fn entry(kind: u32) -> Bytes {
    Bytes::header(3, 0, 1).key("key", kind)
}

#[test]
fn each_lie_of_the_metadata_is_an_error() {
    let huge = u64::MAX / 4;
    let one = |tail: Bytes| tail.raw(&[0; 64]);
    let alignment =
        |n| Bytes::header(3, 0, 1).key("general.alignment", 4).u32(n);
    let deep = (0..20).fold(entry(9), |bytes, _| bytes.u32(9).u64(1));
    let twice =
        Bytes::header(3, 0, 2).key("key", 0).raw(&[1]).key("key", 0).raw(&[1]);
    for (bytes, expected) in [
        (Bytes::default(), "the magic number"),
        (Bytes(b"GGML12345678".to_vec()), "begins with \"GGML\""),
        (Bytes::header(1, 0, 0), "version 1"),
        (Bytes::header(4, 0, 0), "version 4"),
        (Bytes::header(3u32.swap_bytes(), 0, 0), "big-endian"),
        (one(Bytes::header(3, huge, 0)), "tensors"),
        (one(Bytes::header(3, 0, huge)), "metadata entries"),
        (one(Bytes::header(3, 0, 1).u64(huge)), "metadata key 0"),
        (one(Bytes::header(3, 0, 1).string(b"")), "key 0 is empty"),
        (one(Bytes::header(3, 0, 1).string(b"\xff")), "not UTF-8"),
        (one(entry(99)), "unknown type 99"),
        (one(entry(7).raw(&[2])), "boolean with value 2"),
        (entry(10).raw(&[2]), "\"key\"".trim_matches('"')),
        (one(entry(8).u64(huge)), "bytes are claimed"),
        (one(entry(9).u32(99)), "unknown type 99"),
        (one(entry(9).u32(0).u64(huge)), "bytes are claimed"),
        (one(entry(9).u32(10).u64(huge)), "bytes are claimed"),
        (one(entry(9).u32(8).u64(huge)), "bytes are claimed"),
        (one(entry(9).u32(9).u64(huge)), "bytes are claimed"),
        (one(entry(9).u32(7).u64(1).raw(&[9])), "boolean with value 9"),
        (one(deep), "more than 8 deep"),
        (twice, "twice"),
        (alignment(0), "not a power of two"),
        (alignment(24), "not a power of two"),
    ] {
        let found = refusal(&bytes);
        assert!(found.contains(expected), "{found:?} is not {expected:?}");
    }
}

#[test]
fn each_lie_about_a_tensor_is_an_error_that_names_it() {
    let one = |name: &str, dimensions: &[u64], kind, offset| {
        Bytes::header(3, 1, 0)
            .tensor(name, dimensions, kind, offset)
            .pad(32)
            .raw(&[0; 64])
    };
    let two = |second: &str, offset| {
        Bytes::header(3, 2, 0)
            .tensor("w", &[8], 0, 0)
            .tensor(second, &[8], 0, offset)
            .pad(32)
            .raw(&[0; 64])
    };
    let max = i64::MAX.unsigned_abs();
    for (bytes, expected) in [
        (one("w", &[17], 0, 0), "past the end of the file"),
        (one("w", &[8], 0, 32), "offset 32"),
        (one("w", &[8], 0, 0u64.wrapping_sub(64)), "offset 184467"),
        (one("w", &[8, 0], 0, 0), "impossible dimensions [8, 0]"),
        (one("w", &[max, 3], 0, 0), "impossible dimensions"),
        (one("w", &[max], 0, 0), "impossible dimensions"),
        (one("w", &[1 << 40], 0, 0), "past the end of the file"),
        (one("w", &[1; 5], 0, 0), "5 dimensions"),
        (one("w", &[33], 2, 0), "whole blocks of 32 (Q4_0)"),
        (one("w", &[8], 4, 0), "Q4_2"),
        (one("w", &[8], 77, 0), "77"),
        (one(&"w".repeat(64), &[8], 0, 0), "64 bytes"),
        (two("w", 32), "two tensors are named \"w\""),
        (two("v", 0), "\"v\""),
        (two("v", 16), "ends at 32"),
    ] {
        let found = refusal(&bytes);
        assert!(found.contains(expected), "{found:?} is not {expected:?}");
        assert!(found.contains('w') || found.contains('v'), "{found:?}");
    }
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_an_error() {
    let bytes = good().0;
    for len in 0..bytes.len() {
        let cut = Bytes(bytes[..len].to_vec());
        assert!(open(&cut).is_err(), "{len} of {} bytes", bytes.len());
    }
    assert!(open(&Bytes(bytes)).is_ok());
}

/// Part `number`, counted from zero, of `count`, with one tensor.
fn part(number: u16, count: u16, tensor: &str, n_tensors: u32) -> Bytes {
    Bytes::header(3, 1, 3)
        .key("split.no", 2)
        .u16(number)
        .key("split.count", 2)
        .u16(count)
        .key("split.tensors.count", 5)
        .u32(n_tensors)
        .tensor(tensor, &[1], 0, 0)
        .pad(32)
        .raw(&f32::from(number).to_le_bytes())
}

fn open_parts(parts: &[(&str, Bytes)]) -> Result<Gguf, ModelError> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, bytes) in parts {
        std::fs::write(directory.path().join(name), &bytes.0)
            .expect("a temporary file");
    }
    Gguf::open(&directory.path().join(parts[0].0))
}

#[test]
fn a_split_model_is_as_one() {
    let mut gguf = open_parts(&[
        ("m-00001-of-00003.gguf", part(0, 3, "a", 3)),
        ("m-00002-of-00003.gguf", part(1, 3, "b", 3)),
        ("m-00003-of-00003.gguf", part(2, 3, "c", 3)),
    ])
    .expect("complete");
    assert_eq!(gguf.tensor_names().collect::<Vec<_>>(), ["a", "b", "c"]);
    let tensor = gguf.tensor("c", &Device::Cpu).expect("readable");
    assert_eq!(tensor.data().expect("bytes").as_ref(), 2.0f32.to_le_bytes());
}

#[test]
fn a_split_model_with_a_wrong_part_is_an_error() {
    let first = || ("m-00001-of-00002.gguf", part(0, 2, "a", 2));
    let second = "m-00002-of-00002.gguf";
    for (parts, expected) in [
        (vec![first()], "m-00002-of-00002.gguf is not there"),
        (vec![(second, part(1, 2, "b", 2))], "open the first part"),
        (vec![("m.gguf", part(0, 2, "a", 2))], "-00001-of-00002.gguf"),
        (vec![first(), (second, part(0, 2, "b", 2))], "split.no = Some(1)"),
        (vec![first(), (second, part(1, 3, "b", 2))], "Some(3)"),
        (vec![first(), (second, part(1, 2, "a", 2))], "is also in"),
        (
            vec![
                ("m-00001-of-00002.gguf", part(0, 2, "a", 9)),
                (second, part(1, 2, "b", 9)),
            ],
            "split.tensors.count = 9, but 2",
        ),
        (vec![first(), (second, Bytes::default())], second),
    ] {
        let found = open_parts(&parts).expect_err("wrong").to_string();
        assert!(found.contains(expected), "{found:?} is not {expected:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever a file says, it is opened or refused, and so are its tensors.
    #[test]
    fn no_change_of_bytes_makes_a_panic(
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<u8>()),
            1..6,
        ),
    ) {
        let mut bytes = good();
        for (index, value) in changes {
            let index = index.index(bytes.0.len());
            bytes.0[index] = value;
        }
        let (_directory, path) = write(&bytes);
        if let Ok(mut gguf) = Gguf::open(&path) {
            let names: Vec<String> =
                gguf.tensor_names().map(str::to_owned).collect();
            for name in names {
                // Readable or not: what it says is of no concern here.
                let _ = gguf.tensor(&name, &Device::Cpu);
            }
        }
    }
}
