//! The versions for x86-64: the one file with `unsafe` code.
//!
//! PERF: `python3 bench/decode_speed/compare.py`; see the page beside that
//! script for what these are worth over `portable.rs`, their safe twin.
#![allow(unsafe_code, reason = "instructions beyond the baseline, measured")]
#![allow(
    clippy::cast_ptr_alignment,
    reason = "the loads and stores are those for addresses of any alignment"
)]

use std::arch::x86_64::{
    __m128i, __m256, __m256i, __m512, __m512i, _mm_cvtsi32_si128,
    _mm_loadu_si128, _mm256_abs_epi8, _mm256_add_epi16, _mm256_add_epi32,
    _mm256_and_si256, _mm256_castsi256_ps, _mm256_cvtepi8_epi32,
    _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32, _mm256_cvtepu16_epi32,
    _mm256_cvtph_ps, _mm256_dpbusd_avx_epi32, _mm256_fmadd_ps,
    _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_mul_ps, _mm256_or_si256, _mm256_set1_epi8,
    _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps, _mm256_sign_epi8,
    _mm256_sll_epi16, _mm256_slli_epi32, _mm256_srl_epi16, _mm256_storeu_ps,
    _mm256_xor_si256, _mm512_and_si512, _mm512_castsi512_ps,
    _mm512_cvtepi8_epi32, _mm512_cvtepi32_ps, _mm512_cvtepu8_epi32,
    _mm512_cvtepu16_epi32, _mm512_cvtph_ps, _mm512_dpbusd_epi32,
    _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps,
    _mm512_or_si512, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_sll_epi16, _mm512_slli_epi32, _mm512_srl_epi16, _mm512_storeu_ps,
    _mm512_xor_si512,
};
use std::array::from_fn;

use super::{LANES, Line, Simd};

/// Calls intrinsics that have no other precondition than the instructions.
macro_rules! have {
    ($call:expr) => {{
        // SAFETY: called in methods of a token, which is made only where the
        // processor has the features of its version.
        unsafe { $call }
    }};
}

/// AVX-512 with its dot products of bytes (VNNI).
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct Avx512(());

impl Avx512 {
    #[inline]
    pub(super) fn detect() -> Option<Avx512> {
        let is_able = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        is_able.then_some(Avx512(()))
    }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c"
)]
fn run_avx512<R>(body: impl FnOnce() -> R) -> R {
    body()
}

impl Simd for Avx512 {
    type Floats = __m512;
    type Ints = __m512i;
    type Bytes = __m512i;

    const TILE: usize = 8;
    /// The instruction takes unsigned weights.
    const EIGHT_BIT_OFFSET: i32 = 128;

    #[inline(always)]
    fn run<R>(self, body: impl FnOnce() -> R) -> R {
        have!(run_avx512(body))
    }

    #[inline(always)]
    fn mul_add(self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        have!(_mm512_set1_ps(value))
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> __m512 {
        // SAFETY: the array is 64 bytes, which is what the load reads; the
        // features are there as in `have`.
        unsafe { _mm512_loadu_ps(values.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, values: __m512) -> [f32; LANES] {
        let mut out = [0.0; LANES];
        // SAFETY: as in `load`, for a store.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), values) };
        out
    }

    #[inline(always)]
    fn load_f16(self, bits: &[u16; LANES]) -> __m512 {
        have!(_mm512_cvtph_ps(load_shorts(bits)))
    }

    #[inline(always)]
    fn load_bf16(self, bits: &[u16; LANES]) -> __m512 {
        have!(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(
            _mm512_cvtepu16_epi32(load_shorts(bits))
        )))
    }

    #[inline(always)]
    fn load_u8(self, values: &[u8; LANES]) -> __m512 {
        // SAFETY: the array is 16 bytes, which is what the load reads.
        let bytes = unsafe { _mm_loadu_si128(values.as_ptr().cast()) };
        have!(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)))
    }

