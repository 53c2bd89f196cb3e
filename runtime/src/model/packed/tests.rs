//! Every type in every vector version: against the safe twin, and against
//! itself in other company.

use candle_core::{Device, Tensor};

use super::super::testing::reference::{QUANTISED, formats};
use super::blocks::BLOCK;
use super::inputs::round;
use super::*;

/// Widths of rows: whole blocks, but not whole groups of anything else.
fn widths(dtype: GgmlDType) -> &'static [usize] {
    match dtype.block_size() {
        1 => &[1, 7, 33, 576],
        32 => &[32, 96, 576, 1120],
        _ => &[256, 768],
    }
}

fn values(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let high = u16::try_from(state >> 16).expect("16 bits");
        f32::from(high) / 32_768.0 - 1.0
    })
    .take(n)
    .collect()
}

fn weight(n_out: usize, n_in: usize, dtype: GgmlDType) -> QTensor {
    let values = values(n_out * n_in, 7);
    let tensor = Tensor::from_vec(values, (n_out, n_in), &Device::Cpu);
    QTensor::quantize(&tensor.expect("a tensor"), dtype).expect("blocks fit")
}

fn packed(weight: &QTensor) -> Packed {
    Packed::new(weight).expect("readable").expect("a type with a product")
}

fn widened(weight: &QTensor) -> Vec<Vec<f32>> {
    weight
        .dequantize(&Device::Cpu)
        .and_then(|tensor| tensor.to_vec2())
        .expect("a matrix")
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn products(packed: &Packed, version: Version, rows: &[f32]) -> Vec<f32> {
    let mut out = vec![9.0];
    packed.forward_by(version, rows, &mut out);
    out
}

/// The safe twin: the weights as the library widens them, the same rounded
/// inputs, added in `f64`. Returns the sum, and the sum of all magnitudes.
fn twin(weight: &[f32], input: &[f32], is_rounded: bool) -> (f64, f64) {
    let mut inputs: Vec<f64> = input.iter().copied().map(f64::from).collect();
    if is_rounded {
        let (blocks, _) = input.as_chunks::<BLOCK>();
        inputs = blocks
            .iter()
            .map(|block| round(block, 0, false))
            .flat_map(|block| {
                let scale = f64::from(block.scale);
                let quants = block.quants.into_iter().flatten();
                quants.map(move |quant| f64::from(quant) * scale)
            })
            .collect();
    }
    let products = weight.iter().zip(inputs).map(|(w, x)| f64::from(*w) * x);
    products.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()))
}

