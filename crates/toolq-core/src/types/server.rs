//! MCP servers, and what tools.lock has of their tools.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use strum::IntoStaticStr;

use crate::json::expect_json;
use crate::types::backing::{BodyTemplate, CommandBacking};
use crate::types::policies::{Effect, StartLimits};
use crate::types::template::Template;

/// An entry of `servers`. It is started or connected to at the first call of one of its tools, and serves all of them.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The key in tools.yaml.
    pub name: String,
    /// How it is reached. The templates hold no values from an input.
    pub transport: ServerTransport,
    /// How long it may take until it is ready for calls.
    pub startup: Duration,
    /// How long it may be without a call before it is ended; `None` keeps it until the end of the run.
    pub idle: Option<Duration>,
    /// How often its program is started again within a while after it has ended by itself.
    pub restarts: u32,
    /// The revision of the protocol to speak.
    pub protocol: ServerProtocol,
    /// It was locked when it spoke a revision that begins with `initialize`.
    pub was_legacy: bool,
    /// Which parts of its results the model reads, unless a tool says otherwise.
    pub result: ResultParts,
    /// How many calls of its tools run at once, and how often they start.
    pub start_limits: StartLimits,
    /// Whether its tools are requested at every start, to compare them with what is known of them.
    pub compares_tools: bool,
    /// The SHA-256 of what tools.lock has of the server. It is read from the server again after that has changed.
    pub lock_digest: Option<String>,
}

/// How the messages of a server are exchanged.
#[derive(Debug, Clone)]
pub enum ServerTransport {
    /// A program that is started, and reads messages from stdin.
    Program(Box<CommandBacking>),
    /// Streamable HTTP: each message is a request to a server that runs elsewhere.
    Endpoint(ServerEndpoint),
}

/// Headers that the protocol or its transport defines, beside those that begin with `mcp-`.
const PROTOCOL_HEADERS: [&str; 4] = ["accept", "content-length", "content-type", "last-event-id"];

/// The address of a server, and the headers of every request to it.
#[derive(Debug, Clone)]
pub struct ServerEndpoint {
    /// The address that gets all messages.
    pub url: Template,
    /// Header names are lowercase.
    pub headers: Vec<(String, Template)>,
}

impl ServerEndpoint {
    /// Whether the protocol or its transport defines this header, so that `headers` can't set it.
    pub fn defines_header(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        name.starts_with("mcp-") || PROTOCOL_HEADERS.contains(&&*name)
    }
}

impl ServerConfig {
    /// Returns whether a process or session of `other` can serve the calls of this server.
    pub fn is_same_as(&self, other: &Self) -> bool {
        // Every field counts, so that a new one does, too, except for what applies to its next call.
        let without_limits = |server: &Self| Self {
            start_limits: StartLimits::default(),
            ..server.clone()
        };
        format!("{:?}", without_limits(self)) == format!("{:?}", without_limits(other))
    }

    /// Returns the program that serves the tools, unless the server runs elsewhere.
    pub fn program(&self) -> Option<&CommandBacking> {
        match &self.transport {
            ServerTransport::Program(program) => Some(program),
            ServerTransport::Endpoint(_) => None,
        }
    }

    /// Returns the templates that environment variables are filled into.
    pub fn templates(&self) -> Vec<&Template> {
        let (url, pairs) = match &self.transport {
            ServerTransport::Program(program) => (None, &program.env),
            ServerTransport::Endpoint(endpoint) => (Some(&endpoint.url), &endpoint.headers),
        };
        let values = pairs.iter().map(|(_, template)| template);
        url.into_iter().chain(values).collect()
    }

    /// Returns the names of the environment variables whose values are secrets: those in `env` and `headers`, and those in
    /// the query of a URL, where some services want their keys.
    pub fn secret_names(&self) -> Vec<&str> {
        let (url, pairs) = match &self.transport {
            ServerTransport::Program(program) => (None, &program.env),
            ServerTransport::Endpoint(endpoint) => (Some(&endpoint.url), &endpoint.headers),
        };
        let query = url.into_iter().flat_map(Template::query_env_names);
        let values = pairs.iter().flat_map(|(_, template)| template.env_names());
        query.chain(values).collect()
    }
}

