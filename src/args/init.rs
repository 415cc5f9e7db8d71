//! The arguments of `toolq init`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Debug, Args)]
pub struct InitArguments {
    /// Existing declarations to import: a request with `tools`, an array of tools, or an MCP `tools/list` result
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub from: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,
}
