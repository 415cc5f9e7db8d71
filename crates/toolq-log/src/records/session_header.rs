//! What a session runs with, as its first record says.

use std::num::NonZeroUsize;
use std::path::Path;

use toolq_core::types::ToolsConfig;

/// What a session runs with.
#[derive(Debug, Clone)]
pub struct SessionHeader {
    /// Path of the tools file.
    pub tools_path: String,
    /// SHA-256 of the tools file, in hexadecimal.
    pub tools_sha256: String,
    /// SHA-256 of the input, in hexadecimal, if the input is known before anything runs.
    pub input_sha256: Option<String>,
    /// The id of the plan that the session applies.
    pub plan: Option<String>,
    /// The current directory.
    pub cwd: String,
    /// The directory in which commands run.
    pub root: String,
    /// How many calls may run at the same time.
    pub jobs: NonZeroUsize,
    /// Which records survive a power loss.
    pub sync: SyncPolicy,
}

impl SessionHeader {
    /// The header of a session in the current directory, with the default sync policy and no known input.
    pub fn new(tools_path: &Path, tools: &ToolsConfig, jobs: NonZeroUsize) -> Self {
        // Without a current directory, commands with a relative path can't run; the session itself can.
        let current_dir = std::env::current_dir().unwrap_or_default();
        Self {
            tools_path: tools_path.display().to_string(),
            tools_sha256: tools.digest.clone(),
            input_sha256: None,
            plan: None,
            cwd: current_dir.display().to_string(),
            root: tools.root.display().to_string(),
            jobs,
            sync: SyncPolicy::default(),
        }
    }
}

/// Which records must survive a power loss before toolq continues. If only toolq is killed, no record is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// For calls that aren't `read`: the start before the call starts, and the result before it is printed.
    #[default]
    Auto,
    /// The same for all calls.
    All,
}

impl SyncPolicy {
    /// Returns the name used on the command line and in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::All => "all",
        }
    }
}
