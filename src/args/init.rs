//! The arguments of `toolq init`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::values::{AgentLoopLanguage, StarterKind};

#[derive(Debug, Args)]
pub struct InitArguments {
    /// What to start from
    #[arg(value_name = "KIND", default_value = "minimal")]
    pub kind: StarterKind,
    /// What to import: a request with `tools`, an array of tools, an MCP `tools/list` result, or a file with
    /// `mcpServers`, such as `.mcp.json`
    #[arg(long, conflicts_with = "kind", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub from: Option<PathBuf>,
    /// Also write an agent, which asks a model and has toolq run its calls; an existing tools.yaml is kept, even with `--force`
    #[arg(long, value_name = "LANGUAGE")]
    pub agent_loop: Option<AgentLoopLanguage>,
    /// Overwrite files that exist
    #[arg(long)]
    pub force: bool,
}
