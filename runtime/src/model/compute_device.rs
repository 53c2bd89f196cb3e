//! What a model computes on.

use std::fmt;
use std::str::FromStr;

use candle_core::Device;

use super::error::ModelError;
use super::memory;

/// What a model computes on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ComputeDevice {
    /// The first GPU if this build knows its kind and there is one, and the
    /// processor otherwise.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// The CUDA device of this number, in builds with the feature `cuda`.
    Cuda(usize),
    /// The Metal device of this number, in builds with the feature `metal`.
    Metal(usize),
}

impl ComputeDevice {
    /// Opens the device; none is the processor.
    pub(super) fn open(self) -> Result<Option<Device>, ModelError> {
        let opened = match self {
            ComputeDevice::Cpu => return Ok(None),
            ComputeDevice::Auto => {
                let cuda = || Device::new_cuda(0).ok();
                return Ok(cuda().or_else(|| Device::new_metal(0).ok()));
            }
            ComputeDevice::Cuda(index) => Device::new_cuda(index),
            ComputeDevice::Metal(index) => Device::new_metal(index),
        };
        opened
            .map(Some)
            .map_err(|source| ModelError::Device { device: self, source })
    }
}

impl fmt::Display for ComputeDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ComputeDevice::Auto => f.write_str("auto"),
            ComputeDevice::Cpu => f.write_str("cpu"),
            ComputeDevice::Cuda(index) => write!(f, "cuda:{index}"),
            ComputeDevice::Metal(index) => write!(f, "metal:{index}"),
        }
    }
}

impl FromStr for ComputeDevice {
    type Err = ModelError;

    /// Reads `auto`, `cpu`, `cuda`, `metal`, or one of the latter two with a
    /// number: `cuda:1`.
    fn from_str(text: &str) -> Result<ComputeDevice, ModelError> {
        let (kind, index) = text.split_once(':').unwrap_or((text, "0"));
        match (kind, index.parse()) {
            ("auto", _) if kind == text => Ok(ComputeDevice::Auto),
            ("cpu", _) if kind == text => Ok(ComputeDevice::Cpu),
            ("cuda", Ok(index)) => Ok(ComputeDevice::Cuda(index)),
            ("metal", Ok(index)) => Ok(ComputeDevice::Metal(index)),
            _ => Err(ModelError::Option {
                option: "device".into(),
                value: format!("{text:?}"),
                way_out: "auto, cpu, cuda, metal, cuda:1 and so on are".into(),
            }),
        }
    }
}

/// Returns the bytes that can be allocated where the model will be.
pub(super) fn available(device: Option<&Device>) -> Option<u64> {
    match device {
        #[cfg(feature = "cuda")]
        Some(Device::Cuda(_)) => {
            use candle_core::cuda_backend::cudarc::driver::result;
            let (free, _) = result::mem_get_info().ok()?;
            u64::try_from(free).ok()
        }
        // Metal shares the machine's memory.
        _ => memory::available(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for text in ["auto", "cpu", "cuda:0", "cuda:3", "metal:1"] {
            let device: ComputeDevice = text.parse().expect(text);
            assert_eq!(device.to_string(), text);
        }
        assert_eq!(
            "cuda".parse::<ComputeDevice>().expect("a device"),
            ComputeDevice::Cuda(0)
        );
        for text in ["", "gpu", "cuda:", "cuda:x", "cpu:0", "auto:1", "CPU"] {
            let error = text.parse::<ComputeDevice>().expect_err(text);
            assert!(error.to_string().contains("cuda:1"), "{error}");
        }
    }

    #[test]
    #[cfg(not(any(feature = "cuda", feature = "metal")))]
    fn a_device_that_this_build_does_not_know_is_refused() {
        for device in [ComputeDevice::Cuda(0), ComputeDevice::Metal(0)] {
            let error = device.open().expect_err("not built").to_string();
            assert!(error.contains(&device.to_string()), "{error}");
            assert!(error.contains("--features"), "{error}");
        }
        assert!(ComputeDevice::Auto.open().expect("always").is_none());
    }
}
