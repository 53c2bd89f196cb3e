//! Replays what was found once, and a handful of generated inputs.

use std::{fs, path::Path};

use maskwright_fuzz::{hostile_grammar, masks_equal_brute_force};

fn regressions() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder is beside this crate")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("readable")).collect()
}

#[test]
fn regressions_stay_fixed() {
    for input in regressions() {
        hostile_grammar(&input);
        masks_equal_brute_force(&input);
    }
}

/// Inputs that break parsers: unclosed, deep, huge and not UTF-8.
#[test]
fn hostile_grammars_are_refused_or_compiled() {
    let deep = "[".repeat(100_000);
    let groups = format!("root ::= {}", "(".repeat(60_000));
    let inputs: &[&[u8]] = &[
        b"",
        b"{",
        b"\xff\xfe",
        b"true\0[1,{\"a\":null}]",
        b"{\"type\":[\"x\"]}",
        b"{\"minItems\":1e30}",
        b"{\"pattern\":\"a{99999999999}\"}",
        b"{\"items\":[[]]}",
        b"{\"enum\":[]}",
        b"{\"required\":[1]}",
        b"{\"maximum\":1e999999999}\0\x31",
        b"(a|a)*b\0aaaa",
        b"root ::= \"a\"{9,1}",
        b"root ::= [z-a]",
        deep.as_bytes(),
        groups.as_bytes(),
    ];
    for input in inputs {
        hostile_grammar(input);
    }
}

#[test]
fn masks_equal_brute_force_on_a_few_schemas() {
    let schemas = [
        r#"{"type":"object","additionalProperties":{"type":"integer"}}"#,
        r#"{"type":"array","items":{"enum":["a","ab",1]},"maxItems":3}"#,
        r#"{"patternProperties":{"^a":{"type":"boolean"}},"type":"object"}"#,
    ];
    for schema in schemas {
        for seed in 0..8_u8 {
            let mut input = schema.as_bytes().to_vec();
            input.push(0);
            input.extend((0..40).map(|i: u8| {
                i.wrapping_mul(31).wrapping_add(seed.wrapping_mul(57))
            }));
            masks_equal_brute_force(&input);
        }
    }
}
