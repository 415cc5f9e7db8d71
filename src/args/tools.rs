//! The arguments of `toolq tools`.

use clap::Args;

use crate::args::values::ToolsFormat;

#[derive(Debug, Args)]
pub struct ToolsArguments {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "anthropic")]
    pub format: ToolsFormat,
}
