//! The servers of a configuration, as tools.yaml can have them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::client_config::endpoint::ConfiguredEndpoint;
use crate::client_config::secrets::{is_secret_option, looks_secret};
use crate::client_config::templates::{env_template, escape_placeholders, resolve_references};

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

#[cfg(test)]
impl ConfiguredServer {
    /// The program of a server that has one.
    pub(super) fn command(&self) -> &ConfiguredCommand {
        match self {
            Self::Program { command } => command,
            Self::Endpoint(endpoint) => panic!("no program: {endpoint:?}"),
        }
    }

    /// The address and the headers of a server that is reached over HTTP.
    pub(super) fn endpoint(&self) -> &ConfiguredEndpoint {
        match self {
            Self::Program { command } => panic!("no address: {command:?}"),
            Self::Endpoint(endpoint) => endpoint,
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

/// Whether an argument can't be copied: it may be a secret, or needs a variable, which no argument can have.
fn is_unsafe_argument(text: &str) -> bool {
    text.contains("${") || looks_secret("", text)
}
