//! The configuration of Codex: `[mcp_servers.NAME]` in `config.toml`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::client_config::endpoint::ConfiguredEndpoint;
use crate::client_config::servers::{
    ClientConfig, ConfiguredCommand, ConfiguredServer, ConfiguredTransport,
};

#[derive(Debug, Deserialize)]
struct CodexConfig {
    #[serde(default)]
    mcp_servers: BTreeMap<String, CodexServer>,
}

#[derive(Debug, Deserialize)]
struct CodexServer {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    env_vars: Vec<PassedVariable>,
    cwd: Option<String>,
    url: Option<String>,
    bearer_token_env_var: Option<String>,
    #[serde(default)]
    http_headers: BTreeMap<String, String>,
    /// Headers whose values are in these variables.
    #[serde(default)]
    env_http_headers: BTreeMap<String, String>,
    startup_timeout_sec: Option<f64>,
    tool_timeout_sec: Option<f64>,
    #[serde(default = "enabled")]
    enabled: bool,
    enabled_tools: Option<Vec<String>>,
    #[serde(default)]
    disabled_tools: Vec<String>,
}

/// A variable of Codex that the server gets, too.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum PassedVariable {
    Name(String),
    Table { name: String },
}

fn enabled() -> bool {
    true
}

/// Reads the servers of a configuration of Codex.
///
/// # Errors
/// The text isn't TOML, or an entry can't be read. Says where and why.
pub fn read_codex_config(text: &str) -> Result<ClientConfig, String> {
    let file: CodexConfig = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut config = ClientConfig::default();
    for (name, server) in file.mcp_servers {
        add_server(&mut config, &name, server);
    }
    Ok(config)
}

fn add_server(config: &mut ClientConfig, name: &str, server: CodexServer) {
    if !server.enabled {
        return config.leave_out(name, "it is disabled");
    }
    let transport = match (server.command, server.url) {
        (Some(program), _) => {
            let pass_env = server.env_vars.into_iter().map(|variable| match variable {
                PassedVariable::Name(name) | PassedVariable::Table { name } => name,
            });
            let command = ConfiguredCommand {
                argv: std::iter::once(program).chain(server.args).collect(),
                env: server.env,
                pass_env: pass_env.collect(),
                cwd: server.cwd,
            };
            ConfiguredTransport::Program { command }
        }
        (None, Some(url)) => {
            let mut headers = server.http_headers;
            for (header, variable) in server.env_http_headers {
                headers.insert(header, format!("${{{variable}}}"));
            }
            if let Some(variable) = server.bearer_token_env_var {
                headers.insert(
                    "Authorization".to_owned(),
                    format!("Bearer ${{{variable}}}"),
                );
            }
            ConfiguredTransport::Endpoint(ConfiguredEndpoint { url, headers })
        }
        (None, None) => return config.leave_out(name, "it has neither `command` nor `url`"),
    };
    if !server.disabled_tools.is_empty() {
        config.notes.push(format!(
            "the server {name:?} has disabled tools ({}): name those that may be called under its `tools`",
            server.disabled_tools.join(", ")
        ));
    }
    let timeout = server.tool_timeout_sec.map(duration_text);
    let configured = ConfiguredServer {
        transport,
        startup: server.startup_timeout_sec.map(duration_text),
        tools: server.enabled_tools,
        defaults: timeout.map(|timeout| BTreeMap::from([("timeout".to_owned(), timeout)])),
    };
    config.add(name, configured);
}

/// Returns seconds as tools.yaml has them, to the millisecond.
fn duration_text(seconds: f64) -> String {
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    match duration.as_millis() {
        millis if millis % 1_000 == 0 => format!("{}s", millis / 1_000),
        millis => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_codex_become_entries_without_secrets() {
        let config = read_codex_config(
            r#"
model = "gpt-5"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs@1"]
env_vars = ["HOME_REGION", { name = "TOKEN_FILE", source = "local" }]
startup_timeout_sec = 20
tool_timeout_sec = 0.5
enabled_tools = ["search", "read_*"]

[mcp_servers.docs.env]
API_KEY = "hunter2-hunter2"
LOG = "debug"

[mcp_servers.far]
url = "https://mcp.example.com/mcp"
bearer_token_env_var = "FAR_TOKEN"
http_headers = { "X-Region" = "eu", "X-Api-Key" = "hunter2-hunter2" }
env_http_headers = { "X-User" = "FAR_USER" }
tool_timeout_sec = 5

[mcp_servers.off]
command = "off"
enabled = false

[mcp_servers.some]
command = "some"
cwd = "/srv"
disabled_tools = ["drop"]
"#,
        )
        .unwrap();
        let docs = &config.servers["docs"];
        assert_eq!(docs.command().argv, ["npx", "-y", "docs@1"]);
        assert_eq!(docs.command().pass_env, ["HOME_REGION", "TOKEN_FILE"]);
        assert_eq!(docs.command().env["API_KEY"], "${API_KEY}");
        assert_eq!(docs.command().env["LOG"], "debug");
        assert_eq!(docs.startup.as_deref(), Some("20s"));
        assert_eq!(docs.defaults.as_ref().unwrap()["timeout"], "500ms");
        assert_eq!(docs.tools.as_ref().unwrap(), &["search", "read_*"]);
        assert_eq!(config.servers["some"].command().cwd, None);
        let far = config.servers["far"].endpoint();
        assert_eq!(far.url, "https://mcp.example.com/mcp");
        let headers = [
            ("Authorization", "Bearer ${FAR_TOKEN}"),
            ("X-Api-Key", "${FAR_X_API_KEY}"),
            ("X-Region", "eu"),
            ("X-User", "${FAR_USER}"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(far.headers, headers.into());
        assert!(config.servers["far"].defaults.is_some());
        assert_eq!(config.servers.len(), 3);
        assert_eq!(config.notes.len(), 4, "{:?}", config.notes);
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn mistakes_say_where() {
        let error = read_codex_config("[mcp_servers.a]\ncommand = 1\n").unwrap_err();
        assert!(error.contains("line 2"), "{error}");
        assert_eq!(read_codex_config("x = 1"), Ok(ClientConfig::default()));
    }
}
