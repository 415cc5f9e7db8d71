//! The arguments of `toolq check`.

use clap::Args;

#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Also exit 1 if there are only warnings
    #[arg(long)]
    pub strict: bool,
}
