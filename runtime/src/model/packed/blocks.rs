//! How the quantised types lie in memory here.
//!
//! Sixteen rows of weights lie side by side, one in each lane of a vector,
//! and a block of 32 columns is the unit: for four columns at a time, a line
//! holds the four quants of each row. A [`Record`] is what a file stores for
//! a row at once, for sixteen rows; one record of a file after the other is
//! put into its lane.

use std::array::from_fn;

use crate::model::simd::{LANES, Line, Simd};

/// The columns that share a scale in a file.
pub(super) const BLOCK: usize = 32;

/// The blocks of a record of the types with scales of scales.
const SUPER: usize = 8;

/// Quants of one width: a block of sixteen rows.
pub(super) trait Quants: Copy + Send + Sync + 'static {
    const BITS: u32;
    const EMPTY: Self;

    /// Puts the quants of one row into its lane.
    fn put(&mut self, lane: usize, quants: &[u8; BLOCK]);

    /// Unpacks one half of the columns, four a vector.
    fn unpack<S: Simd, const HALF: usize>(&self, simd: S) -> [S::Bytes; 4];
}

/// A record of sixteen rows.
pub(super) trait Record: Copy + Send + Sync + 'static {
    type Quants: Quants;

    /// The bytes of one row in a file.
    const N_BYTES: usize;
    const N_BLOCKS: usize = 1;
    /// What is subtracted from each quant.
    const OFFSET: i32 = 0;
    /// Whether the halves of a block have a scale each.
    const HAS_SPLIT_SCALES: bool = false;
    const EMPTY: Self;

    /// Puts what a file has for one row into its lane.
    fn put(&mut self, lane: usize, bytes: &[u8]);

    fn quants(&self, block: usize) -> &Self::Quants;

    /// The scale of a block, or of one half of it.
    fn scale<S: Simd>(&self, simd: S, block: usize, half: usize) -> S::Floats;

    /// What is added to each weight of a block.
    fn min<S: Simd>(&self, simd: S, block: usize) -> Option<S::Floats> {
        let _ = (simd, block);
        None
    }
}

/// Four bits: the first half of the columns in the low halves of the bytes.
#[derive(Clone, Copy)]
pub(super) struct Four([Line; 4]);

/// Five bits: four, and a bit of each of the eight lines in one more.
#[derive(Clone, Copy)]
pub(super) struct Five(Four, Line);

/// Six bits: four, and two bits of each of four lines in two more.
#[derive(Clone, Copy)]
pub(super) struct Six(Four, [Line; 2]);

/// Eight bits with a sign.
#[derive(Clone, Copy)]
pub(super) struct Eight([Line; 8]);

const ZEROS: Line = [[0; 4]; LANES];

impl Quants for Four {
    const BITS: u32 = 4;
    const EMPTY: Four = Four([ZEROS; 4]);

    fn put(&mut self, lane: usize, quants: &[u8; BLOCK]) {
        for (i, line) in self.0.iter_mut().enumerate() {
            line[lane] = from_fn(|j| {
                let column = 4 * i + j;
                quants[column] & 15 | quants[column + BLOCK / 2] << 4
            });
        }
    }

    #[inline(always)]
    fn unpack<S: Simd, const HALF: usize>(&self, simd: S) -> [S::Bytes; 4] {
        from_fn(|i| {
            let bytes = simd.load_bytes(&self.0[i]);
            let bytes =
                if HALF == 0 { bytes } else { simd.shift_right(bytes, 4) };
            simd.mask(bytes, 15)
        })
    }
}

impl Quants for Five {
    const BITS: u32 = 5;
    const EMPTY: Five = Five(Four::EMPTY, ZEROS);

    fn put(&mut self, lane: usize, quants: &[u8; BLOCK]) {
        self.0.put(lane, quants);
        self.1[lane] = from_fn(|j| {
            (0..8).fold(0, |bits, i| bits | (quants[4 * i + j] >> 4 & 1) << i)
        });
    }

