//! `cargo xtask`: the tasks around the `tbps` binary, one module per command.
//!
//! `ablate` trains the eight-cell matrix and reports it; `parity` compares the model with PyTorch,
//! `bench` its speed and memory; `ci` checks the workspace. This crate depends on none of ours and not
//! on burn, so it builds in seconds: it starts `tbps` processes, looks whether a `summary.json` is
//! there and what its status is, and leaves every score and table to `tbps report`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to a person"
)]

mod ablate;
mod bench;
mod cell;
mod ci;
mod halt;
mod parity;
mod python;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

use halt::Halt;

/// Tasks of the tbps workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Train the matrix {FP32, AMP} x {EMA off, on} x {recomputation off, on} and report it
    Ablate(ablate::Options),
    /// Compare our CLIP with open_clip, transformers and OpenAI's code at the size of ViT-B/16
    Parity(parity::Options),
    /// Time train steps and the encoding of images at the size of ViT-B/16, beside PyTorch's
    #[command(args_override_self = true)]
    Bench(bench::Options),
    /// Check the workspace: formatting, crate edges, file sizes, lints, tests, documentation
    Ci(ci::Options),
}

fn main() -> ExitCode {
    let ended = match Task::parse() {
        Task::Ablate(options) => ablate::run(options),
        Task::Parity(options) => parity::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::Ci(options) => ci::run(&options),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(Halt::exit_code(&error))
        }
    }
}
