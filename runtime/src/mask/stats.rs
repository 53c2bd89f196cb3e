//! What a mask took.

use std::{ops::AddAssign, time::Duration};

/// What was done for one mask, or for several together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct MaskStats {
    /// Walks that had to be made. Zero is a mask that was only put together.
    pub n_walks: u32,
    /// Walks that were known.
    pub n_known: u32,
    /// Nodes of tries that were visited, over all walks made.
    pub n_nodes: u64,
    /// Tokens that were stepped byte by byte, because registers decide.
    pub n_stepped: u32,
    /// How long it took, if
    /// [`Matcher::measure_time`](crate::matcher::Matcher::measure_time) asked
    /// for that.
    pub time: Option<Duration>,
    /// How many frames below the top the mask depends on, if the grammar
    /// wants to know which text led here, so that the mask can be saved.
    pub(crate) dear_depth: Option<u32>,
}

impl MaskStats {
    /// A mask that was kept whole.
    pub(crate) fn known() -> MaskStats {
        MaskStats { n_known: 1, ..MaskStats::default() }
    }

    /// Returns true if and only if everything was known: the mask was put
    /// together from what the cache has.
    pub fn is_hit(&self) -> bool {
        self.n_walks == 0
    }
}

/// Adds up what several masks took; the time is known if any is.
impl AddAssign for MaskStats {
    fn add_assign(&mut self, more: MaskStats) {
        self.n_walks += more.n_walks;
        self.n_known += more.n_known;
        self.n_nodes += more.n_nodes;
        self.n_stepped += more.n_stepped;
        self.dear_depth = self.dear_depth.or(more.dear_depth);
        self.time = match (self.time, more.time) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
    }
}