/// The revision of the protocol that a server is spoken to in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum ServerProtocol {
    /// Whatever the server speaks.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// The last revision that begins with `initialize`.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// The first revision without a handshake.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

impl ServerProtocol {
    /// Returns whether a revision, by its date, begins with `initialize`.
    pub(crate) fn is_legacy(date: &str) -> bool {
        !date.is_empty() && date < Self::V2026_07_28.name()
    }

    /// The value in tools.yaml.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }
}

/// Which parts of a server's result the model reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ResultParts {
    /// The contents; the structured content only where there are none, or for `output: json`.
    #[default]
    Content,
    /// The structured content in place of the texts. Other contents stay, and texts where there's nothing structured.
    Structured,
    /// The contents, then the structured content, unless a text is the same JSON.
    Both,
}

impl ResultParts {
    /// The value in tools.yaml.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Whether what a server says about the effects of its tools counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HintPolicy {
    /// Every tool is a `write` tool, unless tools.yaml says otherwise.
    Ignore,
    /// The `effect` in tools.lock counts, which only a person changes.
    #[default]
    Locked,
    /// The server's word counts, as it was locked.
    Trust,
}

/// `mcp`: a tool of a server.
#[derive(Debug, Clone)]
pub struct McpBacking {
    /// The server.
    pub server: Arc<ServerConfig>,
    /// The tool's name there.
    pub tool: Arc<str>,
    /// The arguments to send; `None` sends the input.
    pub arguments: Option<BodyTemplate>,
    /// Which parts of the result the model reads.
    pub result: ResultParts,
    /// What the tool has to be like, if tools.lock says so.
    pub lock: Option<Arc<ToolLock>>,
}

/// What a server announced when it was locked.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerLock {
    /// The name that it gave itself.
    pub name: Option<String>,
    /// The version that it gave itself.
    pub version: Option<String>,
    /// The revision of the protocol that it spoke.
    pub protocol: String,
    /// When.
    pub date: String,
    /// Its tools by name.
    pub tools: BTreeMap<String, ToolLock>,
}

/// A tool of a server when it was locked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolLock {
    /// What a person says that it does to the world.
    pub effect: Effect,
    /// What the server says, which counts for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Effect>,
    /// The digest of the definition.
    pub sha256: String,
    /// What the server announced.
    pub definition: ToolDefinition,
}

/// A tool as its server announces it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// A name for people.
    pub title: Option<String>,
    /// What the tool does, for the model.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its structured content.
    pub output_schema: Option<Value>,
    /// What the server claims about its effects.
    pub annotations: Option<Value>,
}

/// How a tool differs from what was locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolDrift {
    /// The server has no such tool any more.
    Gone,
    /// These parts of its definition differ.
    Changed(Vec<DefinitionPart>),
}

/// A part of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum DefinitionPart {
    /// The name for people.
    Title,
    /// What the model reads about the tool.
    Description,
    /// The schema of its arguments.
    #[strum(to_string = "input schema")]
    InputSchema,
    /// The schema of its structured content.
    #[strum(to_string = "output schema")]
    OutputSchema,
    /// What the server claims about its effects.
    Annotations,
}

impl ServerLock {
    /// Returns the SHA-256 of the lock in hex.
    pub fn digest(&self) -> String {
        let json = expect_json(serde_json::to_string(self));
        HEXLOWER.encode(&Sha256::digest(json))
    }
}

impl ToolDefinition {
    /// Returns the SHA-256 of the definition in hex. The order of keys doesn't count.
    pub fn digest(&self) -> String {
        let mut value = expect_json(serde_json::to_value(self));
        value.sort_all_objects();
        HEXLOWER.encode(&Sha256::digest(value.to_string()))
    }

