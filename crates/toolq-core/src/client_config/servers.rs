//! The servers of a configuration, as tools.yaml can have them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::client_config::secrets::{is_secret_option, looks_secret};
use crate::template::is_variable_name;

/// What stands for an argument that isn't copied.
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
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConfiguredServer {
    /// The program.
    pub command: ConfiguredCommand,
    /// How long it may take to be ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup: Option<String>,
    /// The tools that may be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// What its tools have in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defaults: Option<BTreeMap<String, String>>,
}

/// `command` of a server.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConfiguredCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables to set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables to pass on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// The working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

impl ClientConfig {
    /// Notes that a server can't be added.
    pub(super) fn leave_out(&mut self, name: &str, is_disabled: bool, has_url: bool) {
        let why = match (is_disabled, has_url) {
            (true, _) => "it is disabled",
            (false, true) => "it is served over HTTP",
            (false, false) => "it has no `command`",
        };
        let note = format!("the server {name:?} is left out: {why}");
        self.notes.push(note);
    }

    /// Adds a server whose values are as the configuration has them. Secrets aren't copied.
    pub(super) fn add(&mut self, name: &str, mut server: ConfiguredServer) {
        let command = &mut server.command;
        for (variable, value) in &mut command.env {
            *value = env_template(variable, value);
        }
        let cwd = command.cwd.take().map(|cwd| resolve_references(&cwd));
        let is_below_root = |cwd: &String| !cwd.starts_with(['/', '~']) && !cwd.contains("${");
        if let Some(cwd) = cwd.iter().find(|cwd| !is_below_root(cwd)) {
            self.notes.push(format!(
                "the server {name:?} runs in {cwd}: `cwd` in tools.yaml must be below `root`, so it is left out"
            ));
        }
        command.cwd = cwd.filter(is_below_root).filter(|cwd| cwd != ".");
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
        self.servers.insert(free_name(name), server);
    }
}

/// `toolq servers lock` is a command.
fn free_name(name: &str) -> String {
    match name {
        "lock" => "lock_server".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns the template for a variable. A value that may be a secret comes from toolq's own environment.
fn env_template(variable: &str, value: &str) -> String {
    let value = resolve_references(value);
    if value.starts_with("${") && value.ends_with('}') && value.matches("${").count() == 1 {
        let inner = &value[2..value.len() - 1];
        let (name, default) = inner.split_once(":-").unwrap_or((inner, ""));
        if is_variable_name(name) {
            let keeps_default = !default.is_empty() && !looks_secret(variable, default);
            return if keeps_default {
                value
            } else {
                format!("${{{name}}}")
            };
        }
    }
    if looks_secret(variable, &value) || value.contains("${") {
        return format!("${{{variable}}}");
    }
    escape_placeholders(&value)
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

/// Replaces what only other programs know: `${workspaceFolder}`, `${env:NAME}`, `${input:name}`.
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
            Some(("input", name)) => {
                let is_word = |c: char| c.is_ascii_alphanumeric();
                let name = name.to_ascii_uppercase();
                let name = name.replace(|c: char| !is_word(c), "_");
                resolved += &["${", &name, "}"].concat();
            }
            _ => resolved.push_str(&rest[start..=start + length]),
        }
        rest = &rest[start + length + 1..];
    }
    resolved + rest
}

/// Whether an argument can't be copied: it may be a secret, or needs a variable, which no argument can have.
fn is_unsafe_argument(text: &str) -> bool {
    text.contains("${") || looks_secret("", text)
}
