//! The stock binary: looks into a store, and gives orders to what runs in it.

use std::process::ExitCode;

fn main() -> ExitCode {
    orchestrator::cli::main()
}