    #[inline(always)]
    fn unpack<S: Simd, const HALF: usize>(&self, simd: S) -> [S::Bytes; 4] {
        let [a, b, c, d] = self.0.unpack::<S, HALF>(simd);
        let bits = simd.load_bytes(&self.1);
        let with = |low, bits| simd.or(low, simd.mask(bits, 16));
        if HALF == 0 {
            [
                with(a, simd.shift_left(bits, 4)),
                with(b, simd.shift_left(bits, 3)),
                with(c, simd.shift_left(bits, 2)),
                with(d, simd.shift_left(bits, 1)),
            ]
        } else {
            [
                with(a, bits),
                with(b, simd.shift_right(bits, 1)),
                with(c, simd.shift_right(bits, 2)),
                with(d, simd.shift_right(bits, 3)),
            ]
        }
    }
}

impl Quants for Six {
    const BITS: u32 = 6;
    const EMPTY: Six = Six(Four::EMPTY, [ZEROS; 2]);

    fn put(&mut self, lane: usize, quants: &[u8; BLOCK]) {
        self.0.put(lane, quants);
        for (half, line) in self.1.iter_mut().enumerate() {
            line[lane] = from_fn(|j| {
                (0..4).fold(0, |bits, i| {
                    let column = half * BLOCK / 2 + 4 * i + j;
                    bits | (quants[column] >> 4 & 3) << (2 * i)
                })
            });
        }
    }

    #[inline(always)]
    fn unpack<S: Simd, const HALF: usize>(&self, simd: S) -> [S::Bytes; 4] {
        let [a, b, c, d] = self.0.unpack::<S, HALF>(simd);
        let bits = simd.load_bytes(&self.1[HALF]);
        let with = |low, bits| simd.or(low, simd.mask(bits, 48));
        [
            with(a, simd.shift_left(bits, 4)),
            with(b, simd.shift_left(bits, 2)),
            with(c, bits),
            with(d, simd.shift_right(bits, 2)),
        ]
    }
}

impl Quants for Eight {
    const BITS: u32 = 8;
    const EMPTY: Eight = Eight([ZEROS; 8]);

    fn put(&mut self, lane: usize, quants: &[u8; BLOCK]) {
        for (i, line) in self.0.iter_mut().enumerate() {
            line[lane] = from_fn(|j| quants[4 * i + j]);
        }
    }

    #[inline(always)]
    fn unpack<S: Simd, const HALF: usize>(&self, simd: S) -> [S::Bytes; 4] {
        from_fn(|i| simd.eight_bits(simd.load_bytes(&self.0[4 * HALF + i])))
    }
}

/// `Q4_0`, `Q5_0` and `Q8_0`: a scale a block, quants around zero.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Centred<Q> {
    scales: [u16; LANES],
    quants: Q,
}

/// `Q4_1` and `Q5_1`: a scale and an offset a block.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Shifted<Q> {
    scales: [u16; LANES],
    mins: [u16; LANES],
    quants: Q,
}

/// `Q4_K` and `Q5_K`: eight blocks with a scale and an offset each, six bits
/// that are scaled in turn.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct SuperShifted<Q> {
    scale_of_scales: [u16; LANES],
    scale_of_mins: [u16; LANES],
    scales: [[u8; LANES]; SUPER],
    mins: [[u8; LANES]; SUPER],
    quants: [Q; SUPER],
}

/// `Q6_K`: eight blocks around zero with two scales each.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct SuperCentred {
    scale_of_scales: [u16; LANES],
    scales: [[[i8; LANES]; 2]; SUPER],
    quants: [Six; SUPER],
}

/// Reads the half-precision bits at `at`.
fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Spreads the halves of 16 bytes over 32, the low ones first.
fn spread(bytes: &[u8]) -> [u8; BLOCK] {
    from_fn(|i| bytes[i % 16] >> (i / 16 * 4) & 15)
}

/// Adds the bits of a 32-bit number as fifth bits.
fn with_fifth_bits(quants: [u8; BLOCK], bits: &[u8]) -> [u8; BLOCK] {
    from_fn(|i| quants[i] | (bits[i / 8] >> (i % 8) & 1) << 4)
}

