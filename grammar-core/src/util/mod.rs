//! Small tools that every room of this crate may use.

/// A hash map for look-ups only; never iterate over it where the order could
/// reach the output.
pub type FxHashMap<K, V> = hashbrown::HashMap<K, V, rustc_hash::FxBuildHasher>;

/// A hash set for look-ups only; never iterate over it where the order could
/// reach the output.
pub type FxHashSet<K> = hashbrown::HashSet<K, rustc_hash::FxBuildHasher>;