    /// Returns the effect that the annotations claim, if they claim one. Both hints are false by default.
    pub fn hint(&self) -> Option<Effect> {
        let annotations = self.annotations.as_ref()?;
        let claims = |hint| annotations.get(hint) == Some(&Value::Bool(true));
        if claims("readOnlyHint") {
            Some(Effect::Read)
        } else if claims("idempotentHint") {
            Some(Effect::Idempotent)
        } else {
            annotations
                .get("readOnlyHint")
                .is_some()
                .then_some(Effect::Write)
        }
    }

    /// Returns which parts differ in `other`. The order of keys doesn't count.
    pub fn find_changes(&self, other: &Self) -> Vec<DefinitionPart> {
        let parts = [
            (DefinitionPart::Title, self.title != other.title),
            (
                DefinitionPart::Description,
                self.description != other.description,
            ),
            (
                DefinitionPart::InputSchema,
                self.input_schema != other.input_schema,
            ),
            (
                DefinitionPart::OutputSchema,
                self.output_schema != other.output_schema,
            ),
            (
                DefinitionPart::Annotations,
                self.annotations != other.annotations,
            ),
        ];
        parts
            .into_iter()
            .filter(|(_, is_changed)| *is_changed)
            .map(|(part, _)| part)
            .collect()
    }
}

impl ToolLock {
    /// Locks a definition. A tool has the effect `write` until a person says otherwise.
    pub fn new(definition: ToolDefinition) -> Self {
        Self {
            effect: Effect::Write,
            hint: definition.hint(),
            sha256: definition.digest(),
            definition,
        }
    }

    /// Returns how a tool differs that its server now announces like this, or not at all.
    pub fn find_drift(&self, now: Option<&ToolDefinition>) -> Option<ToolDrift> {
        let Some(now) = now else {
            return Some(ToolDrift::Gone);
        };
        if now.digest() == self.sha256 {
            return None;
        }
        Some(ToolDrift::Changed(self.definition.find_changes(now)))
    }
}

impl DefinitionPart {
    /// Returns the name of the part.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(value: Value) -> ToolDefinition {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_order_of_keys_is_no_change() {
        let one = definition(
            json!({"description": "d", "inputSchema": {"type": "object", "a": {"x": 1, "y": 2}}}),
        );
        let other = definition(
            json!({"inputSchema": {"a": {"y": 2, "x": 1}, "type": "object"}, "description": "d"}),
        );
        assert_eq!(ToolLock::new(one).find_drift(Some(&other)), None);
    }

    #[test]
    fn each_part_that_differs_is_named() {
        let one = definition(json!({"description": "d", "inputSchema": {"type": "object"}}));
        let other = definition(json!({
            "title": "t", "description": "e", "inputSchema": {"type": "object", "properties": {}},
            "outputSchema": {}, "annotations": {"readOnlyHint": true},
        }));
        let lock = ToolLock::new(one);
        let Some(ToolDrift::Changed(parts)) = lock.find_drift(Some(&other)) else {
            panic!("no drift");
        };
        let names: Vec<&str> = parts.into_iter().map(DefinitionPart::name).collect();
        assert_eq!(
            names,
            [
                "title",
                "description",
                "input schema",
                "output schema",
                "annotations"
            ]
        );
        assert_eq!(lock.find_drift(None), Some(ToolDrift::Gone));
    }

    #[test]
    fn a_hint_is_only_noted() {
        for (annotations, hint) in [
            (json!({"readOnlyHint": true}), Some(Effect::Read)),
            (
                json!({"idempotentHint": true, "readOnlyHint": false}),
                Some(Effect::Idempotent),
            ),
            (json!({"readOnlyHint": false}), Some(Effect::Write)),
            (json!({"title": "t"}), None),
            (json!(true), None),
        ] {
            let lock = ToolLock::new(definition(
                json!({"inputSchema": {}, "annotations": annotations}),
            ));
            assert_eq!((lock.effect, lock.hint), (Effect::Write, hint));
        }
    }
}
