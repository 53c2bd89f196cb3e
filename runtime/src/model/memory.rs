//! What a model will take in memory, known before its weights are read.

use std::path::Path;

use super::cache::KvLayout;
use super::config::Config;
use super::error::ModelError;

/// What a model will take in memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MemoryPlan {
    /// The bytes of the weights.
    pub weights: u64,
    /// The bytes of the keys and values of one position of one sequence.
    pub cache_per_token: u64,
    /// The positions that are sure to be wanted: the context that was asked
    /// for, or none.
    pub n_tokens: u64,
    /// The bytes that may be used: those of [`LoadOptions::memory`], or those
    /// that the device, the machine or the container has to spare; nothing
    /// where that is not known.
    ///
    /// [`LoadOptions::memory`]: super::LoadOptions::memory
    pub available: Option<u64>,
}

impl MemoryPlan {
    /// Plans for files of weights.
    pub(super) fn new(
        files: &[impl AsRef<Path>],
        config: &Config,
        asked: Option<usize>,
        limit: Option<u64>,
    ) -> Result<MemoryPlan, ModelError> {
        let mut weights = 0u64;
        for file in files {
            let path = file.as_ref();
            let metadata = path
                .metadata()
                .map_err(|error| ModelError::read(path, error))?;
            weights = weights.saturating_add(metadata.len());
        }
        Ok(MemoryPlan {
            weights,
            cache_per_token: per_token(config.kv_layout()),
            n_tokens: asked.map_or(0, to_u64),
            available: limit,
        })
    }

    /// Returns the bytes that keys and values of one sequence take.
    pub fn cache(&self) -> u64 {
        self.cache_per_token.saturating_mul(self.n_tokens)
    }

    /// Refuses what does not fit.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        let needed = self.weights.saturating_add(self.cache());
        match self.available {
            Some(available) if needed > available => {
                Err(ModelError::Memory { plan: *self, available })
            }
            _ => Ok(()),
        }
    }
}

fn per_token(layout: KvLayout) -> u64 {
    let KvLayout { n_layers, n_kv_heads, head_dim } = layout;
    [2, n_layers, n_kv_heads, head_dim, size_of::<f32>()]
        .into_iter()
        .map(to_u64)
        .fold(1, u64::saturating_mul)
}

fn to_u64(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// Returns the bytes that can be allocated without driving out others.
pub(super) fn available() -> Option<u64> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    let machine = system.available_memory();
    let container = system.cgroup_limits().map(|limits| limits.free_memory);
    let all = [Some(machine).filter(|bytes| *bytes > 0), container];
    all.into_iter().flatten().min()
}