    #[inline(always)]
    fn load_i8(self, values: &[i8; LANES]) -> __m512 {
        // SAFETY: the array is 16 bytes, which is what the load reads.
        let bytes = unsafe { _mm_loadu_si128(values.as_ptr().cast()) };
        have!(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)))
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        have!(_mm512_mul_ps(a, b))
    }

    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        have!(_mm512_fmadd_ps(a, b, c))
    }

    #[inline(always)]
    fn splat_int(self, value: i32) -> __m512i {
        have!(_mm512_set1_epi32(value))
    }

    #[inline(always)]
    fn to_floats(self, ints: __m512i) -> __m512 {
        have!(_mm512_cvtepi32_ps(ints))
    }

    #[inline(always)]
    fn load_bytes(self, line: &Line) -> __m512i {
        // SAFETY: a line is 64 bytes, which is what the load reads; the
        // features are there as in `have`.
        unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
    }

    #[inline(always)]
    fn mask(self, bytes: __m512i, mask: u8) -> __m512i {
        let mask = have!(_mm512_set1_epi8(mask.cast_signed()));
        have!(_mm512_and_si512(bytes, mask))
    }

    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        have!(_mm512_or_si512(a, b))
    }

    #[inline(always)]
    fn shift_left(self, bytes: __m512i, by: i32) -> __m512i {
        have!(_mm512_sll_epi16(bytes, _mm_cvtsi32_si128(by)))
    }

    #[inline(always)]
    fn shift_right(self, bytes: __m512i, by: i32) -> __m512i {
        have!(_mm512_srl_epi16(bytes, _mm_cvtsi32_si128(by)))
    }

    #[inline(always)]
    fn eight_bits(self, bytes: __m512i) -> __m512i {
        have!(_mm512_xor_si512(bytes, _mm512_set1_epi8(-128)))
    }

    #[inline(always)]
    fn dot<const BITS: u32>(
        self,
        mut sums: __m512i,
        weights: [__m512i; 4],
        inputs: &[[i8; 4]; 4],
    ) -> __m512i {
        for (weights, inputs) in weights.into_iter().zip(inputs) {
            let inputs = self.splat_int(four(*inputs));
            sums = have!(_mm512_dpbusd_epi32(sums, weights, inputs));
        }
        sums
    }
}

/// AVX2 with fused multiplications and half precision, in pairs of vectors;
/// with `VNNI`, dot products of bytes as well (AVX-VNNI).
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct Avx2<const VNNI: bool>(());

impl<const VNNI: bool> Avx2<VNNI> {
    #[inline]
    pub(super) fn detect() -> Option<Avx2<VNNI>> {
        let is_able = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && (!VNNI || is_x86_feature_detected!("avxvnni"));
        is_able.then_some(Avx2(()))
    }

