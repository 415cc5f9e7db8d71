//! The arguments of `toolq tools`.

use clap::Args;

use crate::args::values::{ToolsFormat, tools_format_parser};

#[derive(Debug, Args)]
pub struct ToolsArguments {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "anthropic", value_parser = tools_format_parser())]
    pub format: ToolsFormat,
}
