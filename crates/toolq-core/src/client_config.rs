//! Reads MCP servers from the configuration of other programs, so that they need not be written down again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::template::is_variable_name;
use crate::types::ServerEndpoint;

// The servers of a configuration, as tools.yaml can have them.

/// Replaces an argument that isn't copied.
const REPLACED_ARGUMENT: &str = "REPLACE_ME";

/// What a configuration says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClientConfig {
    /// Servers that tools.yaml can have.
    pub servers: BTreeMap<String, ConfiguredServer>,
    /// What is left out or has to be done by a person, one sentence each.
    pub notes: Vec<String>,
}

/// A server, as the entry in tools.yaml has it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ConfiguredServer {
    /// It is started as a program.
    Program {
        /// The program.
        command: ConfiguredCommand,
    },
    /// It is reached over HTTP.
    Endpoint(ConfiguredEndpoint),
}

/// `command` of a server.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConfiguredCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables to set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

impl ClientConfig {
    /// Notes that a server can't be added.
    pub(super) fn leave_out(&mut self, name: &str, why: &str) {
        let note = format!("the server {name:?} is left out: {why}");
        self.notes.push(note);
    }

    /// Adds a server whose values are as the configuration has them. Secrets aren't copied.
    pub(super) fn add(&mut self, name: &str, mut server: ConfiguredServer) {
        match &mut server {
            ConfiguredServer::Program { command } => self.remove_secrets(name, command),
            ConfiguredServer::Endpoint(endpoint) => {
                self.notes.extend(endpoint.remove_secrets(name));
            }
        }
        self.servers.insert(free_name(name), server);
    }

    fn remove_secrets(&mut self, name: &str, command: &mut ConfiguredCommand) {
        let mut variables = Vec::new();
        for (variable, value) in &mut command.env {
            *value = reference_template(value).unwrap_or_else(|| {
                variables.push(&**variable);
                format!("${{{variable}}}")
            });
        }
        if !variables.is_empty() {
            self.notes.push(format!(
                "the server {name:?} gets {} from the environment: set what the configuration says there",
                variables.join(", ")
            ));
        }
        let cwd = command.cwd.take().map(|cwd| resolve_references(&cwd));
        let is_below_root = |cwd: &String| !cwd.starts_with(['/', '~']) && !cwd.contains("${");
        if let Some(cwd) = cwd.iter().find(|cwd| !is_below_root(cwd)) {
            self.notes.push(format!(
                "the server {name:?} runs in {cwd}: `cwd` in tools.yaml must be below `root`, so it is left out"
            ));
        }
        command.cwd = cwd.filter(is_below_root).filter(|cwd| cwd != ".");
        if let Some(program) = command.argv.first_mut() {
            *program = escape_placeholders(&resolve_references(program));
            if program.contains("${") {
                self.notes.push(format!(
                    "the program of the server {name:?} is {program}, and no variable can stand there: write its path"
                ));
            }
        }
        let mut is_replaced = false;
        let mut follows_secret_option = false;
        for argument in command.argv.iter_mut().skip(1) {
            let text = resolve_references(argument);
            let option = text.split_once('=').filter(|_| text.starts_with('-'));
            let safe = match option {
                Some((option, value)) if is_secret_option(option) || is_unsafe_argument(value) => {
                    format!("{option}={REPLACED_ARGUMENT}")
                }
                None if follows_secret_option && !text.starts_with('-')
                    || is_unsafe_argument(&text) =>
                {
                    REPLACED_ARGUMENT.to_owned()
                }
                _ => text.clone(),
            };
            is_replaced |= safe != text;
            follows_secret_option = option.is_none() && is_secret_option(&text);
            *argument = escape_placeholders(&safe);
        }
        if is_replaced {
            self.notes.push(format!(
                "an argument of the server {name:?} may be secret or names a variable: it is {REPLACED_ARGUMENT} now. Every user of the machine can see arguments, so pass it in a variable, under `env`, if the program takes it there"
            ));
        }
    }
}

/// `toolq servers lock` is a command.
fn free_name(name: &str) -> String {
    match name {
        "lock" => "lock_server".to_owned(),
        name => name.to_owned(),
    }
}

/// Whether an argument can't be copied: it has a secret, or needs a variable, which no argument can have.
fn is_unsafe_argument(text: &str) -> bool {
    text.contains("${") || has_secret(text)
}

// A server that is reached over HTTP, without the secrets in its address and its headers.

/// What may precede the secret in a header, in lowercase.
const SCHEMES: [&str; 4] = ["apikey", "basic", "bearer", "token"];

