use std::fmt;
use std::path::PathBuf;

use serde_json::value::RawValue;

/// What a call runs: its tool's templates filled with its input. Variables of the environment are still names, so it
/// can be shown and recorded without a secret in it.
#[derive(Debug, Clone)]
pub enum Invocation {
    /// A program to start.
    Command(CommandInvocation),
    /// A request to send.
    Http(HttpInvocation),
    /// An agent to hand a task to.
    Agent(AgentInvocation),
    /// The answer that a session ends with.
    Completion(String),
}

/// A program to start.
#[derive(Debug, Clone)]
pub struct CommandInvocation {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What it reads.
    pub stdin: StdinDraft,
    /// Declared variables.
    pub env: Vec<(String, Draft)>,
}

/// What a command reads.
#[derive(Debug, Clone)]
pub enum StdinDraft {
    /// The call's input as JSON.
    Input,
    /// Nothing.
    None,
    /// A text.
    Text(String),
}

/// A request to send.
#[derive(Debug, Clone)]
pub struct HttpInvocation {
    /// Values are percent-encoded already.
    pub url: Draft,
    /// Not yet encoded.
    pub query: Vec<(String, Draft)>,
    /// Names are lower case.
    pub headers: Vec<(String, Draft)>,
    /// What is sent.
    pub body: Option<JsonDraft>,
}

/// A task for an agent.
#[derive(Debug, Clone)]
pub struct AgentInvocation {
    /// What it is asked; none where that is the input.
    pub prompt: Option<Draft>,
}

/// A text that lacks only the environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft(pub Vec<Piece>);

/// A piece of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Itself: never looked at again, whatever it holds.
    Text(String),
    /// A variable of the environment.
    Env {
        /// The variable.
        name: String,
        /// Where it is not set or empty.
        default: Option<String>,
    },
}

/// A JSON body that lacks only the environment.
#[derive(Debug, Clone)]
pub enum JsonDraft {
    /// A value as it stood in the input or the file, digits kept.
    Raw(Box<RawValue>),
    /// A string.
    Text(Draft),
    /// An array.
    Array(Vec<JsonDraft>),
    /// An object.
    Object(Vec<(String, JsonDraft)>),
}

impl Draft {
    /// The text with every variable read by `env`.
    ///
    /// # Errors
    /// The name of the first variable that is neither set nor has a default.
    pub fn resolve(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Env { name, default } => {
                    let value = env(name).filter(|value| !value.is_empty());
                    text.push_str(&value.or_else(|| default.clone()).ok_or(name)?);
                }
            }
        }
        Ok(text)
    }
}

/// For people and plans: variables by name, never by value.
impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| piece.fmt(f))
    }
}

/// A variable as the file has it, with its default.
impl fmt::Display for Piece {
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
    /// The program as declared, and the path that is started: one with a slash and no leading one stands in `dir`.
    pub fn program(&self, dir: &std::path::Path) -> PathBuf {
        let program = self.argv.first().map_or("", String::as_str);
        if program.contains('/') {
            dir.join(program)
        } else {
            PathBuf::from(program)
        }
    }
}
