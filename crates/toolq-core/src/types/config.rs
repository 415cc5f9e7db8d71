//! A resolved tools.yaml: its tools, the servers that have to be asked for theirs, its variables, and problems in it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::json;

use crate::os::{EnvFile, Environment};
use crate::types::server::{ServerConfig, ServerLock, ToolDefinition, ToolLock};
use crate::types::tool::{Backing, BuiltinTool, MessageTemplates, Tool};
use crate::types::usage::PriceTable;
use redact::Mask;

/// A valid tools.yaml, with every default applied and every template parsed.
#[derive(Debug, Clone)]
pub struct ToolsConfig {
    /// In the order of the file.
    pub tools: Vec<Arc<Tool>>,
    /// The servers whose tools are declared, in the order of the file.
    pub servers: Vec<Arc<ServerConfig>>,
    /// Those of `servers` whose tools are unknown until they are requested, because tools.lock doesn't have them.
    pub unlocked: Vec<Arc<UnlockedServer>>,
    /// Maximum number of calls running at the same time, over everything.
    pub concurrency: NonZeroUsize,
    /// Absolute path. Commands run here, and inputs named in `paths` must stay inside.
    pub root: PathBuf,
    /// The directory of tools.yaml, absolute. Programs with a slash and `$ref` files are resolved against it.
    pub dir: PathBuf,
    /// tools.yaml with all files that it was read from, and tools.lock, which say what may run: only calls of `read` tools can
    /// be given their paths.
    pub own_files: Vec<PathBuf>,
    /// Names of environment variables whose values are masked everywhere: those under `secrets`, and those used in
    /// headers, query, env, or an API key.
    pub secrets: Vec<String>,
    /// The variables of `env_file`, for templates and `pass_env`.
    pub env_file: EnvFile,
    /// The file's own texts for models. Texts of a tool are in [`Tool::messages`].
    pub messages: MessageTemplates,
    /// Token prices by model name.
    pub prices: PriceTable,
    /// SHA-256 of the file's bytes, in hex.
    pub digest: String,
}

