//! The arguments of `toolq init`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Debug, Args)]
pub struct InitArguments {
    /// What to import: a request with `tools`, an array of tools, an MCP `tools/list` result, or the servers of a `.mcp.json`,
    /// `mcp.json` or Codex's `config.toml`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub from: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,
}
