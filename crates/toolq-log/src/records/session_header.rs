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
    /// The id of the plan that the session applies.
    pub plan: Option<String>,
    /// The current directory.
    pub cwd: String,
    /// The directory in which commands run.
    pub root: String,
    /// How many calls may run at the same time.
    pub jobs: NonZeroUsize,
}

impl SessionHeader {
    /// The header of a session in the current directory, without a plan.
    pub fn new(tools_path: &Path, tools: &ToolsConfig, jobs: NonZeroUsize) -> Self {
        // Without a current directory, commands with a relative path can't run; the session itself can.
        let current_dir = std::env::current_dir().unwrap_or_default();
        Self {
            tools_path: tools_path.display().to_string(),
            tools_sha256: tools.digest.clone(),
            plan: None,
            cwd: current_dir.display().to_string(),
            root: tools.root.display().to_string(),
            jobs,
        }
    }
}
