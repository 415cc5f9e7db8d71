//! Invocations: what a call runs, before environment variables are filled in.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::types::argument_list::ArgumentList;
use crate::types::output_request::OutputRequest;
use crate::types::sandbox::SandboxInvocation;

/// What a call runs: its tool's templates, filled with its input. Environment variables are still names, so an
/// invocation can be shown and recorded without revealing a secret. Long turns hold one for each call, so it is small.
#[derive(Debug, Clone)]
pub enum Invocation {
    /// A program to start.
    Command(CommandInvocation),
    /// A request to send.
    Http(Box<HttpInvocation>),
    /// An agent to hand a task to.
    Agent(AgentInvocation),
    /// A tool of a server to call.
    Mcp(Box<McpInvocation>),
    /// The answer that completes a session.
    Completion(String),
    /// An output of an earlier call to read.
    ReadOutput(Box<OutputRequest>),
    /// A function of the process that embeds toolq. It gets the input.
    Host,
}

/// A program to start.
#[derive(Debug, Clone)]
pub struct CommandInvocation {
    /// The program and its arguments.
    pub argv: ArgumentList,
    /// What the program reads from stdin.
    pub stdin: StdinContent,
    /// Declared environment variables.
    pub env: Box<[(String, PartialTemplate)]>,
    /// What the program can reach, if it is confined.
    pub sandbox: Option<Box<SandboxInvocation>>,
}

/// What a command reads from stdin.
#[derive(Debug, Clone)]
pub enum StdinContent {
    /// The call's input as JSON.
    Input,
    /// Nothing: stdin is empty.
    None,
    /// A text.
    Text(Box<str>),
}

/// A request to send.
#[derive(Debug, Clone)]
pub struct HttpInvocation {
    /// Input values are already percent-encoded.
    pub url: PartialTemplate,
    /// Not encoded yet.
    pub query: Vec<(String, PartialTemplate)>,
    /// Header names are lowercase.
    pub headers: Vec<(String, PartialTemplate)>,
    /// The body to send.
    pub body: Option<PartialJson>,
}

/// A tool of a server to call.
#[derive(Debug, Clone)]
pub struct McpInvocation {
    /// The name of the server in tools.yaml.
    pub server: String,
    /// The tool's name there.
    pub tool: Arc<str>,
    /// The arguments, which are an object.
    pub arguments: PartialJson,
}

/// A task for an agent.
#[derive(Debug, Clone)]
pub struct AgentInvocation {
    /// The task, or `None` if it is the input.
    pub prompt: Option<PartialTemplate>,
}

/// A text in which only environment variables are left to fill in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartialTemplate(pub Vec<Segment>);

/// A piece of a [`PartialTemplate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Literal text, never parsed again.
    Text(String),
    /// An environment variable.
    Env {
        /// The name of the variable.
        name: String,
        /// Used if the variable is unset or empty.
        default: Option<String>,
    },
}

/// A JSON body in which only environment variables are left to fill in.
#[derive(Debug, Clone)]
pub enum PartialJson {
    /// A value taken verbatim from the input or the file. A whole input is shared.
    Raw(Arc<RawValue>),
    /// A string.
    Text(PartialTemplate),
    /// An array.
    Array(Vec<PartialJson>),
    /// An object.
    Object(Vec<(String, PartialJson)>),
}

impl PartialTemplate {
    /// Fills in every variable, using `env` to look it up, and returns the text.
    ///
    /// # Errors
    /// The name of the first variable that is unset or empty and has no default.
    pub fn resolve(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Segment::Text(part) => text.push_str(part),
                Segment::Env { name, default } => {
                    let value = env(name).filter(|value| !value.is_empty());
                    text.push_str(&value.or_else(|| default.clone()).ok_or(name)?);
                }
            }
        }
        Ok(text)
    }
}

/// For people and plans. Shows variables by name, never by value.
impl fmt::Display for PartialTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| piece.fmt(f))
    }
}

/// Formats a variable as written in tools.yaml, with its default.
impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Env { name, default } => match default {
                Some(default) => write!(f, "${{{name}:-{default}}}"),
                None => write!(f, "${{{name}}}"),
            },
        }
    }
}

impl CommandInvocation {
    /// Returns the path of the program to start. A relative path that contains a slash is resolved against `dir`.
    pub fn program_path(&self, dir: &std::path::Path) -> PathBuf {
        let program = self.argv.program();
        if program.contains('/') {
            dir.join(program)
        } else {
            PathBuf::from(program)
        }
    }
}
