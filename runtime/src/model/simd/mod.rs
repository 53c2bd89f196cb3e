//! Vectors of sixteen lanes, chosen when the program runs.
//!
//! The loops of the models are written once, over a [`Simd`]: sixteen floats,
//! sixteen integers, or sixteen times four bytes. What a processor has is
//! asked once, and [`with_simd!`](with_simd) compiles its body for each
//! answer. A program built for the oldest processor of its kind is then as
//! fast as one built for the processor at hand.
//!
//! A [`Simd`] is a token: it can be had only where the processor has the
//! instructions, so that using it is safe. `x86.rs` is the one file with
//! `unsafe` code; `portable.rs` says in plain arrays what each operation
//! means, and serves every other processor.
//!
//! # Same bits
//!
//! Integers are exact, and floats are multiplied and added lane by lane, in
//! an order that the caller writes down. All vector versions for x86-64 thus
//! give the same bits. The portable version may round between a product and
//! its sum, where the processor has no instruction for both.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

pub(super) use portable::Portable;
#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

/// The width of every vector.
pub(super) const LANES: usize = 16;

/// Four bytes for each lane.
pub(super) type Line = [[u8; 4]; LANES];

/// Operations on vectors.
pub(super) trait Simd: Copy + Send + Sync {
    /// Sixteen floats.
    type Floats: Copy;
    /// Sixteen 32-bit integers.
    type Ints: Copy;
    /// Sixteen times four bytes.
    type Bytes: Copy;

    /// The rows of inputs that meet a block of weights while it lies in
    /// registers: 1, 2, 4 or 8.
    const TILE: usize;

    /// What [`Simd::eight_bits`] adds to signed bytes.
    const EIGHT_BIT_OFFSET: i32;

    /// Runs `body`, compiled for the instructions of this version.
    fn run<R>(self, body: impl FnOnce() -> R) -> R;

    /// Multiplies and adds, fused where the processor can.
    fn mul_add(self, a: f32, b: f32, c: f32) -> f32;

    fn splat(self, value: f32) -> Self::Floats;
    fn load(self, values: &[f32; LANES]) -> Self::Floats;
    fn store(self, values: Self::Floats) -> [f32; LANES];
    /// Widens half-precision numbers.
    fn load_f16(self, bits: &[u16; LANES]) -> Self::Floats;
    /// Widens bfloat16 numbers.
    fn load_bf16(self, bits: &[u16; LANES]) -> Self::Floats;
    fn load_u8(self, values: &[u8; LANES]) -> Self::Floats;
    fn load_i8(self, values: &[i8; LANES]) -> Self::Floats;
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a * b + c`, as [`Simd::mul_add`].
    fn fma(
        self,
        a: Self::Floats,
        b: Self::Floats,
        c: Self::Floats,
    ) -> Self::Floats;

    fn splat_int(self, value: i32) -> Self::Ints;
    fn to_floats(self, ints: Self::Ints) -> Self::Floats;

    fn load_bytes(self, line: &Line) -> Self::Bytes;
    fn mask(self, bytes: Self::Bytes, mask: u8) -> Self::Bytes;
    fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Moves bits up within units of 16, so that a mask has to follow.
    fn shift_left(self, bytes: Self::Bytes, by: i32) -> Self::Bytes;
    /// As [`Simd::shift_left`], down.
    fn shift_right(self, bytes: Self::Bytes, by: i32) -> Self::Bytes;
    /// Turns signed bytes into what [`Simd::dot`] takes for eight bits.
    fn eight_bits(self, bytes: Self::Bytes) -> Self::Bytes;

    /// Adds to each lane the products of its sixteen weights, four a vector,
    /// with sixteen inputs. The weights are unsigned and have `BITS` bits, or
    /// are eight bits from [`Simd::eight_bits`]; no input is -128.
    fn dot<const BITS: u32>(
        self,
        sums: Self::Ints,
        weights: [Self::Bytes; 4],
        inputs: &[[i8; 4]; 4],
    ) -> Self::Ints;
}

/// The versions that this program has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Version {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    AvxVnni(Avx2<true>),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2<false>),
    Portable(Portable),
}

impl Version {
    /// Returns the fastest version for this processor.
    #[inline]
    pub(super) fn best() -> Version {
        static BEST: OnceLock<Version> = OnceLock::new();
        *BEST.get_or_init(Version::detect)
    }

    fn detect() -> Version {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(simd) = Avx512::detect() {
                return Version::Avx512(simd);
            }
            if let Some(simd) = Avx2::<true>::detect() {
                return Version::AvxVnni(simd);
            }
            if let Some(simd) = Avx2::<false>::detect() {
                return Version::Avx2(simd);
            }
        }
        Version::Portable(Portable)
    }

    /// Returns what the version is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Version::Avx512(_) => "avx512-vnni",
            #[cfg(target_arch = "x86_64")]
            Version::AvxVnni(_) => "avx-vnni",
            #[cfg(target_arch = "x86_64")]
            Version::Avx2(_) => "avx2",
            Version::Portable(_) => "portable",
        }
    }

    /// Returns every version for this processor, the portable one last.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Version> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(Avx512::detect().map(Version::Avx512));
            all.extend(Avx2::<true>::detect().map(Version::AvxVnni));
            all.extend(Avx2::<false>::detect().map(Version::Avx2));
        }
        all.push(Version::Portable(Portable));
        all
    }
}

/// Compiles an expression for each [`Version`], and runs the one asked for:
/// `with_simd!(version, simd => expression)`.
macro_rules! with_simd {
    ($version:expr, $simd:ident => $body:expr) => {{
        use $crate::model::simd::Simd as _;
        match $version {
            #[cfg(target_arch = "x86_64")]
            $crate::model::simd::Version::Avx512($simd) => $simd.run(
                #[inline(always)]
                || $body,
            ),
            #[cfg(target_arch = "x86_64")]
            $crate::model::simd::Version::AvxVnni($simd) => $simd.run(
                #[inline(always)]
                || $body,
            ),
            #[cfg(target_arch = "x86_64")]
            $crate::model::simd::Version::Avx2($simd) => $simd.run(
                #[inline(always)]
                || $body,
            ),
            $crate::model::simd::Version::Portable($simd) => $simd.run(
                #[inline(always)]
                || $body,
            ),
        }
    }};
}
pub(super) use with_simd;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_numbers_are_widened() {
        for version in Version::all() {
            for start in (0..=u16::MAX).step_by(LANES) {
                let mut bits = [0; LANES];
                for (bits, offset) in bits.iter_mut().zip(0..) {
                    *bits = start + offset;
                }
                let (f16, bf16) = with_simd!(version, simd => {
                    let f16 = simd.store(simd.load_f16(&bits));
                    (f16, simd.store(simd.load_bf16(&bits)))
                });
                for (i, bits) in bits.into_iter().enumerate() {
                    let same = |got: f32, expected: f32| {
                        got.to_bits() == expected.to_bits()
                            || got.is_nan() && expected.is_nan()
                    };
                    let expected = half::f16::from_bits(bits).to_f32();
                    assert!(same(f16[i], expected), "{version:?} {bits:x}");
                    let expected = half::bf16::from_bits(bits).to_f32();
                    assert!(same(bf16[i], expected), "{version:?} {bits:x}");
                }
            }
        }
    }
}