#[test]
fn products_agree_with_the_safe_twin() {
    for dtype in formats() {
        for &n_in in widths(dtype) {
            let n_out = 37;
            let weight = weight(n_out, n_in, dtype);
            let packed = packed(&weight);
            let weights = widened(&weight);
            for version in Version::all() {
                for n_rows in 1..=9 {
                    let inputs = values(n_rows * n_in, 3);
                    let out = products(&packed, version, &inputs);
                    assert_eq!(out.len(), n_rows * n_out);
                    for (out, input) in
                        out.chunks(n_out).zip(inputs.chunks(n_in))
                    {
                        for (out, row) in out.iter().zip(&weights) {
                            let is_rounded = QUANTISED.contains(&dtype);
                            let (sum, size) = twin(row, input, is_rounded);
                            let error = (f64::from(*out) - sum).abs();
                            assert!(
                                error <= size * 4e-6,
                                "{dtype:?} {version:?} {n_in} columns, \
                                 {n_rows} rows: {out} for {sum}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn vector_versions_give_the_same_bits() {
    for dtype in formats() {
        let n_in = widths(dtype)[1];
        let packed = packed(&weight(37, n_in, dtype));
        let inputs = values(9 * n_in, 11);
        let all = Version::all();
        let (portable, vector) = all.split_last().expect("the portable one");
        let Some(first) = vector.first() else { return };
        let expected = products(&packed, *first, &inputs);
        for version in vector {
            let out = products(&packed, *version, &inputs);
            assert_eq!(bits(&out), bits(&expected), "{dtype:?} {version:?}");
        }
        let out = products(&packed, *portable, &inputs);
        for (out, expected) in out.iter().zip(&expected) {
            assert!((out - expected).abs() < 1e-3, "{dtype:?}");
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_company_and_on_any_threads() {
    // Enough work that products are spread over threads.
    let n_out = 1_000;
    for dtype in formats() {
        let n_in = *widths(dtype).last().expect("not empty");
        let packed = packed(&weight(n_out, n_in, dtype));
        let inputs = values(23 * n_in, 5);
        for version in Version::all() {
            let alone: Vec<Vec<u32>> = inputs
                .chunks(n_in)
                .map(|input| bits(&products(&packed, version, input)))
                .collect();
            for n_threads in 1..=3 {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(n_threads)
                    .build()
                    .expect("threads");
                for n_rows in [1, 2, 3, 4, 7, 8, 13, 23] {
                    let inputs = &inputs[..n_rows * n_in];
                    let out =
                        pool.install(|| products(&packed, version, inputs));
                    for (row, alone) in out.chunks(n_out).zip(&alone) {
                        assert_eq!(
                            &bits(row),
                            alone,
                            "{dtype:?} {version:?}: {n_rows} rows on \
                             {n_threads} threads"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn many_rows_are_cut_where_no_row_notices() {
    let n_in = 2_048;
    let n_rows = MAX_INPUTS / n_in * 2 + 3;
    let packed = packed(&weight(3, n_in, GgmlDType::Q4_1));
    let inputs = values(n_rows * n_in, 13);
    let all = products(&packed, Version::best(), &inputs);
    assert_eq!(all.len(), n_rows * 3);
    for (all, input) in all.chunks(3).zip(inputs.chunks(n_in)) {
        let alone = products(&packed, Version::best(), input);
        assert_eq!(bits(all), bits(&alone));
    }
}

#[test]
fn rows_widen_as_the_library_widens_them() {
    for dtype in formats() {
        for &n_in in widths(dtype) {
            let weight = weight(35, n_in, dtype);
            let packed = packed(&weight);
            for (index, expected) in widened(&weight).iter().enumerate() {
                let mut row = vec![1.5];
                packed.widen_row(index, &mut row);
                assert_eq!(row[0].to_bits(), 1.5f32.to_bits());
                assert_eq!(row[1..], *expected, "{dtype:?} {n_in}");
            }
        }
    }
}

/// Quants and scales that a file may have and rounding does not make: the
/// ends of each range.
#[test]
fn weights_at_the_ends_of_their_range_do_not_overflow() {
    for dtype in QUANTISED {
        for byte in [0x00, 0x7f, 0x80, 0xff] {
            let n_in = dtype.block_size();
            let mut bytes = vec![byte; 16 * dtype.type_size()];
            for record in bytes.chunks_mut(dtype.type_size()) {
                let at = if dtype == GgmlDType::Q6K { 208 } else { 0 };
                record[at..at + 2].copy_from_slice(&[0, 0x3c]);
                if matches!(
                    dtype,
                    GgmlDType::Q4_1
                        | GgmlDType::Q5_1
                        | GgmlDType::Q4K
                        | GgmlDType::Q5K
                ) {
                    record[2..4].copy_from_slice(&[0, 0x3c]);
                }
            }
            let matrix = pack(dtype, &bytes, n_in).expect("whole records");
            let packed = Packed { matrix, n_in, n_out: 16 };
            let mut weights = Vec::new();
            packed.widen_row(3, &mut weights);
            for sign in [1.0, -1.0] {
                let inputs = vec![sign; n_in];
                let (sum, size) = twin(&weights, &inputs, true);
                for version in Version::all() {
                    for out in products(&packed, version, &inputs) {
                        let error = (f64::from(out) - sum).abs();
                        assert!(
                            error <= size * 4e-6,
                            "{dtype:?} {version:?} {byte:x}: {out} for {sum}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn inputs_are_rounded_to_the_nearest_of_255() {
    let mut block: [f32; BLOCK] = std::array::from_fn(|i| {
        f32::from(u8::try_from(i).expect("small")) - 12.25
    });
    let rounded = round(&block, 3, true);
    let quants: Vec<i8> = rounded.quants.into_iter().flatten().collect();
    for (quant, x) in quants.iter().zip(&block) {
        let nearest = (x * 127.0 / 18.75).round_ties_even();
        assert_eq!(f32::from(*quant).to_bits(), nearest.to_bits(), "{x}");
    }
    let sum = |quants: &[i8]| quants.iter().copied().map(i32::from).sum();
    let halves: [i32; 2] = [sum(&quants[..16]), sum(&quants[16..])];
    assert_eq!(rounded.starts, halves.map(|sum| -3 * sum));
    assert_eq!(
        round(&block, 3, false).starts[0],
        -3 * (halves[0] + halves[1])
    );

    // Too small for the scale to have an inverse.
    assert_eq!(round(&[1e-39; BLOCK], 0, false).quants, [[0; 4]; 8]);
    assert_eq!(round(&[0.0; BLOCK], 0, false).scale.to_bits(), 0);
    block[5] = f32::NAN;
    assert!(round(&block, 0, false).scale.is_nan());
    block[5] = f32::NEG_INFINITY;
    assert!(round(&block, 0, false).scale.is_infinite());
}

#[test]
fn inputs_that_are_not_finite_do_not_come_out_finite() {
    for dtype in formats() {
        let n_in = 256;
        let packed = packed(&weight(16, n_in, dtype));
        for bad in [f32::NAN, f32::INFINITY] {
            let mut inputs = values(n_in, 3);
            inputs[70] = bad;
            for version in Version::all() {
                for out in products(&packed, version, &inputs) {
                    assert!(!out.is_finite(), "{dtype:?} {version:?} {bad}");
                }
            }
        }
    }
}

#[test]
fn bytes_that_do_not_fit_are_not_packed() {
    assert!(pack(GgmlDType::Q4_1, &[0; 20], 16).is_none());
    assert!(pack(GgmlDType::Q4_1, &[0; 21], 32).is_none());
    assert!(pack(GgmlDType::F32, &[0; 7], 2).is_none());
    assert!(pack(GgmlDType::F32, &[], 0).is_none());
    assert!(pack(GgmlDType::Q4_1, &[0; 20], 0).is_none());
}
