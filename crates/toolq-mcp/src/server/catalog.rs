//! The tools that a server lists.

use std::collections::HashSet;

use crate::protocol::{Implementation, ProtocolEra};
use crate::tool::Tool;

/// What a server tells every client about itself. It never changes while the server runs.
#[derive(Debug)]
pub struct ToolCatalog {
    server: Implementation,
    instructions: Option<String>,
    tools: Vec<Tool>,
    /// The tools as clients of the legacy era may see them.
    legacy_tools: Vec<Tool>,
    names: HashSet<String>,
}

impl ToolCatalog {
    /// Creates a catalog of `tools`, which are listed in this order. `instructions` tells the model how to use them.
    pub fn new(server: Implementation, instructions: Option<String>, tools: Vec<Tool>) -> Self {
        Self {
            names: tools.iter().map(|tool| tool.name.clone()).collect(),
            server,
            instructions,
            legacy_tools: tools.iter().map(Tool::to_legacy).collect(),
            tools,
        }
    }

    /// Returns the server's name and version.
    pub(crate) fn server(&self) -> &Implementation {
        &self.server
    }

    /// Returns the instructions for the model.
    pub(crate) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Returns the tools in order, for clients of an era.
    pub(crate) fn tools(&self, era: ProtocolEra) -> &[Tool] {
        match era {
            ProtocolEra::Legacy => &self.legacy_tools,
            ProtocolEra::Modern => &self.tools,
        }
    }

    /// Returns whether there is a tool of this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}