/// What `Q4_0` and `Q4_1`, `Q5_0` and `Q5_1` have after their scales.
trait Tail: Quants {
    const N_BYTES: usize;
    /// The quant that stands for zero where there is no offset.
    const ZERO: i32;

    fn read(bytes: &[u8]) -> [u8; BLOCK];
}

impl Tail for Four {
    const N_BYTES: usize = 16;
    const ZERO: i32 = 8;

    fn read(bytes: &[u8]) -> [u8; BLOCK] {
        spread(bytes)
    }
}

impl Tail for Five {
    const N_BYTES: usize = 20;
    const ZERO: i32 = 16;

    fn read(bytes: &[u8]) -> [u8; BLOCK] {
        with_fifth_bits(spread(&bytes[4..]), bytes)
    }
}

impl Tail for Eight {
    const N_BYTES: usize = 32;
    const ZERO: i32 = 0;

    fn read(bytes: &[u8]) -> [u8; BLOCK] {
        from_fn(|i| bytes[i])
    }
}

impl<Q: Tail> Record for Centred<Q> {
    type Quants = Q;

    const N_BYTES: usize = 2 + Q::N_BYTES;
    const OFFSET: i32 = Q::ZERO;
    const EMPTY: Centred<Q> = Centred { scales: [0; LANES], quants: Q::EMPTY };

    fn put(&mut self, lane: usize, bytes: &[u8]) {
        self.scales[lane] = half(bytes, 0);
        self.quants.put(lane, &Q::read(&bytes[2..]));
    }

    #[inline(always)]
    fn quants(&self, _: usize) -> &Q {
        &self.quants
    }

    #[inline(always)]
    fn scale<S: Simd>(&self, simd: S, _: usize, _: usize) -> S::Floats {
        simd.load_f16(&self.scales)
    }
}

impl<Q: Tail> Record for Shifted<Q> {
    type Quants = Q;

    const N_BYTES: usize = 4 + Q::N_BYTES;
    const EMPTY: Shifted<Q> =
        Shifted { scales: [0; LANES], mins: [0; LANES], quants: Q::EMPTY };

    fn put(&mut self, lane: usize, bytes: &[u8]) {
        self.scales[lane] = half(bytes, 0);
        self.mins[lane] = half(bytes, 2);
        self.quants.put(lane, &Q::read(&bytes[4..]));
    }

    #[inline(always)]
    fn quants(&self, _: usize) -> &Q {
        &self.quants
    }

    #[inline(always)]
    fn scale<S: Simd>(&self, simd: S, _: usize, _: usize) -> S::Floats {
        simd.load_f16(&self.scales)
    }

    #[inline(always)]
    fn min<S: Simd>(&self, simd: S, _: usize) -> Option<S::Floats> {
        Some(simd.load_f16(&self.mins))
    }
}

/// What `Q4_K` and `Q5_K` have after their scales.
trait SuperTail: Quants {
    const N_BYTES: usize;

    fn read(bytes: &[u8], block: usize) -> [u8; BLOCK];
}

/// Two blocks share 32 bytes: one their low halves, one their high.
fn read_shared(bytes: &[u8], block: usize) -> [u8; BLOCK] {
    from_fn(|i| bytes[block / 2 * BLOCK + i] >> (block % 2 * 4) & 15)
}

impl SuperTail for Four {
    const N_BYTES: usize = 128;

    fn read(bytes: &[u8], block: usize) -> [u8; BLOCK] {
        read_shared(bytes, block)
    }
}

impl SuperTail for Five {
    const N_BYTES: usize = 160;

    fn read(bytes: &[u8], block: usize) -> [u8; BLOCK] {
        let quants = read_shared(&bytes[BLOCK..], block);
        from_fn(|i| quants[i] | (bytes[i] >> block & 1) << 4)
    }
}

