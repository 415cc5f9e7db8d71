//! A tools.yaml, resolved.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::os::Environment;
use crate::types::agent::BuiltinTool;
use crate::types::backing::Backing;
use crate::types::env_file::EnvFile;
use crate::types::price::PriceTable;
use crate::types::server::ServerConfig;
use crate::types::start_limits::HostLimits;
use crate::types::tool::{FormatPolicy, MessageTemplates, Tool};
use crate::types::unlocked_server::UnlockedServer;
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
    /// Limits on requests, by host.
    pub hosts: Vec<HostLimits>,
    /// Token prices by model name.
    pub prices: PriceTable,
    /// What `format` in an `input_schema` does.
    pub formats: FormatPolicy,
    /// SHA-256 of the file's bytes, in hex.
    pub digest: String,
}

impl ToolsConfig {
    /// Returns the tool with exactly this name. What a server has announced takes the place of what the file has of its
    /// tool.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        let mut unlocked = self.unlocked.iter();
        unlocked
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
        let declared = self.tools.iter();
        let declared = declared.map(|tool| announced(tool).unwrap_or(tool));
        declared.chain(self.undeclared()).cloned().collect()
    }

    /// Returns the names of all [`known_tools`](Self::known_tools).
    pub(crate) fn known_names(&self) -> Vec<&str> {
        let tools = self.tools.iter().chain(self.undeclared());
        tools.map(|tool| tool.name.as_str()).collect()
    }

    /// Returns the tools that servers have announced, and of which the file has none.
    fn undeclared(&self) -> Vec<&Arc<Tool>> {
        let unlocked = self.unlocked.iter();
        let listings = unlocked.filter_map(|server| server.listing()?.ok());
        let mut announced: Vec<&Arc<Tool>> = listings.flat_map(|listing| &listing.tools).collect();
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
        let reader = self.tools.iter().find(is_reader);
        reader.map(|tool| tool.name.as_str())
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
    let names = names.iter().map(String::as_str).chain(file.names());
    let values = names.filter_map(|name| environment.get_os(name));
    let file_values = file.values().map(OsStr::new);
    Mask::new(values.chain(file_values).map(OsStr::as_bytes))
}
