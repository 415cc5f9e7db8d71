//! The keys with texts for the model.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

use crate::tools_file::spanned::Field;

/// Texts for the model when a call fails or has nothing to say. They may use `{tool}`, `{error}`, `{timeout}` and `{details}`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct MessagesFile {
    /// The call timed out.
    pub timeout: Field<String>,
    /// The tool failed.
    pub failed: Field<String>,
    /// The program couldn't be started, or the server didn't respond.
    pub unavailable: Field<String>,
    /// The service refused the call because of too many requests.
    pub rate_limited: Field<String>,
    /// The input doesn't match the schema.
    pub invalid_input: Field<String>,
    /// There is no such tool.
    pub unknown_tool: Field<String>,
    /// An agent failed to produce an answer.
    pub agent_failed: Field<String>,
    /// An agent used up its turns: the note after its last text.
    pub max_turns: Field<String>,
    /// The tool failed too many times in a row.
    pub paused: Field<String>,
    /// The call needs an approval that nobody gave.
    pub needs_approval: Field<String>,
    /// Somebody was asked to approve the call, and said no.
    pub denied: Field<String>,
    /// The call did not run because an earlier one failed.
    pub not_executed: Field<String>,
    /// The run was interrupted.
    pub interrupted: Field<String>,
    /// A call of a `write` tool was interrupted, and it is unknown whether it took effect.
    pub in_doubt: Field<String>,
    /// The call succeeded with an empty text. Default: `(no output)`.
    pub empty_output: Field<String>,
    /// A tool with `once` has run for these values before: the line before the result of that call.
    pub already_done: Field<String>,
    /// The declaration of the built-in tool `attempt_completion`. Only at the top level.
    pub attempt_completion: Field<CompletionWordingFile>,
    /// The declaration of the built-in tool `new_task`. Only at the top level.
    pub new_task: Field<NewTaskWordingFile>,
    /// The declaration of the built-in tool `read_output`. Only at the top level.
    pub read_output: Field<ReadOutputWordingFile>,
}

/// Returns the schema of a tool's own messages: those of the file, except the words of the built-in tools.
pub(crate) fn tool_messages_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = MessagesFile::json_schema(generator);
    let properties = schema.get_mut("properties");
    if let Some(properties) = properties.and_then(Value::as_object_mut) {
        for key in ["attempt_completion", "new_task", "read_output"] {
            properties.shift_remove(key);
        }
    }
    schema
}

/// What a model reads about `attempt_completion`, without placeholders.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct CompletionWordingFile {
    /// What the tool does.
    pub description: Field<String>,
    /// What the input `result` is.
    pub result: Field<String>,
}

/// What a model reads about `new_task`, without placeholders.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct NewTaskWordingFile {
    /// What the tool does.
    pub description: Field<String>,
    /// What the input `agent` is. The names and descriptions of the agents follow in lines of their own.
    pub agent: Field<String>,
    /// What the input `task` is.
    pub task: Field<String>,
}

/// What a model reads about `read_output`, without placeholders.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct ReadOutputWordingFile {
    /// What the tool does.
    pub description: Field<String>,
    /// What the input `id` is.
    pub id: Field<String>,
    /// What the input `offset` is.
    pub offset: Field<String>,
    /// What the input `limit` is.
    pub limit: Field<String>,
    /// What the input `pattern` is.
    pub pattern: Field<String>,
}
