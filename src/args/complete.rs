//! The arguments of `toolq __complete`, which the completion scripts of shells run.

use std::ffi::OsString;

use clap::Args;

#[derive(Debug, Args)]
pub struct CompleteArguments {
    /// The words of the command line, the last of which is to be completed
    #[arg(last = true, value_name = "WORD")]
    pub words: Vec<OsString>,
}
