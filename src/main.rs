//! Arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolq::program::main(std::env::args_os())
}