/// `url` and `headers` of a server.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ConfiguredEndpoint {
    /// The address.
    pub url: String,
    /// Headers of every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

impl ConfiguredEndpoint {
    /// Turns values as the configuration has them into templates without secrets. Returns what a person has to know.
    fn remove_secrets(&mut self, server: &str) -> Vec<String> {
        let mut notes = Vec::new();
        self.url = url_template(server, &self.url, &mut notes);
        self.headers.retain(|name, _| {
            let is_kept = !ServerEndpoint::defines_header(name);
            if !is_kept {
                notes.push(format!(
                    "the header {name:?} of the server {server:?} is left out: toolq sets it itself"
                ));
            }
            is_kept
        });
        for (name, value) in &mut self.headers {
            *value = header_template(server, name, value, &mut notes);
        }
        notes
    }
}

/// Returns the template for a header. The name of the scheme before a value stays, so that only the value is masked.
fn header_template(server: &str, name: &str, value: &str, notes: &mut Vec<String>) -> String {
    let is_scheme = |word: &str| SCHEMES.contains(&&*word.to_ascii_lowercase());
    let parts = value.split_once(' ').filter(|(word, _)| is_scheme(word));
    let (scheme, value) = parts.unwrap_or(("", value));
    let template = reference_template(value.trim()).unwrap_or_else(|| {
        let variable = variable_name(server, name);
        let what = match scheme {
            "" => "its value".to_owned(),
            scheme => format!("what comes after {scheme:?}"),
        };
        notes.push(format!(
            "the header {name:?} of the server {server:?} isn't copied: set {variable} to {what} in the environment"
        ));
        format!("${{{variable}}}")
    });
    format!("{scheme} {template}").trim_start().to_owned()
}

/// Returns the template for an address. toolq masks variables after the `?`, but not those before it.
fn url_template(server: &str, url: &str, notes: &mut Vec<String>) -> String {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let base = resolve_references(base);
    if is_secret_address(&base) {
        let variable = variable_name(server, "url");
        notes.push(format!(
            "the URL of the server {server:?} may be secret: set {variable} to it in the environment, and name {variable} under `secrets` so that it is masked"
        ));
        return format!("${{{variable}}}");
    }
    let mut template = escape_placeholders(&base);
    for (index, parameter) in query.split('&').filter(|part| !part.is_empty()).enumerate() {
        template.push(if index == 0 { '?' } else { '&' });
        let (name, value) = match parameter.split_once('=') {
            Some((name, value)) => {
                template += &[name, "="].concat();
                (name, value)
            }
            None => ("query", parameter),
        };
        template += &reference_template(value).unwrap_or_else(|| {
            let variable = variable_name(server, name);
            notes.push(format!(
                "the parameter {name:?} in the URL of the server {server:?} isn't copied: set {variable} to its value in the environment"
            ));
            format!("${{{variable}}}")
        });
    }
    template
}

/// Returns the name of the variable for a value of a server: `SEARCH_API_KEY`.
fn variable_name(server: &str, what: &str) -> String {
    let name = format!("{server}_{what}").to_ascii_uppercase();
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("_{name}");
    }
    name
}

// The JSON files in which clients of MCP keep their servers, under `mcpServers`.

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

// Turns values of a configuration into templates of tools.yaml, without the secrets among them.

/// Returns the template for a value that is nothing but a reference to a variable, without its default, which may be secret.
fn reference_template(value: &str) -> Option<String> {
    let value = resolve_references(value);
    let inner = value.strip_prefix("${")?.strip_suffix('}')?;
    let variable = inner.split_once(":-").map_or(inner, |(name, _)| name);
    is_variable_name(variable).then(|| format!("${{{variable}}}"))
}

/// Doubles braces that would be placeholders in tools.yaml.
fn escape_placeholders(text: &str) -> String {
    let mut escaped = String::new();
    for (index, c) in text.char_indices() {
        if c == '{' && is_placeholder(&text[index + 1..]) {
            escaped.push('{');
        }
        escaped.push(c);
    }
    escaped
}

/// Whether what follows a brace makes it a placeholder: `name}`, `a.b?}`, `list...}`.
fn is_placeholder(rest: &str) -> bool {
    let inner = rest.split_once('}').map(|(inner, _)| inner);
    let name = inner.map(|inner| inner.trim_end_matches(['?', '.']));
    name.is_some_and(|name| {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        !name.is_empty() && name.chars().all(is_part)
    })
}

