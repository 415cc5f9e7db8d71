//! The arguments of `toolq doctor`.

use clap::Args;

use crate::args::values::DoctorFormat;

#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Connect to nothing: servers, agents and requests aren't asked whether they can be reached
    #[arg(long)]
    pub offline: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: DoctorFormat,
}