/// Reads a scale and an offset out of twelve bytes with eight of each.
fn read_six_bits(bytes: &[u8], block: usize) -> (u8, u8) {
    if block < 4 {
        (bytes[block] & 63, bytes[block + 4] & 63)
    } else {
        let low = bytes[block + 4];
        let (scale, min) = (bytes[block - 4], bytes[block]);
        (low & 15 | scale >> 6 << 4, low >> 4 | min >> 6 << 4)
    }
}

impl<Q: SuperTail> Record for SuperShifted<Q> {
    type Quants = Q;

    const N_BYTES: usize = 16 + Q::N_BYTES;
    const N_BLOCKS: usize = SUPER;
    const EMPTY: SuperShifted<Q> = SuperShifted {
        scale_of_scales: [0; LANES],
        scale_of_mins: [0; LANES],
        scales: [[0; LANES]; SUPER],
        mins: [[0; LANES]; SUPER],
        quants: [Q::EMPTY; SUPER],
    };

    fn put(&mut self, lane: usize, bytes: &[u8]) {
        self.scale_of_scales[lane] = half(bytes, 0);
        // The offset is subtracted in files and added here.
        self.scale_of_mins[lane] = half(bytes, 2) ^ 0x8000;
        for (block, quants) in self.quants.iter_mut().enumerate() {
            let (scale, min) = read_six_bits(&bytes[4..16], block);
            self.scales[block][lane] = scale;
            self.mins[block][lane] = min;
            quants.put(lane, &Q::read(&bytes[16..], block));
        }
    }

    #[inline(always)]
    fn quants(&self, block: usize) -> &Q {
        &self.quants[block]
    }

    #[inline(always)]
    fn scale<S: Simd>(&self, simd: S, block: usize, _: usize) -> S::Floats {
        simd.mul(
            simd.load_f16(&self.scale_of_scales),
            simd.load_u8(&self.scales[block]),
        )
    }

    #[inline(always)]
    fn min<S: Simd>(&self, simd: S, block: usize) -> Option<S::Floats> {
        Some(simd.mul(
            simd.load_f16(&self.scale_of_mins),
            simd.load_u8(&self.mins[block]),
        ))
    }
}

impl Record for SuperCentred {
    type Quants = Six;

    const N_BYTES: usize = 210;
    const N_BLOCKS: usize = SUPER;
    const OFFSET: i32 = 32;
    const HAS_SPLIT_SCALES: bool = true;
    const EMPTY: SuperCentred = SuperCentred {
        scale_of_scales: [0; LANES],
        scales: [[[0; LANES]; 2]; SUPER],
        quants: [Six::EMPTY; SUPER],
    };

    /// Low bits of all 256 columns, high bits, scales, and their scale.
    fn put(&mut self, lane: usize, bytes: &[u8]) {
        let (low, bytes) = bytes.split_at(128);
        let (high, bytes) = bytes.split_at(64);
        let (scales, bytes) = bytes.split_at(16);
        self.scale_of_scales[lane] = half(bytes, 0);
        for (block, quants) in self.quants.iter_mut().enumerate() {
            for (half, scales) in
                self.scales[block].iter_mut().zip(&scales[2 * block..])
            {
                half[lane] = scales.cast_signed();
            }
            // Four blocks share 64 bytes of low bits and 32 of high bits.
            let (part, block) = (block / 4, block % 4);
            let low = &low[part * 64 + block % 2 * BLOCK..];
            let high = &high[part * BLOCK..];
            quants.put(
                lane,
                &from_fn(|i| {
                    low[i] >> (block / 2 * 4) & 15
                        | (high[i] >> (2 * block) & 3) << 4
                }),
            );
        }
    }

    #[inline(always)]
    fn quants(&self, block: usize) -> &Six {
        &self.quants[block]
    }

    #[inline(always)]
    fn scale<S: Simd>(&self, simd: S, block: usize, half: usize) -> S::Floats {
        simd.mul(
            simd.load_f16(&self.scale_of_scales),
            simd.load_i8(&self.scales[block][half]),
        )
    }
}
