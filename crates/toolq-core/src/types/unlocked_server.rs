//! Servers that tools.lock doesn't have, and the tools that they announce on request.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::json;

use crate::types::backing::Backing;
use crate::types::server::ServerConfig;
use crate::types::tool::Tool;
use crate::types::tool_lock::{ServerLock, ToolDefinition, ToolLock};

/// How many tool names are remembered before their server has listed its tools. Models make names up.
const MAX_PLACEHOLDERS: usize = 1000;

/// A server that tools.lock doesn't have. Its tools are requested when one of them is first needed. The answer is valid
/// as long as the loaded tools file.
#[derive(Debug)]
pub struct UnlockedServer {
    /// How it is reached.
    pub server: Arc<ServerConfig>,
    /// What the names of its tools begin with.
    prefix: String,
    resolver: Arc<dyn ToolResolver>,
    listing: OnceLock<Result<ServerListing, String>>,
    placeholders: Mutex<HashMap<String, Option<Arc<Tool>>>>,
}

/// What a server announced when its tools were requested.
#[derive(Debug)]
pub struct ServerListing {
    /// What it announced, in the form of tools.lock.
    pub lock: ServerLock,
    /// The tools that can be called, by the rules of the tools file.
    pub tools: Vec<Arc<Tool>>,
    /// Why others can't be, one sentence each.
    pub problems: Vec<String>,
}

/// Turns what a server announces into tools, as the tools file says.
pub trait ToolResolver: Debug + Send + Sync {
    /// Returns the tools of a server that announces this, and why others are left out.
    ///
    /// # Errors
    /// Why none of them can be used.
    fn resolve_tools(
        &self,
        server: &Arc<ServerConfig>,
        lock: &ServerLock,
    ) -> Result<(Vec<Arc<Tool>>, Vec<String>), String>;

    /// Keeps what a server announced, so that the names of its tools are taken.
    fn keep_lock(&self, server: &str, lock: &ServerLock);
}

impl UnlockedServer {
    /// Creates a server that hasn't been asked. `prefix` has only characters that names can have.
    pub fn new(server: Arc<ServerConfig>, prefix: String, resolver: Arc<dyn ToolResolver>) -> Self {
        Self {
            server,
            prefix,
            resolver,
            listing: OnceLock::new(),
            placeholders: Mutex::default(),
        }
    }

    /// Returns what the server announced, or why the request failed. `None` before the request has ended.
    pub fn listing(&self) -> Option<Result<&ServerListing, &str>> {
        let listing = self.listing.get()?;
        Some(listing.as_ref().map_err(String::as_str))
    }

    /// Stores what the server announces, with its problems, or why the request failed, unless that is already known.
    pub fn set_announced(&self, announced: Result<(ServerLock, Vec<String>), String>) {
        let listing = announced.and_then(|(lock, mut problems)| {
            let (tools, left_out) = self.resolver.resolve_tools(&self.server, &lock)?;
            self.resolver.keep_lock(&self.server.name, &lock);
            problems.extend(left_out);
            Ok(ServerListing {
                lock,
                tools,
                problems,
            })
        });
        let _ = self.listing.set(listing);
    }

    /// Returns whether a tool of the server could have this name.
    pub fn may_serve(&self, name: &str) -> bool {
        self.bare_name(name).is_some()
    }

    /// Returns the tool with this name, if the server has announced it.
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        let tools = &self.listing()?.ok()?.tools;
        tools.iter().find(|tool| tool.name == name)
    }

    /// Returns a placeholder for the tool with this name, which accepts any object, until the server has announced its
    /// tools. `None` if the server can't have such a tool, or if the request for its tools has ended.
    pub(crate) fn placeholder(&self, name: &str) -> Option<Arc<Tool>> {
        let bare = self.bare_name(name)?;
        if self.listing().is_some() {
            return None;
        }
        let mut known = self
            .placeholders
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(placeholder) = known.get(name) {
            return placeholder.clone();
        }
        let placeholder = self.build_placeholder(name, bare);
        if known.len() < MAX_PLACEHOLDERS {
            known.insert(name.to_owned(), placeholder.clone());
        }
        placeholder
    }

    fn build_placeholder(&self, name: &str, bare: &str) -> Option<Arc<Tool>> {
        let definition = ToolDefinition {
            input_schema: json!({"type": "object"}),
            ..ToolDefinition::default()
        };
        let lock = ServerLock {
            name: None,
            version: None,
            protocol: String::new(),
            date: String::new(),
            tools: BTreeMap::from([(bare.to_owned(), ToolLock::new(definition))]),
        };
        let (tools, _) = self.resolver.resolve_tools(&self.server, &lock).ok()?;
        let mut tool = tools.into_iter().find(|tool| tool.name == name)?;
        let placeholder = Arc::make_mut(&mut tool);
        placeholder.awaits_list = true;
        if let Some(Backing::Mcp(mcp)) = &mut placeholder.backing {
            mcp.lock = None;
        }
        Some(tool)
    }

    /// Returns the name without the prefix.
    fn bare_name<'n>(&self, name: &'n str) -> Option<&'n str> {
        let is_portable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let bare = name.strip_prefix(&*self.prefix)?;
        (!bare.is_empty() && bare.chars().all(is_portable)).then_some(bare)
    }
}
