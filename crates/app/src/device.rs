//! The device a command runs on. Adding a backend is a variant here and a cargo feature.

#[cfg(any(test, feature = "cuda-unfused"))]
mod cuda;

use anyhow::Result;
use burn::tensor::Device;
use std::fmt;
use std::str::FromStr;
use tbps_metrics::memory::nvml;

/// `flex` (CPU) or `cuda[:index]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceName {
    Flex,
    Cuda(usize),
    /// A GPU's kernels, compiled for the CPU: slow, to test them without a GPU.
    CubeCpu,
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':').unwrap_or((text, "0")) {
            ("flex", "0") => Ok(Self::Flex),
            ("cube-cpu", "0") => Ok(Self::CubeCpu),
            ("cuda", index) => index.parse().map(Self::Cuda).map_err(|_| expected(text)),
            _ => Err(expected(text)),
        }
    }
}

fn expected(text: &str) -> String {
    format!("`{text}` is no device: expected flex or cuda[:index]")
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flex => f.write_str("flex"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
            Self::CubeCpu => f.write_str("cube-cpu"),
        }
    }
}

impl DeviceName {
    /// Whether kernels are compiled and tuned for each shape of their arguments.
    pub(crate) fn compiles_per_shape(self) -> bool {
        match self {
            Self::Flex => false,
            Self::Cuda(_) | Self::CubeCpu => true,
        }
    }

    /// Whether f32 products may run in TF32.
    pub(crate) fn may_run_in_tf32(self) -> bool {
        matches!(self, Self::Cuda(_))
    }

    /// The driver's name for it, to read its memory by; `None` where there is no driver to ask.
    pub(crate) fn driver(self) -> Option<nvml::DeviceId> {
        match self {
            Self::Flex | Self::CubeCpu => None,
            Self::Cuda(index) => {
                let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
                nvml::DeviceId::of_cuda(index as u32, visible.as_deref())
            }
        }
    }

    /// Opens the device, without autodiff.
    ///
    /// # Errors
    /// A usage failure when this build has no such backend; when the device cannot be used.
    pub(crate) fn open(self) -> Result<Device> {
        match self {
            Self::Flex => Ok(Device::flex()),
            #[cfg(feature = "cuda-unfused")]
            Self::Cuda(index) => cuda::open(index),
            #[cfg(not(feature = "cuda-unfused"))]
            Self::Cuda(_) => Err(crate::failure::Failure::usage(
                "this build has no CUDA backend: build with `--features cuda`, or use --device flex",
            )),
            #[cfg(feature = "cube-cpu")]
            Self::CubeCpu => Ok(Device::cpu()),
            #[cfg(not(feature = "cube-cpu"))]
            Self::CubeCpu => Err(crate::failure::Failure::usage(
                "this build has no cube-cpu: benchmarks/gpu/emulate.sh makes one; or use --device flex",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_shown() {
        for text in ["flex", "cuda:0", "cuda:1", "cube-cpu"] {
            assert_eq!(text.parse::<DeviceName>().unwrap().to_string(), text);
        }
        assert_eq!("cuda".parse(), Ok(DeviceName::Cuda(0)));
        for text in ["cpu", "flex:1", "cuda:x", "cube-cpu:1", ""] {
            assert_eq!(text.parse::<DeviceName>(), Err(expected(text)));
        }
    }
}