/// Replaces references that only other programs can resolve: `${workspaceFolder}`, `${env:NAME}`.
fn resolve_references(text: &str) -> String {
    let mut resolved = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let reference = &rest[start + 2..start + length];
        resolved.push_str(&rest[..start]);
        match reference.split_once(':') {
            None if reference == "workspaceFolder" => resolved.push('.'),
            Some(("env", name)) => resolved += &["${", name, "}"].concat(),
            _ => resolved.push_str(&rest[start..=start + length]),
        }
        rest = &rest[start + length + 1..];
    }
    resolved + rest
}

// Tells which arguments and addresses may be secret. Values of variables, headers and parameters are never copied,
// whatever they are.

/// Parts of names whose values are secret.
const SECRET_WORDS: [&str; 15] = [
    "token",
    "key",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "auth",
    "authorization",
    "credential",
    "cookie",
    "session",
    "dsn",
    "pat",
    "bearer",
];

/// From this length on, a text of letters and digits without words may be a secret.
const MIN_SECRET_CHARS: usize = 16;

/// Whether an argument may have a secret: `Authorization: Bearer x`, `--url=https://h/?token=x`, `postgres://me:pw@h`, `sk-ant-api03-a1B2…`.
fn has_secret(argument: &str) -> bool {
    (argument.contains([':', '=']) && has_secret_word(argument)) || is_secret_address(argument)
}

/// Whether an address has a user, and so perhaps a password, or a part that may be a secret.
fn is_secret_address(url: &str) -> bool {
    let rest = url.split_once("://").map(|(_, rest)| rest);
    let has_user = |rest: &str| rest.split('/').next().unwrap_or_default().contains('@');
    rest.is_some_and(has_user) || is_random(url)
}

/// Whether the value of a command-line option is secret: `--api-key`.
fn is_secret_option(option: &str) -> bool {
    option.starts_with('-') && has_secret_word(option)
}

/// Whether a word of the name says that its value is secret. `KEYBOARD` has no such word, `API_KEY` and `apiKey` do.
fn has_secret_word(name: &str) -> bool {
    let mut words = String::new();
    let mut was_lowercase = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && was_lowercase {
            words.push('_');
        }
        was_lowercase = c.is_ascii_lowercase();
        words.push(c.to_ascii_lowercase());
    }
    let mut words = words.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| {
        let singular = word.strip_suffix('s').unwrap_or(word);
        [word, singular]
            .iter()
            .any(|word| SECRET_WORDS.contains(word))
            || ["apikey", "accesskey"].contains(&singular)
    })
}