    /// The dot product where weights are unsigned, by an instruction for it.
    #[expect(
        clippy::unused_self,
        reason = "it is the proof that the processor has the instructions"
    )]
    #[inline(always)]
    fn dot_vnni(
        self,
        mut sums: [__m256i; 2],
        weights: [[__m256i; 2]; 4],
        inputs: &[[i8; 4]; 4],
    ) -> [__m256i; 2] {
        for (weights, inputs) in weights.into_iter().zip(inputs) {
            let inputs = have!(_mm256_set1_epi32(four(*inputs)));
            for (sum, weights) in sums.iter_mut().zip(weights) {
                *sum = have!(_mm256_dpbusd_avx_epi32(*sum, weights, inputs));
            }
        }
        sums
    }

    /// The dot product of a quarter of the weights, in pairs that are added
    /// in 16 bits.
    #[expect(
        clippy::unused_self,
        reason = "it is the proof that the processor has the instructions"
    )]
    #[inline(always)]
    fn pairs<const BITS: u32>(
        self,
        weights: __m256i,
        inputs: [i8; 4],
    ) -> __m256i {
        let inputs = have!(_mm256_set1_epi32(four(inputs)));
        if BITS == 8 {
            // The sign of each weight moves to its input. At most
            // 128 · 127 · 2, which fits.
            let inputs = have!(_mm256_sign_epi8(inputs, weights));
            have!(_mm256_maddubs_epi16(_mm256_abs_epi8(weights), inputs))
        } else {
            have!(_mm256_maddubs_epi16(weights, inputs))
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[target_feature(enable = "avx2,fma,f16c,avxvnni")]
fn run_avx_vnni<R>(body: impl FnOnce() -> R) -> R {
    body()
}

impl<const VNNI: bool> Simd for Avx2<VNNI> {
    type Floats = [__m256; 2];
    type Ints = [__m256i; 2];
    type Bytes = [__m256i; 2];

    const TILE: usize = 4;
    const EIGHT_BIT_OFFSET: i32 = if VNNI { 128 } else { 0 };

    #[inline(always)]
    fn run<R>(self, body: impl FnOnce() -> R) -> R {
        if VNNI { have!(run_avx_vnni(body)) } else { have!(run_avx2(body)) }
    }

    #[inline(always)]
    fn mul_add(self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn splat(self, value: f32) -> [__m256; 2] {
        [have!(_mm256_set1_ps(value)); 2]
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> [__m256; 2] {
        let (halves, _) = values.as_chunks::<8>();
        // SAFETY: each half is 32 bytes, which is what the load reads; the
        // features are there as in `have`.
        from_fn(|i| unsafe { _mm256_loadu_ps(halves[i].as_ptr()) })
    }

    #[inline(always)]
    fn store(self, values: [__m256; 2]) -> [f32; LANES] {
        let mut out = [0.0; LANES];
        let (halves, _) = out.as_chunks_mut::<8>();
        for (half, values) in halves.iter_mut().zip(values) {
            // SAFETY: as in `load`, for a store.
            unsafe { _mm256_storeu_ps(half.as_mut_ptr(), values) };
        }
        out
    }

    #[inline(always)]
    fn load_f16(self, bits: &[u16; LANES]) -> [__m256; 2] {
        load_eights(bits).map(|bits| have!(_mm256_cvtph_ps(bits)))
    }

    #[inline(always)]
    fn load_bf16(self, bits: &[u16; LANES]) -> [__m256; 2] {
        load_eights(bits).map(|bits| {
            have!(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(
                _mm256_cvtepu16_epi32(bits)
            )))
        })
    }

    #[inline(always)]
    fn load_u8(self, values: &[u8; LANES]) -> [__m256; 2] {
        let (halves, _) = values.as_chunks::<8>();
        from_fn(|i| {
            let bytes = load_eight(halves[i]);
            have!(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)))
        })
    }

    #[inline(always)]
    fn load_i8(self, values: &[i8; LANES]) -> [__m256; 2] {
        let values = values.map(i8::cast_unsigned);
        let (halves, _) = values.as_chunks::<8>();
        from_fn(|i| {
            let bytes = load_eight(halves[i]);
            have!(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)))
        })
    }

    #[inline(always)]
    fn mul(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        from_fn(|i| have!(_mm256_mul_ps(a[i], b[i])))
    }

    #[inline(always)]
    fn fma(
        self,
        a: [__m256; 2],
        b: [__m256; 2],
        c: [__m256; 2],
    ) -> [__m256; 2] {
        from_fn(|i| have!(_mm256_fmadd_ps(a[i], b[i], c[i])))
    }

    #[inline(always)]
    fn splat_int(self, value: i32) -> [__m256i; 2] {
        [have!(_mm256_set1_epi32(value)); 2]
    }

    #[inline(always)]
    fn to_floats(self, ints: [__m256i; 2]) -> [__m256; 2] {
        ints.map(|ints| have!(_mm256_cvtepi32_ps(ints)))
    }

    #[inline(always)]
    fn load_bytes(self, line: &Line) -> [__m256i; 2] {
        let (halves, _) = line.as_chunks::<8>();
        // SAFETY: each half is 32 bytes, which is what the load reads; the
        // features are there as in `have`.
        from_fn(|i| unsafe { _mm256_loadu_si256(halves[i].as_ptr().cast()) })
    }

    #[inline(always)]
    fn mask(self, bytes: [__m256i; 2], mask: u8) -> [__m256i; 2] {
        let mask = have!(_mm256_set1_epi8(mask.cast_signed()));
        bytes.map(|bytes| have!(_mm256_and_si256(bytes, mask)))
    }

    #[inline(always)]
    fn or(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        from_fn(|i| have!(_mm256_or_si256(a[i], b[i])))
    }

    #[inline(always)]
    fn shift_left(self, bytes: [__m256i; 2], by: i32) -> [__m256i; 2] {
        let by = have!(_mm_cvtsi32_si128(by));
        bytes.map(|bytes| have!(_mm256_sll_epi16(bytes, by)))
    }

    #[inline(always)]
    fn shift_right(self, bytes: [__m256i; 2], by: i32) -> [__m256i; 2] {
        let by = have!(_mm_cvtsi32_si128(by));
        bytes.map(|bytes| have!(_mm256_srl_epi16(bytes, by)))
    }

    #[inline(always)]
    fn eight_bits(self, bytes: [__m256i; 2]) -> [__m256i; 2] {
        if VNNI {
            bytes.map(|bytes| {
                have!(_mm256_xor_si256(bytes, _mm256_set1_epi8(-128)))
            })
        } else {
            bytes
        }
    }

    #[inline(always)]
    fn dot<const BITS: u32>(
        self,
        sums: [__m256i; 2],
        weights: [[__m256i; 2]; 4],
        inputs: &[[i8; 4]; 4],
    ) -> [__m256i; 2] {
        if VNNI {
            return self.dot_vnni(sums, weights, inputs);
        }
        from_fn(|half| {
            let pairs: [__m256i; 4] =
                from_fn(|i| self.pairs::<BITS>(weights[i][half], inputs[i]));
            let [a, b, c, d] = pairs;
            let one = have!(_mm256_set1_epi16(1));
            let add = |a, b| have!(_mm256_add_epi16(a, b));
            let widen = |pairs| have!(_mm256_madd_epi16(pairs, one));
            let join = |a, b| have!(_mm256_add_epi32(a, b));
            // As many as fit 16 bits: a pair of weights of 4, 5 or 6 bits
            // is at most 15, 31 or 63 · 127 · 2.
            let sum = match BITS {
                ..=5 => widen(add(add(a, b), add(c, d))),
                6 => join(widen(add(a, b)), widen(add(c, d))),
                _ => join(join(widen(a), widen(b)), join(widen(c), widen(d))),
            };
            join(sums[half], sum)
        })
    }
}