impl ToolsConfig {
    /// Returns the tool with exactly this name. What a server has announced takes the place of what the file has of its
    /// tool.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.unlocked
            .iter()
            .find_map(|server| server.tool(name))
            .or_else(|| self.tools.iter().find(|tool| tool.name == name))
    }

    /// Like [`get`](Self::get), but a tool that a server may have that wasn't asked yet is found, too, and accepts any object.
    pub fn find(&self, name: &str) -> Option<Arc<Tool>> {
        self.get(name).cloned().or_else(|| {
            let mut unlocked = self.unlocked.iter();
            unlocked.find_map(|server| server.placeholder(name))
        })
    }

    /// Returns the tools of the file in its order, and then those that servers have announced.
    pub fn known_tools(&self) -> Vec<Arc<Tool>> {
        let announced = |tool: &Tool| {
            let mut unlocked = self.unlocked.iter();
            unlocked.find_map(|server| server.tool(&tool.name))
        };
        self.tools
            .iter()
            .map(|tool| announced(tool).unwrap_or(tool))
            .chain(self.undeclared())
            .cloned()
            .collect()
    }

    /// Returns the names of all [`known_tools`](Self::known_tools).
    pub(crate) fn known_names(&self) -> Vec<&str> {
        self.tools
            .iter()
            .chain(self.undeclared())
            .map(|tool| tool.name.as_str())
            .collect()
    }

    /// Returns the tools that servers have announced, and of which the file has none.
    fn undeclared(&self) -> Vec<&Arc<Tool>> {
        let unlocked = self.unlocked.iter();
        let mut announced: Vec<&Arc<Tool>> = unlocked
            .filter_map(|server| server.listing()?.ok())
            .flat_map(|listing| &listing.tools)
            .collect();
        if !announced.is_empty() {
            let declared: HashSet<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
            announced.retain(|tool| !declared.contains(&*tool.name));
        }
        announced
    }

    /// Returns the name of the built-in tool that reads outputs that were cut, if the file enables it.
    pub fn output_reader(&self) -> Option<&str> {
        let is_reader = |tool: &&Arc<Tool>| {
            matches!(
                tool.backing,
                Some(Backing::Builtin(BuiltinTool::ReadOutput))
            )
        };
        self.tools
            .iter()
            .find(is_reader)
            .map(|tool| tool.name.as_str())
    }

    /// Returns the servers whose tools must be requested before calls of `tool` can be checked: its own, and others
    /// that may have a tool of the same name, so that the order of the requests doesn't matter.
    pub fn servers_to_ask(&self, tool: &Tool) -> Vec<Arc<UnlockedServer>> {
        let own = self.unlocked_server_of(tool);
        let Some(own) = own.filter(|server| server.listing().is_none()) else {
            return Vec::new();
        };
        let is_declared = self.tools.iter().any(|known| known.name == tool.name);
        let is_asked = |server: &&Arc<UnlockedServer>| {
            let may_have_it = !is_declared && server.may_serve(&tool.name);
            Arc::ptr_eq(server, own) || may_have_it && server.listing().is_none()
        };
        self.unlocked.iter().filter(is_asked).cloned().collect()
    }

    /// Returns why the definition of a tool isn't known although the tools of its server were requested.
    pub(crate) fn listing_failure(&self, tool: &Tool) -> Option<String> {
        let server = self.unlocked_server_of(tool)?;
        let name = &server.server.name;
        match server.listing()? {
            Ok(_) => Some(format!("the server {name} has no such tool")),
            Err(why) => Some(format!(
                "the server {name} couldn't be asked for its tools: {why}"
            )),
        }
    }

    fn unlocked_server_of(&self, tool: &Tool) -> Option<&Arc<UnlockedServer>> {
        let Some(Backing::Mcp(mcp)) = tool.backing.as_ref().filter(|_| tool.awaits_list) else {
            return None;
        };
        let mut unlocked = self.unlocked.iter();
        unlocked.find(|server| server.server.name == mcp.server.name)
    }

    /// Builds the mask over the values of `secrets` and of `env_file`.
    pub fn build_mask(&self, environment: &Environment) -> Mask {
        mask_variables(&self.secrets, environment, &self.env_file)
    }
}

/// Builds the mask over the values of environment variables, and over all values of a file. A variable of the file that
/// the environment has, too, is a secret in both.
pub fn mask_variables(names: &[String], environment: &Environment, file: &EnvFile) -> Mask {
    let values = names
        .iter()
        .map(String::as_str)
        .chain(file.names())
        .filter_map(|name| environment.get_os(name));
    let file_values = file.values().map(OsStr::new);
    Mask::new(values.chain(file_values).map(OsStr::as_bytes))
}

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
        let mut known = self.placeholders.lock();
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

/// A tools file that was read again.
#[derive(Debug, Clone)]
pub struct ToolsChange {
    /// The path of the file, as given.
    pub path: String,
    /// The definitions that are in force from now on.
    pub tools: Arc<ToolsConfig>,
}

/// A range of bytes in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Length in bytes.
    pub len: usize,
}

/// Whether a problem keeps toolq from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Nothing runs.
    Error,
    /// Calls run, and the warning is shown.
    Warning,
}

/// Something wrong in a file that a person wrote: what, where, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// Whether it keeps toolq from running.
    pub severity: Severity,
    /// What is wrong, in one sentence without a period.
    pub message: String,
    /// Where it is.
    pub span: Span,
    /// The text under the marked place.
    pub label: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl FileProblem {
    /// Creates an error at `span`.
    pub fn error(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            span,
            label: label.into(),
            hint: None,
        }
    }

    /// Creates a warning at `span`.
    pub fn warning(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(span, message, label)
        }
    }

    /// Adds a hint about how to fix the problem.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
