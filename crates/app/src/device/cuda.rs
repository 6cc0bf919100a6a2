//! Opening a CUDA device: what the backend needs of the machine, asked for before anything begins.

use std::panic::{UnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Opens device `index`, as the driver counts those that are visible.
///
/// # Errors
/// When there is no driver, no such device, or no libdevice.
#[cfg(feature = "cuda-unfused")]
pub(super) fn open(index: usize) -> anyhow::Result<burn::tensor::Device> {
    let device = hear(move || {
        let device = burn::tensor::Device::cuda(index);
        device.sync().map(|()| device).map_err(|error| format!("{error:?}"))
    });
    let device = device.map_err(|cause| {
        anyhow::anyhow!(
            "cuda:{index} cannot be used: {cause}; see what nvidia-smi says, or use --device flex"
        )
    })?;
    require_libdevice(&roots(std::env::var_os("CUDA_PATH").map(PathBuf::from)))?;
    Ok(device)
}

/// What `open` returns, or in a line why it does not: the backend panics where there is no driver and
/// no such device, first on a thread of its own, and what the caller's thread then meets says nothing.
/// For the beginning of a command, since nobody else's panic is heard meanwhile.
fn hear<T: 'static>(open: impl FnOnce() -> Result<T, String> + UnwindSafe) -> Result<T, String> {
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

/// NVIDIA's bitcode of `exp`, `log` and their like, which have no instruction of their own: every kernel
/// with one of them is linked with it when it is compiled, at run time (cubecl-llvm 0.11.3,
/// `nvptx/libdevice.rs`).
const LIBDEVICE: &str = "nvvm/libdevice/libdevice.10.bc";

/// Where the backend looks for a CUDA toolkit.
fn roots(cuda_path: Option<PathBuf>) -> Vec<PathBuf> {
    let usual = ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda", "/usr"];
    cuda_path.map_or_else(|| usual.map(PathBuf::from).to_vec(), |path| vec![path])
}

fn require_libdevice(roots: &[PathBuf]) -> anyhow::Result<()> {
    anyhow::ensure!(
        roots.iter().any(|root| root.join(LIBDEVICE).is_file()),
        "the CUDA toolkit's {LIBDEVICE} is not in {}: set CUDA_PATH to a folder that has it, such as \
         nvidia/cuda_nvcc of PyPI's nvidia-cuda-nvcc-cu12, unpacked",
        roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", ")
    );
    Ok(())
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
    fn a_machine_without_libdevice_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let roots = roots(Some(root.path().to_owned()));
        let error = require_libdevice(&roots).unwrap_err().to_string();
        assert!(error.contains("libdevice.10.bc is not in /"), "{error}");
        let file = root.path().join(LIBDEVICE);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "BC").unwrap();
        require_libdevice(&roots).unwrap();
    }
}
