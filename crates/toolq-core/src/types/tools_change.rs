//! New definitions of tools, which come into force during a run.

use std::sync::Arc;

use crate::types::tools_config::ToolsConfig;

/// A tools file that was read again.
#[derive(Debug, Clone)]
pub struct ToolsChange {
    /// The path of the file, as given.
    pub path: String,
    /// The definitions that are in force from now on.
    pub tools: Arc<ToolsConfig>,
}