/// Whether a part of the text is too long and too mixed to be a word, a version, or a path of words.
fn is_random(value: &str) -> bool {
    // `NAME==VERSION` pins a package.
    let value = value.replace("==", " ");
    let mut parts = value.split(|c: char| !(c.is_ascii_alphanumeric() || "+=_-".contains(c)));
    parts.any(|part| {
        let is_hex = part.chars().all(|c| c.is_ascii_hexdigit());
        let is_digest = part.len() == 64 && value.contains("sha256:");
        let is_commit = part.len() == 40 && value.contains(['#', '@']);
        if is_hex && (is_digest || is_commit) {
            return false;
        }
        let digits = part.chars().filter(char::is_ascii_digit).count();
        let letters = part.chars().filter(char::is_ascii_alphabetic).count();
        let is_words = part.split(['-', '_']).all(|word| {
            word.chars().all(|c| c.is_ascii_lowercase()) || word.chars().all(|c| c.is_ascii_digit())
        });
        part.len() >= MIN_SECRET_CHARS && digits > 0 && letters > 0 && !is_words
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_headers_become_variables() {
        for (name, value, expected) in [
            (
                "Authorization",
                "Bearer hunter2",
                "Bearer ${MY_API_AUTHORIZATION}",
            ),
            ("Authorization", "hunter2", "${MY_API_AUTHORIZATION}"),
            ("Authorization", "Bearer ${TOKEN}", "Bearer ${TOKEN}"),
            ("Authorization", "Bearer ${env:TOKEN}", "Bearer ${TOKEN}"),
            (
                "Authorization",
                "bearer ${TOKEN:-hunter2}",
                "bearer ${TOKEN}",
            ),
            (
                "Authorization",
                "Bearer a${TOKEN}",
                "Bearer ${MY_API_AUTHORIZATION}",
            ),
            ("X-Forward", "Basic hunter2", "Basic ${MY_API_X_FORWARD}"),
            ("X-API-Key", "${env:API_KEY}", "${API_KEY}"),
            ("Cookie", "a=hunter2; b=${B}", "${MY_API_COOKIE}"),
            ("X-Toolsets", "repos,issues", "${MY_API_X_TOOLSETS}"),
            ("X-Region", "${REGION:-eu}", "${REGION}"),
        ] {
            let mut notes = Vec::new();
            let template = header_template("my-api", name, value, &mut notes);
            assert_eq!(template, expected, "{name}: {value}");
            assert_eq!(notes.len(), usize::from(expected.contains("${MY_API")));
            assert!(!format!("{notes:?}").contains("hunter2"), "{notes:?}");
        }
    }

    #[test]
    fn secrets_in_an_address_become_variables() {
        for (url, expected) in [
            ("https://h.example/mcp", "https://h.example/mcp"),
            (
                "${BASE:-https://h.example}/mcp",
                "${BASE:-https://h.example}/mcp",
            ),
            (
                "https://h.example/mcp?key=hunter2&v=${V}",
                "https://h.example/mcp?key=${_1A_KEY}&v=${V}",
            ),
            (
                "https://h.example/mcp?key=${env:KEY}",
                "https://h.example/mcp?key=${KEY}",
            ),
            ("https://me:hunter2@h.example/mcp", "${_1A_URL}"),
        ] {
            let mut notes = Vec::new();
            assert_eq!(url_template("1a", url, &mut notes), expected, "{url}");
            assert_eq!(notes.len(), usize::from(expected.contains("${_1A")));
            assert!(!format!("{notes:?}").contains("hunter2"), "{notes:?}");
        }
    }

    #[test]
    fn headers_of_the_protocol_are_left_out() {
        let headers = ["Accept", "MCP-Protocol-Version", "X-A"];
        let headers = headers.map(|name| (name.to_owned(), "${A}".to_owned()));
        let mut endpoint = ConfiguredEndpoint {
            url: "http://localhost:1/".to_owned(),
            headers: headers.into(),
        };
        assert_eq!(endpoint.remove_secrets("s").len(), 2);
        assert_eq!(
            endpoint.headers,
            [("X-A".to_owned(), "${A}".to_owned())].into()
        );
    }
}

#[cfg(test)]
mod servers_tests {
    use super::*;

    fn read(text: &str) -> ClientConfig {
        read_client_config(text).unwrap().unwrap()
    }

    impl ConfiguredServer {
        /// The program of a server that has one.
        fn command(&self) -> &ConfiguredCommand {
            match self {
                Self::Program { command } => command,
                Self::Endpoint(endpoint) => panic!("no program: {endpoint:?}"),
            }
        }

        /// The address and the headers of a server that is reached over HTTP.
        fn endpoint(&self) -> &ConfiguredEndpoint {
            match self {
                Self::Program { command } => panic!("no address: {command:?}"),
                Self::Endpoint(endpoint) => endpoint,
            }
        }
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
            ("HOST", "${HOST}"),
            ("KEY", "${MY_KEY}"),
            ("LOG", "${LOG}"),
            ("N", "${N}"),
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
            ("X-Level", "${SEARCH_X_LEVEL}"),
            ("X-Region", "${SEARCH_X_REGION}"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(search.headers, headers.into());
        assert_eq!(config.servers.len(), 4);
        assert_eq!(config.notes.len(), 8, "{:?}", config.notes);
        let set = "\"github\" gets GITHUB_TOKEN, LOG, N from the environment";
        assert!(config.notes[0].contains(set), "{:?}", config.notes);
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

#[cfg(test)]
mod secrets_tests {
    use super::*;

    #[test]
    fn what_may_be_secret_is_told_from_what_is_not() {
        for argument in [
            "Authorization: Bearer x",
            "API_KEY=x",
            "--apiKeys=x",
            "Server=h;Password=x",
            "https://host/path?token=x",
            "postgres://me:pw@host/db",
            "https://mcp.example.com/s/9f8e7d6c5b4a39281706f5e4d3c2b1a0/mcp",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "sk-ant-api03-abcDEF0123456789",
            "aHVudGVyMmh1bnRlcjI0Nw==",
        ] {
            assert!(has_secret(argument), "{argument}");
        }
        for argument in [
            "-y",
            "GITHUB_TOKEN",
            "--keyboard=de",
            "--pattern=*.md",
            "https://mcp.example.com/v1/server",
            "@modelcontextprotocol/server-filesystem@2026.8.31",
            "mcp-server-git==2026.10.19",
            "server-sequential-thinking-2025",
            "/home/me/data/memory-2026/memory.json",
            "image@sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
            "github:a/b#0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c",
        ] {
            assert!(!has_secret(argument), "{argument}");
        }
        assert!(is_secret_option("--api-key") && !is_secret_option("--path"));
    }
}
