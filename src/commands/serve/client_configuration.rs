//! What to write into the configuration of a client, so that it starts this server, or finds it over HTTP.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::args::{McpClient, ServeArguments};
use crate::commands::serve::http::PATH;
use crate::context::CommandContext;
use crate::output::CommandError;
use toolq_core::types::ToolsConfig;

/// The name to use if clients wouldn't accept the name of the directory of tools.yaml.
const DEFAULT_NAME: &str = "toolq";

/// A configuration, and where it belongs.
pub(crate) struct ClientConfiguration {
    pub(crate) text: String,
    pub(crate) file: &'static str,
}

/// What a client has to know about this server.
struct ServerEntry<'a> {
    name: String,
    connection: ServerAccess<'a>,
}

/// How a client gets to this server.
enum ServerAccess<'a> {
    /// The client starts it.
    Command {
        program: String,
        arguments: Vec<String>,
        /// The variables that the server needs.
        variables: &'a [String],
    },
    /// A server that was started separately.
    Url {
        url: String,
        /// The variable that has the token, if one is needed.
        token: Option<&'a str>,
    },
}

/// Returns the configuration for `client`.
///
/// # Errors
/// A path isn't UTF-8, or unknown. The address isn't one that a client can use.
pub(crate) fn client_configuration(
    client: McpClient,
    arguments: &ServeArguments,
    tools: &ToolsConfig,
    context: &CommandContext,
) -> Result<ClientConfiguration, CommandError> {
    let entry = ServerEntry::new(arguments, tools, context)?;
    let (text, file) = match client {
        // https://code.claude.com/docs/en/mcp#project-scope
        McpClient::Claude => (
            entry.to_json("mcpServers", |name| format!("${{{name}}}")),
            ".mcp.json",
        ),
        // https://cursor.com/docs/context/mcp
        McpClient::Cursor => (
            entry.to_json("mcpServers", |name| format!("${{env:{name}}}")),
            ".cursor/mcp.json",
        ),
        // https://code.visualstudio.com/docs/copilot/reference/mcp-configuration
        McpClient::Vscode => (
            entry.to_json("servers", |name| format!("${{env:{name}}}")),
            ".vscode/mcp.json",
        ),
        // https://developers.openai.com/codex/mcp
        McpClient::Codex => (entry.to_toml(), "~/.codex/config.toml"),
    };
    Ok(ClientConfiguration { text, file })
}

impl<'a> ServerEntry<'a> {
    fn new(
        arguments: &'a ServeArguments,
        tools: &'a ToolsConfig,
        context: &CommandContext,
    ) -> Result<Self, CommandError> {
        let unknown = |error| CommandError::usage(format!("a path is unknown: {error}"));
        let file = std::path::absolute(&context.tools_path).map_err(unknown)?;
        let directory = file.parent().and_then(Path::file_name).unwrap_or_default();
        let connection = match arguments.http {
            Some(address) => ServerAccess::over_http(address, arguments.token_env.as_deref()),
            None => ServerAccess::of_command(arguments, &file, &tools.secrets),
        };
        Ok(Self {
            name: server_name(&directory.to_string_lossy()),
            connection: connection?,
        })
    }

    /// `reference` is how a variable of the client's own environment is named.
    fn to_json(&self, key: &str, reference: fn(&str) -> String) -> String {
        let server = match &self.connection {
            ServerAccess::Command {
                program,
                arguments,
                variables,
            } => {
                let mut server = json!({"type": "stdio", "command": program, "args": arguments});
                if !variables.is_empty() {
                    let variables = variables.iter();
                    let variables =
                        variables.map(|name| (name.clone(), Value::from(reference(name))));
                    server["env"] = Value::Object(variables.collect());
                }
                server
            }
            ServerAccess::Url { url, token } => {
                let mut server = json!({"type": "http", "url": url});
                if let Some(name) = token {
                    let token = format!("Bearer {}", reference(name));
                    server["headers"] = json!({"Authorization": token});
                }
                server
            }
        };
        format!("{:#}", json!({key: {self.name.as_str(): server}}))
    }

    /// A string of JSON is one of TOML, too.
    fn to_toml(&self) -> String {
        let (keys, last) = match &self.connection {
            ServerAccess::Command {
                program,
                arguments,
                variables,
            } => {
                let keys = format!("command = {}\nargs = {}", json!(program), json!(arguments));
                let last =
                    (!variables.is_empty()).then(|| format!("env_vars = {}", json!(variables)));
                (keys, last)
            }
            ServerAccess::Url { url, token } => {
                let last = token.map(|name| format!("bearer_token_env_var = {}", json!(name)));
                (format!("url = {}", json!(url)), last)
            }
        };
        let last = last.map(|key| format!("\n{key}")).unwrap_or_default();
        format!("[mcp_servers.{}]\n{keys}{last}", self.name)
    }
}

impl<'a> ServerAccess<'a> {
    fn over_http(address: SocketAddr, token: Option<&'a str>) -> Result<Self, CommandError> {
        if address.port() == 0 || address.ip().is_unspecified() {
            let message = format!("clients can't connect to {address}");
            return Err(CommandError::usage(message)
                .with_hint("give --http the address and the port that clients use"));
        }
        Ok(Self::Url {
            url: format!("http://{address}{PATH}"),
            token,
        })
    }

    /// The paths are absolute, since clients start servers in directories of their own choice.
    fn of_command(
        arguments: &ServeArguments,
        file: &Path,
        variables: &'a [String],
    ) -> Result<Self, CommandError> {
        let unknown = |error| CommandError::usage(format!("a path is unknown: {error}"));
        let program = std::env::current_exe().map_err(unknown)?;
        let mut own = vec![
            "serve".to_owned(),
            "-q".to_owned(),
            "-c".to_owned(),
            to_text(file)?,
        ];
        for glob in &arguments.only {
            own.extend(["--only".to_owned(), glob.clone()]);
        }
        if arguments.read_only {
            own.push("--read-only".to_owned());
        }
        if let Some(jobs) = arguments.jobs {
            own.extend(["--jobs".to_owned(), jobs.to_string()]);
        }
        if let Some(log) = &arguments.log.file {
            let log = std::path::absolute(log).map_err(unknown)?;
            own.extend(["--log".to_owned(), to_text(&log)?]);
        }
        Ok(Self::Command {
            program: to_text(&program)?,
            arguments: own,
            variables,
        })
    }
}

/// Returns a name of the characters that all clients accept.
fn server_name(directory: &str) -> String {
    let is_portable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = directory
        .chars()
        .map(|c| if is_portable(c) { c } else { '_' })
        .collect();
    match name.trim_matches('_') {
        "" => DEFAULT_NAME.to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

fn to_text(path: &Path) -> Result<String, CommandError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        let message = format!("{} isn't UTF-8, which configurations are", path.display());
        CommandError::usage(message).with_hint("rename it")
    })
}
