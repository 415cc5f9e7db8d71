//! The JSON files in which clients of MCP keep their servers, under `mcpServers`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::client_config::endpoint::ConfiguredEndpoint;
use crate::client_config::servers::{ClientConfig, ConfiguredCommand, ConfiguredServer};

/// A server in such a file.
#[derive(Debug, Deserialize)]
struct JsonServer {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, Option<Value>>,
    cwd: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, Option<Value>>,
    #[serde(rename = "type")]
    transport: Option<String>,
    #[serde(rename = "envFile")]
    env_file: Option<String>,
    #[serde(default)]
    disabled: bool,
}

/// Reads the servers of a configuration. Returns `None` if the text is something else.
///
/// # Errors
/// The configuration can't be read. Says why.
pub fn read_client_config(text: &str) -> Option<Result<ClientConfig, String>> {
    let document: Value = serde_json::from_str(text).ok()?;
    let servers = document.get("mcpServers")?.as_object()?;
    let mut config = ClientConfig::default();
    for (name, server) in servers {
        let read = serde_json::from_value(server.clone());
        match read {
            Ok(server) => add_server(&mut config, name, server),
            Err(error) => return Some(Err(format!("the server {name:?} can't be read: {error}"))),
        }
    }
    Some(Ok(config))
}

fn add_server(config: &mut ClientConfig, name: &str, server: JsonServer) {
    if server.disabled {
        return config.leave_out(name, "it is disabled");
    }
    let configured = match (server.command, server.url) {
        (Some(program), _) => {
            if let Some(file) = server.env_file {
                config.notes.push(format!(
                    "the server {name:?} takes variables from {file}: set them in the environment, and name them under `pass_env`"
                ));
            }
            let command = ConfiguredCommand {
                argv: std::iter::once(program).chain(server.args).collect(),
                env: texts(server.env),
                cwd: server.cwd,
            };
            ConfiguredServer::Program { command }
        }
        (None, Some(_)) if server.transport.as_deref() == Some("sse") => {
            return config.leave_out(
                name,
                "it has the transport `sse`, which toolq doesn't support: the server may have streamable HTTP at another address",
            );
        }
        (None, Some(url)) => ConfiguredServer::Endpoint(ConfiguredEndpoint {
            url,
            headers: texts(server.headers),
        }),
        (None, None) => return config.leave_out(name, "it has neither `command` nor `url`"),
    };
    config.add(name, configured);
}

/// Returns the values that aren't null, as text.
fn texts(values: BTreeMap<String, Option<Value>>) -> BTreeMap<String, String> {
    let texts = values.into_iter().filter_map(|(name, value)| {
        let text = match value? {
            Value::String(text) => text,
            other => other.to_string(),
        };
        Some((name, text))
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ClientConfig {
        read_client_config(text).unwrap().unwrap()
    }

    #[test]
    fn servers_of_claude_and_cursor_become_entries_without_secrets() {
        let config = read(
            r#"{"mcpServers": {
                "files": {"command": "npx", "args": ["-y", "server-filesystem@1", "."]},
                "github": {"type": "stdio", "command": "docker", "args": ["run", "-i", "-e", "GITHUB_TOKEN", "image:1"],
                    "env": {"GITHUB_TOKEN": "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "LOG": "debug", "N": 3, "HOST": "${HOST:-localhost}", "KEY": "${MY_KEY:-hunter2hunter2}"}},
                "search": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer x", "X-Region": "eu", "X-Level": 3}},
                "stream": {"type": "sse", "url": "https://mcp.example.com/sse"},
                "empty": {},
                "old": {"command": "old", "disabled": true},
                "paid": {"command": "paid", "args": ["--api-key", "hunter2", "--token=hunter2", "--format={x}", "${HOME}/x"]}
            }}"#,
        );
        assert_eq!(
            config.servers["files"].command().argv,
            ["npx", "-y", "server-filesystem@1", "."]
        );
        let env: Vec<(&str, &str)> = config.servers["github"]
            .command()
            .env
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        let expected = [
            ("GITHUB_TOKEN", "${GITHUB_TOKEN}"),
            ("HOST", "${HOST:-localhost}"),
            ("KEY", "${MY_KEY}"),
            ("LOG", "debug"),
            ("N", "3"),
        ];
        assert_eq!(env, expected);
        let argv = &config.servers["paid"].command().argv;
        let expected = [
            "paid",
            "--api-key",
            "REPLACE_ME",
            "--token=REPLACE_ME",
            "--format={{x}",
            "REPLACE_ME",
        ];
        assert_eq!(argv, &expected);
        let search = config.servers["search"].endpoint();
        assert_eq!(search.url, "https://mcp.example.com/mcp");
        let headers = [
            ("Authorization", "Bearer ${SEARCH_AUTHORIZATION}"),
            ("X-Level", "3"),
            ("X-Region", "eu"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(search.headers, headers.into());
        assert_eq!(config.servers.len(), 4);
        assert_eq!(config.notes.len(), 5, "{:?}", config.notes);
        let all = format!("{config:?}");
        for secret in ["hunter2", "ghp_", "Bearer x"] {
            assert!(!all.contains(secret), "{secret}: {all}");
        }
    }

    #[test]
    fn what_only_the_client_can_resolve_becomes_what_toolq_can() {
        let config = read(
            r#"{"mcpServers": {
                "web": {"type": "stdio", "command": "uvx", "args": ["--from", "a//b", "web"],
                    "env": {"HOME_DIR": "${env:HOME}"}, "cwd": "${workspaceFolder}/sub", "envFile": ".env"}
            }}"#,
        );
        let web = config.servers["web"].command();
        assert_eq!(web.argv, ["uvx", "--from", "a//b", "web"]);
        assert_eq!(web.env["HOME_DIR"], "${HOME}");
        assert_eq!(web.cwd.as_deref(), Some("./sub"));
        assert!(config.notes[0].contains(".env"), "{:?}", config.notes);
        let config = read(
            r#"{"mcpServers": {"a": {"command": "${workspaceFolder}/server"}, "b": {"command": "${userHome}/server"}}}"#,
        );
        assert_eq!(config.servers["a"].command().argv, ["./server"]);
        // `{{` is a brace that begins no placeholder.
        assert_eq!(config.servers["b"].command().argv, ["${{userHome}/server"]);
        assert_eq!(config.notes.len(), 1, "{:?}", config.notes);
        assert!(config.notes[0].contains("program"), "{:?}", config.notes);
    }

    #[test]
    fn other_documents_are_left_to_other_readers() {
        for text in [
            "{}",
            "[]",
            r#"{"tools": []}"#,
            "nothing",
            r#"{"mcpServers": [1]}"#,
            r#"{"servers": {"a": {"command": "b"}}}"#,
        ] {
            assert_eq!(read_client_config(text), None, "{text}");
        }
        let broken = read_client_config(r#"{"mcpServers": {"a": {"command": 1}}}"#).unwrap();
        assert!(broken.unwrap_err().contains("\"a\""));
    }
}
