//! Runs the program on its command line and exits with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolq::program::main(std::env::args_os())
}
