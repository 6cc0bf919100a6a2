//! What it was measured on, and when.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// Null where the system does not say.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    os: &'static str,
    cpu: Option<String>,
    num_cores: Option<usize>,
    ram_gib: Option<f64>,
    gpu: Option<Gpu>,
}

/// As nvidia-smi says.
#[derive(Debug, PartialEq, Serialize)]
struct Gpu {
    name: String,
    memory_gib: Option<f64>,
    driver: String,
}

impl Machine {
    /// This machine, with the GPU of that name if it is one.
    pub(super) fn here(device: &str) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self {
            os: std::env::consts::OS,
            cpu: field(&read("/proc/cpuinfo"), "model name").map(str::to_owned),
            num_cores: std::thread::available_parallelism().ok().map(usize::from),
            ram_gib: field(&read("/proc/meminfo"), "MemTotal").and_then(gib_of_kib),
            gpu: smi(device, "name,memory.total,driver_version").as_deref().and_then(gpu),
        }
    }
}

/// Device memory in use by all processes, in GiB; `None` on the host and without nvidia-smi.
pub(super) fn gpu_used_gib(device: &str) -> Option<f64> {
    smi(device, "memory.used")?.trim().parse().ok().map(|mib: f64| mib / 1024.0)
}

/// The value behind `name : ` of the first line with that name.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn gib_of_kib(text: &str) -> Option<f64> {
    text.strip_suffix("kB")?.trim().parse().ok().map(|kib: f64| kib / 1024.0 / 1024.0)
}

fn gpu(line: &str) -> Option<Gpu> {
    let mut parts = line.trim().split(',').map(str::trim);
    let (name, memory, driver) = (parts.next()?, parts.next()?, parts.next()?);
    let memory_gib = memory.parse().ok().map(|mib: f64| mib / 1024.0);
    Some(Gpu { name: name.into(), memory_gib, driver: driver.into() })
}

/// A line of nvidia-smi about a CUDA device, sizes in MiB.
fn smi(device: &str, query: &str) -> Option<String> {
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let output = Command::new("nvidia-smi")
        .arg(format!("--query-gpu={query}"))
        .args(["--format=csv,noheader,nounits", "--id", &id(device, visible.as_deref())?])
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// nvidia-smi's name of a device: CUDA counts the visible ones only.
fn id(device: &str, visible: Option<&str>) -> Option<String> {
    let (kind, index) = device.split_once(':').unwrap_or((device, "0"));
    if kind != "cuda" {
        return None;
    }
    match visible {
        None => Some(index.to_owned()),
        Some(ids) => Some(ids.split(',').nth(index.parse().ok()?)?.trim().to_owned()),
    }
}

/// Today in UTC, such as 2026-11-30.
pub(super) fn today() -> String {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(elapsed.as_secs() / 86_400)
}

/// The date so many days after 1 January 1970.
fn date(mut days: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Days from `date -u -d @$((86400 * DAYS))`.
    #[test]
    fn days_become_dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_787, "2026-11-30"),
            (20_818, "2026-12-31"),
            (20_819, "2027-01-01"),
        ] {
            assert_eq!(date(days), expected, "{days}");
        }
    }

    #[test]
    fn a_cuda_device_is_asked_for_by_the_drivers_name() {
        assert_eq!(id("flex", None), None);
        assert_eq!(id("cuda", None).as_deref(), Some("0"));
        assert_eq!(id("cuda:1", None).as_deref(), Some("1"));
        assert_eq!(id("cuda:1", Some("3, GPU-ab")).as_deref(), Some("GPU-ab"));
        assert_eq!(id("cuda:2", Some("3")), None);
    }

    #[test]
    fn what_the_system_says_is_read() {
        assert_eq!(
            field("processor\t: 0\nmodel name\t: AMD EPYC\n", "model name"),
            Some("AMD EPYC")
        );
        assert_eq!(field("a: b", "model name"), None);
        assert_eq!(gib_of_kib("  2097152 kB"), Some(2.0));
        let expected = Gpu { name: "RTX".into(), memory_gib: Some(16.0), driver: "590.1".into() };
        assert_eq!(gpu("RTX, 16384, 590.1\n"), Some(expected));
        assert_eq!(gpu("RTX, [N/A], 590.1").unwrap().memory_gib, None);
    }
}
