//! The values of metadata.

/// A value of the metadata.
///
/// Where the format says string and the bytes are not UTF-8, the value is
/// [`Value::Bytes`], so that a broken description spoils no model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variants are the format's types")]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(String),
    Bytes(Vec<u8>),
    Array(Array),
}

/// An array, whose elements all have one type.
///
/// A vector for each type, and not a vector of [`Value`]: an array of bytes
/// would be held in 32 times the memory that it takes in the file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variants are the format's types")]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    String(Vec<String>),
    Bytes(Vec<Vec<u8>>),
    Array(Vec<Array>),
}

impl Value {
    /// Returns an integer of any width, unless it is negative.
    pub(super) fn integer(&self) -> Option<u64> {
        match self {
            Value::U8(x) => Some(u64::from(*x)),
            Value::U16(x) => Some(u64::from(*x)),
            Value::U32(x) => Some(u64::from(*x)),
            Value::U64(x) => Some(*x),
            Value::I8(x) => u64::try_from(*x).ok(),
            Value::I16(x) => u64::try_from(*x).ok(),
            Value::I32(x) => u64::try_from(*x).ok(),
            Value::I64(x) => u64::try_from(*x).ok(),
            _ => None,
        }
    }
}

impl Array {
    /// Returns true if and only if there is no element.
    pub fn is_empty(&self) -> bool {
        match self {
            Array::U8(values) => values.is_empty(),
            Array::I8(values) => values.is_empty(),
            Array::U16(values) => values.is_empty(),
            Array::I16(values) => values.is_empty(),
            Array::U32(values) => values.is_empty(),
            Array::I32(values) => values.is_empty(),
            Array::U64(values) => values.is_empty(),
            Array::I64(values) => values.is_empty(),
            Array::F32(values) => values.is_empty(),
            Array::F64(values) => values.is_empty(),
            Array::Bool(values) => values.is_empty(),
            Array::String(values) => values.is_empty(),
            Array::Bytes(values) => values.is_empty(),
            Array::Array(values) => values.is_empty(),
        }
    }

    /// Returns integers of any width, unless one is negative.
    pub(super) fn integers(&self) -> Option<Vec<u64>> {
        fn all<T: Copy + TryInto<u64>>(values: &[T]) -> Option<Vec<u64>> {
            values.iter().map(|value| (*value).try_into().ok()).collect()
        }
        match self {
            Array::U8(values) => all(values),
            Array::U16(values) => all(values),
            Array::U32(values) => all(values),
            Array::U64(values) => all(values),
            Array::I8(values) => all(values),
            Array::I16(values) => all(values),
            Array::I32(values) => all(values),
            Array::I64(values) => all(values),
            _ => None,
        }
    }
}
