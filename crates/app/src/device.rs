//! The device a command runs on. Adding a backend is a variant here and a cargo feature.

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
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':').unwrap_or((text, "0")) {
            ("flex", "0") => Ok(Self::Flex),
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
        }
    }
}

impl DeviceName {
    /// Whether kernels are compiled and tuned for each shape of their arguments.
    pub(crate) fn compiles_per_shape(self) -> bool {
        match self {
            Self::Flex => false,
            Self::Cuda(_) => true,
        }
    }

    /// The driver's name for it, to read its memory by; `None` where there is no driver to ask.
    pub(crate) fn driver(self) -> Option<nvml::DeviceId> {
        match self {
            Self::Flex => None,
            Self::Cuda(index) => {
                let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
                nvml::DeviceId::of_cuda(index as u32, visible.as_deref())
            }
        }
    }

    /// Opens the device, without autodiff.
    ///
    /// # Errors
    /// A usage failure when this build has no such backend; when the device does not answer.
    pub(crate) fn open(self) -> Result<Device> {
        match self {
            Self::Flex => Ok(Device::flex()),
            #[cfg(feature = "cuda-unfused")]
            Self::Cuda(index) => hear(move || {
                let device = Device::cuda(index);
                device.sync().map(|()| device).map_err(|error| format!("{error:?}"))
            })
            .map_err(|cause| {
                anyhow::anyhow!(
                    "{self} cannot be used: {cause}; see what nvidia-smi says, or use --device flex"
                )
            }),
            #[cfg(not(feature = "cuda-unfused"))]
            Self::Cuda(_) => Err(crate::failure::Failure::usage(
                "this build has no CUDA backend: build with `--features cuda`, or use --device flex",
            )),
        }
    }
}

/// What `open` returns, or in a line why it does not: the backend panics where there is no driver and
/// no such device, first on a thread of its own, and what the caller's thread then panics with says
/// nothing. For the beginning of a command, since nobody else's panic is heard meanwhile.
#[cfg(any(test, feature = "cuda-unfused"))]
fn hear<T: 'static>(
    open: impl FnOnce() -> Result<T, String> + std::panic::UnwindSafe,
) -> Result<T, String> {
    use std::panic::{catch_unwind, set_hook, take_hook};
    use std::sync::{Arc, OnceLock};

    let first = Arc::new(OnceLock::new());
    let heard = Arc::clone(&first);
    let hook = take_hook();
    set_hook(Box::new(move |panic| {
        let _ = heard.set(panic.payload_as_str().unwrap_or("no reason given").to_owned());
    }));
    let opened = catch_unwind(open);
    set_hook(hook);
    let returned = match opened {
        Ok(Ok(opened)) => return Ok(opened),
        Ok(Err(reason)) => reason,
        Err(_) => String::new(),
    };
    let reason = first.get().unwrap_or(&returned);
    // What follows a dash is a list of the forty names that a library may have.
    Err(reason
        .lines()
        .next()
        .unwrap_or_default()
        .split(" - ")
        .next()
        .unwrap_or_default()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_device_that_does_not_answer_the_first_reason_is_heard() {
        let open = || -> Result<(), String> {
            let driver = std::thread::spawn(|| panic!("no library - searched for: a, b\nas c"));
            driver.join().map_err(|_| "no answer").unwrap();
            Ok(())
        };
        assert_eq!(hear(open), Err("no library".to_owned()));
        assert_eq!(hear(|| Err::<(), _>("busy\nat 3".to_owned())), Err("busy".to_owned()));
        assert_eq!(hear(|| Ok(3)), Ok(3));
    }

    #[test]
    fn names_are_read_and_shown() {
        for (text, shown) in [("flex", "flex"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1")] {
            assert_eq!(text.parse::<DeviceName>().unwrap().to_string(), shown);
        }
        for text in ["cpu", "flex:1", "cuda:x", ""] {
            assert_eq!(text.parse::<DeviceName>(), Err(expected(text)));
        }
    }
}
