//! Running one `tbps` process so that it never outlives us and can be asked to stop.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::stop::Stop;
use crate::halt::Halt;

/// Tells `tbps` to exit when its standard input reaches the end: the kernel closes our side of that
/// pipe however we end, even by SIGKILL.
const DIE_WITH_STDIN: &str = "TBPS_DIE_WITH_STDIN";

/// How often the child is looked at: well below the second that a person notices.
const POLL: Duration = Duration::from_millis(100);

/// Runs a process to its end, calling `on_tick` several times a second.
///
/// When `stop` asks for it, the process is interrupted once and then waited for, since a training
/// first finishes its step and writes its checkpoint.
///
/// # Errors
/// When the process cannot be started or waited for.
pub(crate) fn run(
    mut command: Command,
    stop: &Stop,
    mut on_tick: impl FnMut(),
) -> Result<ExitStatus> {
    command.stdin(Stdio::piped()).env(DIE_WITH_STDIN, "1");
    own_process_group(&mut command);
    let mut child = command
        .spawn()
        .with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    // Held until the child has ended; `Child::wait` would close it before waiting.
    let _lifeline = child.stdin.take();
    let mut was_asked = false;
    loop {
        if let Some(status) = child.try_wait().context("the process cannot be waited for")? {
            on_tick();
            return Ok(status);
        }
        if !was_asked && stop.reason().is_some() {
            interrupt(&child)?;
            was_asked = true;
        }
        on_tick();
        thread::sleep(POLL);
    }
}

/// Runs a process that has nothing to resume: stopped, it is simply run again by the next call.
///
/// # Errors
/// As [`run`], and [`Halt::Interrupted`] when it was stopped before it succeeded.
pub(crate) fn run_whole(command: Command, stop: &Stop) -> Result<ExitStatus> {
    let status = run(command, stop, || ())?;
    match stop.reason() {
        Some(reason) if !status.success() => Err(Halt::Interrupted(reason.into()).into()),
        _ => Ok(status),
    }
}

/// Keeps the terminal's Ctrl-C from reaching the child directly: it would get the signal twice,
/// from the terminal and from us, and a second one may mean "at once".
#[cfg(unix)]
fn own_process_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(unix)]
fn interrupt(child: &Child) -> Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    // The child is not yet waited for, so its number is still its own.
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .context("process number out of range")?;
    kill_process(pid, Signal::INT).context("the running process cannot be interrupted")
}

/// Elsewhere the console gives Ctrl-C to every process that shares it.
#[cfg(not(unix))]
fn own_process_group(_: &mut Command) {}

/// Elsewhere nothing gentler than the console's own Ctrl-C exists; with `--max-time` the running
/// cell is finished.
#[cfg(not(unix))]
fn interrupt(_: &Child) -> Result<()> {
    Ok(())
}

/// An exit status in words, for a process that did not do its work.
pub(crate) fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(0) => "it ended without a result".into(),
        Some(code) => format!("exit status {code}"),
        None => format!("killed ({status})"),
    }
}
