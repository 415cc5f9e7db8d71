//! The servers of a file that tools.lock doesn't have, and the tools that they turn out to have.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::tools_file::keys::{ServerFile, ToolFile};
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::document::ToolsDocument;
use crate::tools_file::resolve::server::ServersByName;
use crate::tools_file::resolve::server_tools::{ServerTools, model_name};
use crate::tools_file::spanned::Spanned;
use crate::tools_lock::{LockUse, ToolsLock};
use crate::types::{
    Backing, FileProblem, ServerConfig, ServerLock, Severity, Tool, ToolResolver, UnlockedServer,
};

/// Lists the servers that have to be asked for their tools. `known` are the problems that are known already.
pub(crate) fn list_unlocked(
    server_tools: &ServerTools<'_>,
    servers: &ServersByName,
    document: &Arc<ToolsDocument>,
    known: &[FileProblem],
) -> Vec<Arc<UnlockedServer>> {
    let unlocked: Vec<_> = server_tools.unlocked_servers().collect();
    if unlocked.is_empty() {
        return Vec::new();
    }
    let resolver = Arc::new(ListingResolver {
        document: Arc::clone(document),
        lock: Mutex::new(server_tools.lock().cloned().unwrap_or_default()),
        known: known
            .iter()
            .map(|problem| problem.message.clone())
            .collect(),
    });
    let unlocked = unlocked.into_iter().filter_map(|(name, file)| {
        let prefix = model_name(name, &file.prefix, "");
        let server = servers.get(name)?;
        let resolver = Arc::clone(&resolver) as Arc<dyn ToolResolver>;
        Some(Arc::new(UnlockedServer::new(
            Arc::clone(server),
            prefix,
            resolver,
        )))
    });
    unlocked.collect()
}

impl<'f> ServerTools<'f> {
    /// Returns the servers that have to be asked for what the file doesn't say about their tools.
    pub(crate) fn unlocked_servers(&self) -> impl Iterator<Item = (&'f str, &'f ServerFile)> {
        let is_final = self.is_being_written() || self.has_announced();
        let servers = self.file.servers.entries().filter(move |_| !is_final);
        let unlocked = servers.filter(|(name, server)| self.is_unlocked(name, &server.value));
        unlocked.map(|(name, server)| (name, &server.value))
    }

    /// Returns whether the lock lacks a server of which something has to be known.
    pub(crate) fn is_unlocked(&self, name: &str, keys: &ServerFile) -> bool {
        let names_tools =
            !keys.tools.is_missing() || !keys.prefix.is_missing() || !keys.hints.is_missing();
        let mut declared = self.declared_of(name).peekable();
        let needs_list =
            names_tools || declared.peek().is_none() || declared.any(takes_server_schema);
        needs_list && self.server_lock(name).is_none()
    }

    fn declared_of(&self, server: &str) -> impl Iterator<Item = &'f ToolFile> {
        let tools = self.file.tools.entries().map(|(_, tool)| &tool.value);
        tools.filter(move |tool| {
            let mcp = tool.mcp.value();
            mcp.and_then(|mcp| mcp.server.value())
                .is_some_and(|name| name == server)
        })
    }

    /// Returns whether the definition of a declared tool is what its server will say.
    pub(crate) fn awaits_list(&self, name: &str, tool: &ToolFile) -> bool {
        if !takes_server_schema(tool) || self.is_being_written() {
            return false;
        }
        let Some(server) = tool.mcp.value().and_then(|mcp| mcp.server.value()) else {
            return false;
        };
        let is_known = self.file.servers.entries().any(|(key, _)| key == server);
        is_known
            && self.tool_lock(name, &tool.mcp).is_none()
            && (self.has_announced() || self.server_lock(server).is_none())
    }
}

/// Whether a tool of a server gets the input as its arguments, so that the server's schema is that of the input.
pub(crate) fn takes_server_schema(tool: &ToolFile) -> bool {
    let mcp = tool.mcp.value();
    mcp.is_some_and(|mcp| mcp.arguments.is_missing())
        && tool.input_schema.is_missing()
        && tool.describe.is_missing()
}

/// Says that a server has to be asked in each run.
pub(crate) fn warn_about_missing_lock(
    server: &str,
    file: &Spanned<ServerFile>,
    diagnostics: &mut Diagnostics<'_>,
) {
    diagnostics.warning(
        file.key_span,
        format!("tools.lock doesn't have the server `{server}`: it is asked for its tools in each run, and whatever it says then holds"),
        "not locked",
        "`toolq servers lock` asks it once, and writes the file",
    );
}

/// Resolves a tools file again, as if tools.lock had what a server announces.
#[derive(Debug)]
struct ListingResolver {
    document: Arc<ToolsDocument>,
    /// tools.lock, and what servers have announced.
    lock: Mutex<ToolsLock>,
    /// The problems that the file has without what servers announce.
    known: HashSet<String>,
}

impl ToolResolver for ListingResolver {
    fn resolve_tools(
        &self,
        server: &Arc<ServerConfig>,
        lock: &ServerLock,
    ) -> Result<(Vec<Arc<Tool>>, Vec<String>), String> {
        let mut with_server = self
            .lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        with_server
            .servers
            .insert(server.name.clone(), lock.clone());
        let lock = LockUse::Announced(&with_server);
        let resolved = self.document.resolve(lock, Vec::new());
        let messages = |severity: Severity| -> Vec<String> {
            let problems = resolved.problems.iter();
            let new = problems
                .filter(|problem| problem.severity == severity)
                .map(|problem| problem.message.clone())
                .filter(|message| !self.known.contains(message));
            new.collect()
        };
        let Some(config) = resolved.tools.as_ref().filter(|_| !resolved.has_errors) else {
            return Err(messages(Severity::Error).join("; "));
        };
        let is_own = |tool: &&Arc<Tool>| matches!(&tool.backing, Some(Backing::Mcp(mcp)) if mcp.server.name == server.name);
        let own = config.tools.iter().filter(is_own);
        let own = own.map(|tool| on_server(tool, server));
        Ok((own.collect(), messages(Severity::Warning)))
    }

    fn keep_lock(&self, server: &str, lock: &ServerLock) {
        let mut kept = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        kept.servers.insert(server.to_owned(), lock.clone());
    }
}

/// Returns a tool whose calls go to this server, so that listing and calling its tools share one connection.
fn on_server(tool: &Arc<Tool>, server: &Arc<ServerConfig>) -> Arc<Tool> {
    let mut tool = Tool::clone(tool);
    if let Some(Backing::Mcp(mcp)) = &mut tool.backing {
        mcp.server = Arc::clone(server);
    }
    Arc::new(tool)
}
