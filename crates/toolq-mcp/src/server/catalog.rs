//! The tools that a server lists.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::http::ParamHeaders;
use crate::protocol::{Implementation, ProtocolEra};
use crate::tool::Tool;

/// What a server tells every client about itself.
#[derive(Debug)]
pub struct ToolCatalog {
    server: Implementation,
    instructions: Option<String>,
    tools: Vec<Tool>,
    /// The tools as clients of the legacy era may see them.
    legacy_tools: Vec<Tool>,
    /// Where each tool is, by its name.
    positions: HashMap<String, usize>,
    /// What [`param_headers`](Self::param_headers) returns, once it is needed.
    known_param_headers: OnceLock<HashMap<String, ParamHeaders>>,
}

/// A catalog that can be replaced while connections use it. Clones share it.
#[derive(Debug, Clone)]
pub struct SharedCatalog(Arc<RwLock<Arc<ToolCatalog>>>);

impl SharedCatalog {
    /// Returns the catalog that clients currently see.
    pub fn current(&self) -> Arc<ToolCatalog> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the catalog for all connections.
    pub fn replace(&self, catalog: ToolCatalog) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
    }
}

impl From<Arc<ToolCatalog>> for SharedCatalog {
    fn from(catalog: Arc<ToolCatalog>) -> Self {
        Self(Arc::new(RwLock::new(catalog)))
    }
}

impl ToolCatalog {
    /// Creates a catalog of `tools`, which are listed in this order. `instructions` tells the model how to use them.
    pub fn new(server: Implementation, instructions: Option<String>, tools: Vec<Tool>) -> Self {
        Self {
            positions: (tools.iter().enumerate())
                .map(|(position, tool)| (tool.name.clone(), position))
                .collect(),
            server,
            instructions,
            legacy_tools: tools.iter().map(Tool::to_legacy).collect(),
            tools,
            known_param_headers: OnceLock::new(),
        }
    }

    /// Returns whether there is a tool of this name.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.positions.contains_key(name)
    }

    /// Returns the headers that the tools ask for over HTTP, by the names of the tools.
    ///
    /// # Errors
    /// The name of a tool that can't be called over HTTP, and why.
    pub fn param_headers(&self) -> Result<HashMap<String, ParamHeaders>, (String, String)> {
        let headers = self.tools.iter().map(|tool| {
            let headers = ParamHeaders::from_schema(&tool.input_schema);
            let headers = headers.map_err(|why| (tool.name.clone(), why))?;
            Ok((tool.name.clone(), headers))
        });
        headers.collect()
    }

    /// Returns the headers that the tools require over HTTP. It is empty if a tool can't be called over HTTP.
    pub fn known_param_headers(&self) -> &HashMap<String, ParamHeaders> {
        self.known_param_headers
            .get_or_init(|| self.param_headers().unwrap_or_default())
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

    /// Returns the tool of this name, as clients of an era may see it.
    pub(crate) fn tool(&self, name: &str, era: ProtocolEra) -> Option<&Tool> {
        self.tools(era).get(*self.positions.get(name)?)
    }
}
