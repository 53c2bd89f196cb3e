//! What each operation means, in plain arrays.

use std::array::from_fn;

use super::{LANES, Line, Simd};

/// The version for every processor, written for the auto-vectoriser.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct Portable;

impl Simd for Portable {
    type Floats = [f32; LANES];
    type Ints = [i32; LANES];
    type Bytes = Line;

    const TILE: usize = 4;
    const EIGHT_BIT_OFFSET: i32 = 0;

    #[inline(always)]
    fn run<R>(self, body: impl FnOnce() -> R) -> R {
        body()
    }

    /// Without the instruction, [`f32::mul_add`] would call a function.
    #[inline(always)]
    fn mul_add(self, a: f32, b: f32, c: f32) -> f32 {
        if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
            a.mul_add(b, c)
        } else {
            a * b + c
        }
    }

    #[inline(always)]
    fn splat(self, value: f32) -> [f32; LANES] {
        [value; LANES]
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> [f32; LANES] {
        *values
    }

    #[inline(always)]
    fn store(self, values: [f32; LANES]) -> [f32; LANES] {
        values
    }

    #[inline(always)]
    fn load_f16(self, bits: &[u16; LANES]) -> [f32; LANES] {
        bits.map(widen_f16)
    }

    #[inline(always)]
    fn load_bf16(self, bits: &[u16; LANES]) -> [f32; LANES] {
        bits.map(|bits| f32::from_bits(u32::from(bits) << 16))
    }

    #[inline(always)]
    fn load_u8(self, values: &[u8; LANES]) -> [f32; LANES] {
        values.map(f32::from)
    }

    #[inline(always)]
    fn load_i8(self, values: &[i8; LANES]) -> [f32; LANES] {
        values.map(f32::from)
    }

    #[inline(always)]
    fn mul(self, a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn fma(
        self,
        a: [f32; LANES],
        b: [f32; LANES],
        c: [f32; LANES],
    ) -> [f32; LANES] {
        from_fn(|i| self.mul_add(a[i], b[i], c[i]))
    }

    #[inline(always)]
    fn splat_int(self, value: i32) -> [i32; LANES] {
        [value; LANES]
    }

    #[inline(always)]
    fn to_floats(self, ints: [i32; LANES]) -> [f32; LANES] {
        #[expect(
            clippy::cast_precision_loss,
            reason = "sums of 32 products of bytes stay below 2^24"
        )]
        ints.map(|int| int as f32)
    }

    #[inline(always)]
    fn load_bytes(self, line: &Line) -> Line {
        *line
    }

    #[inline(always)]
    fn mask(self, bytes: Line, mask: u8) -> Line {
        bytes.map(|lane| lane.map(|byte| byte & mask))
    }

    #[inline(always)]
    fn or(self, a: Line, b: Line) -> Line {
        from_fn(|i| from_fn(|j| a[i][j] | b[i][j]))
    }

    #[inline(always)]
    fn shift_left(self, bytes: Line, by: i32) -> Line {
        bytes.map(|lane| lane.map(|byte| byte << by))
    }

    #[inline(always)]
    fn shift_right(self, bytes: Line, by: i32) -> Line {
        bytes.map(|lane| lane.map(|byte| byte >> by))
    }

    #[inline(always)]
    fn eight_bits(self, bytes: Line) -> Line {
        bytes
    }

    #[inline(always)]
    fn dot<const BITS: u32>(
        self,
        mut sums: [i32; LANES],
        weights: [Line; 4],
        inputs: &[[i8; 4]; 4],
    ) -> [i32; LANES] {
        let widen = |weight: u8| {
            if BITS == 8 {
                i32::from(weight.cast_signed())
            } else {
                i32::from(weight)
            }
        };
        for (weights, inputs) in weights.iter().zip(inputs) {
            for (sum, weights) in sums.iter_mut().zip(weights) {
                for (weight, input) in weights.iter().zip(inputs) {
                    *sum += widen(*weight) * i32::from(*input);
                }
            }
        }
        sums
    }
}

/// Widens a half-precision number.
#[inline(always)]
fn widen_f16(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let magnitude = u32::from(bits & 0x7fff);
    let value = match magnitude >> 10 {
        // Zero and subnormal numbers: multiples of 2^-24.
        0 => f32::from(bits & 0x3ff) * f32::from_bits((127 - 24) << 23),
        31 => f32::from_bits(magnitude << 13 | 255 << 23),
        _ => f32::from_bits((magnitude << 13) + (112 << 23)),
    };
    f32::from_bits(value.to_bits() | sign)
}
