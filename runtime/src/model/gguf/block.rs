//! The number formats of tensors: how many values make a block, and how many
//! bytes a block takes.

use candle_core::quantized::GgmlDType;

/// A number format that the format of files knows.
///
/// Where [`BlockType::dtype`] is `None`, the format is known by name and size
/// only; no code here computes with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BlockType {
    id: u32,
    /// The name that llama.cpp gives to it.
    pub name: &'static str,
    /// How many values are quantised together. A row is a multiple of it.
    pub n_values: usize,
    /// How many bytes they take.
    pub n_bytes: usize,
    /// What the tensor library calls it, if it computes with it.
    pub dtype: Option<GgmlDType>,
}

const fn known(
    id: u32,
    name: &'static str,
    n_values: usize,
    n_bytes: usize,
    dtype: Option<GgmlDType>,
) -> BlockType {
    BlockType { id, name, n_values, n_bytes, dtype }
}

const KNOWN: &[BlockType] = &[
    known(0, "F32", 1, 4, Some(GgmlDType::F32)),
    known(1, "F16", 1, 2, Some(GgmlDType::F16)),
    known(2, "Q4_0", 32, 18, Some(GgmlDType::Q4_0)),
    known(3, "Q4_1", 32, 20, Some(GgmlDType::Q4_1)),
    known(6, "Q5_0", 32, 22, Some(GgmlDType::Q5_0)),
    known(7, "Q5_1", 32, 24, Some(GgmlDType::Q5_1)),
    known(8, "Q8_0", 32, 34, Some(GgmlDType::Q8_0)),
    known(9, "Q8_1", 32, 36, Some(GgmlDType::Q8_1)),
    known(10, "Q2_K", 256, 84, Some(GgmlDType::Q2K)),
    known(11, "Q3_K", 256, 110, Some(GgmlDType::Q3K)),
    known(12, "Q4_K", 256, 144, Some(GgmlDType::Q4K)),
    known(13, "Q5_K", 256, 176, Some(GgmlDType::Q5K)),
    known(14, "Q6_K", 256, 210, Some(GgmlDType::Q6K)),
    known(15, "Q8_K", 256, 292, Some(GgmlDType::Q8K)),
    known(16, "IQ2_XXS", 256, 66, None),
    known(17, "IQ2_XS", 256, 74, None),
    known(18, "IQ3_XXS", 256, 98, None),
    known(19, "IQ1_S", 256, 50, None),
    known(20, "IQ4_NL", 32, 18, None),
    known(21, "IQ3_S", 256, 110, None),
    known(22, "IQ2_S", 256, 82, None),
    known(23, "IQ4_XS", 256, 136, None),
    known(24, "I8", 1, 1, None),
    known(25, "I16", 1, 2, None),
    known(26, "I32", 1, 4, None),
    known(27, "I64", 1, 8, None),
    known(28, "F64", 1, 8, None),
    known(29, "IQ1_M", 256, 56, None),
    known(30, "BF16", 1, 2, Some(GgmlDType::BF16)),
    known(34, "TQ1_0", 256, 54, None),
    known(35, "TQ2_0", 256, 66, None),
    known(39, "MXFP4", 32, 17, None),
    known(40, "NVFP4", 64, 36, None),
    known(41, "Q1_0", 128, 18, None),
];

/// Numbers that once stood for a format.
const REMOVED: &[(u32, &str)] = &[
    (4, "Q4_2"),
    (5, "Q4_3"),
    (31, "Q4_0_4_4"),
    (32, "Q4_0_4_8"),
    (33, "Q4_0_8_8"),
    (36, "IQ4_NL_4_4"),
    (37, "IQ4_NL_4_8"),
    (38, "IQ4_NL_8_8"),
];

impl BlockType {
    /// Returns the format that a file gives a number for, or what is wrong
    /// with the number.
    pub(super) fn by_id(id: u32) -> Result<BlockType, String> {
        if let Some(block) = KNOWN.iter().find(|block| block.id == id) {
            return Ok(*block);
        }
        let removed = REMOVED.iter().find(|(removed, _)| *removed == id);
        Err(match removed {
            Some((_, name)) => format!(
                "type {name} was removed from the format; convert the model \
                 again"
            ),
            None => format!("type number {id} is not known"),
        })
    }

    /// Returns the names of the formats that are computed with.
    pub(super) fn supported() -> String {
        let names: Vec<&str> = KNOWN
            .iter()
            .filter(|block| block.dtype.is_some())
            .map(|block| block.name)
            .collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tensor library asserts that the bytes are whole blocks of its own.
    #[test]
    fn the_tensor_library_has_the_same_sizes() {
        for block in KNOWN {
            let Some(dtype) = block.dtype else { continue };
            assert_eq!(block.n_values, dtype.block_size(), "{}", block.name);
            assert_eq!(block.n_bytes, dtype.type_size(), "{}", block.name);
        }
    }

    #[test]
    fn numbers_without_a_format_are_refused_by_name() {
        assert_eq!(BlockType::by_id(23).map(|it| it.name), Ok("IQ4_XS"));
        let removed = BlockType::by_id(31).expect_err("removed");
        assert!(removed.contains("Q4_0_4_4"), "{removed}");
        let unknown = BlockType::by_id(1_000).expect_err("unknown");
        assert!(unknown.contains("1000"), "{unknown}");
    }
}