/// Puts four inputs into the lane that is to be copied to all others.
#[inline(always)]
fn four(inputs: [i8; 4]) -> i32 {
    i32::from_le_bytes(inputs.map(i8::cast_unsigned))
}

/// Loads sixteen 16-bit numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn load_shorts(bits: &[u16; LANES]) -> __m256i {
    // SAFETY: the array is 32 bytes, which is what the load reads.
    unsafe { _mm256_loadu_si256(bits.as_ptr().cast()) }
}

/// Loads sixteen 16-bit numbers as two vectors of eight.
#[inline(always)]
fn load_eights(bits: &[u16; LANES]) -> [__m128i; 2] {
    let (halves, _) = bits.as_chunks::<8>();
    // SAFETY: each half is 16 bytes, which is what the load reads; the
    // instruction belongs to the baseline.
    from_fn(|i| unsafe { _mm_loadu_si128(halves[i].as_ptr().cast()) })
}

/// Puts eight bytes into the low half of a vector.
#[inline(always)]
fn load_eight(bytes: [u8; 8]) -> __m128i {
    let mut padded = [0; 16];
    padded[..8].copy_from_slice(&bytes);
    // SAFETY: the array is 16 bytes, which is what the load reads; the
    // instruction belongs to the baseline.
    unsafe { _mm_loadu_si128(padded.as_ptr().cast()) }
}
