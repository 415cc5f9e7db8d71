//! The definition of a tool, as `tools/list` has it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::protocol::or_default;

/// A tool of a server.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name by which it is called.
    pub name: String,
    /// A name for people.
    #[serde(default, deserialize_with = "or_default")]
    pub title: Option<String>,
    /// What the tool does, for the model.
    #[serde(default, deserialize_with = "or_default")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments, or whatever stands in its place. `null` if there is none.
    #[serde(default)]
    pub input_schema: Box<RawValue>,
    /// The JSON Schema of its structured content.
    pub output_schema: Option<Box<RawValue>>,
    /// What the server claims about its effects.
    #[serde(default, deserialize_with = "or_default")]
    pub annotations: Option<ToolAnnotations>,
    /// How it may be called.
    #[serde(default, deserialize_with = "or_default")]
    execution: Option<ToolExecution>,
}

/// What a server claims about a tool. Nothing here may be relied on unless a person trusts the server.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// A name for people.
    #[serde(deserialize_with = "or_default")]
    pub title: Option<String>,
    /// It changes nothing. By default it may.
    #[serde(deserialize_with = "or_default")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something. By default it may, if it changes anything.
    #[serde(deserialize_with = "or_default")]
    pub destructive_hint: Option<bool>,
    /// Calling it again changes nothing more. By default it may.
    #[serde(deserialize_with = "or_default")]
    pub idempotent_hint: Option<bool>,
    /// It reaches systems that the server doesn't know. By default it may.
    #[serde(deserialize_with = "or_default")]
    pub open_world_hint: Option<bool>,
}

/// How a tool may be called (revision 2025-11-25).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ToolExecution {
    #[serde(
        deserialize_with = "or_default",
        skip_serializing_if = "Option::is_none"
    )]
    task_support: Option<String>,
}

/// The part of a schema that says which type it is for.
#[derive(Deserialize)]
struct SchemaType<'s> {
    #[serde(rename = "type", borrow)]
    kind: Option<&'s str>,
}

impl Tool {
    /// Returns the tool as the legacy era allows it. There, structured content is an object, and clients refuse a whole
    /// list because of one output schema that isn't for objects.
    pub(crate) fn to_legacy(&self) -> Self {
        let is_for_objects = |schema: &RawValue| {
            let schema = serde_json::from_str::<SchemaType<'_>>(schema.get());
            schema.is_ok_and(|schema| schema.kind == Some("object"))
        };
        Self {
            output_schema: self
                .output_schema
                .clone()
                .filter(|schema| is_for_objects(schema)),
            ..self.clone()
        }
    }

    /// Returns whether a plain call fails, since the tool answers only as a task.
    pub fn requires_task(&self) -> bool {
        let execution = self.execution.as_ref();
        execution.is_some_and(|execution| execution.task_support.as_deref() == Some("required"))
    }
}
