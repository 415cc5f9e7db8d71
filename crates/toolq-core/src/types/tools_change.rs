//! New definitions of tools, which come into force during a run.

use std::sync::Arc;

use crate::types::tools_config::ToolsConfig;

/// What changed when a tools file was read again. Tools are listed by their names, in the order of the file.
#[derive(Debug, Clone)]
pub struct ToolsChange {
    /// The path of the file, as given.
    pub path: String,
    /// The definitions that are in force from now on.
    pub tools: Arc<ToolsConfig>,
    /// The tools that weren't there before.
    pub added: Vec<String>,
    /// The tools that are gone.
    pub removed: Vec<String>,
    /// The tools that are defined differently.
    pub changed: Vec<String>,
}
