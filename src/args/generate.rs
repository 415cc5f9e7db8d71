//! The arguments of `toolq generate`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct GenerateArguments {
    #[command(subcommand)]
    pub file: GeneratedFile,
}

#[derive(Debug, Subcommand)]
pub enum GeneratedFile {
    /// Print the JSON Schema of tools.yaml
    Schema {
        /// Print the schema of a session log record instead
        #[arg(long)]
        log: bool,
        /// Print the schema of the file that `toolq plan --out` writes instead
        #[arg(long, conflicts_with = "log")]
        plan: bool,
    },
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man,
}
