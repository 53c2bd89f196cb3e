//! What a mask took.

/// What was done for one mask.
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
}
