//! A tool: its definition, as `tools/list` has it, and the result of a call of it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

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

// The result of `tools/call`.

/// What a tool answered.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// What programs may want to know about it. Keys have a prefix.
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// The answer for the model, in order. A block that can't be read is an unknown one.
    pub content: Vec<ContentBlock>,
    /// The answer as JSON, as the tool's output schema describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Box<RawValue>>,
    /// The call failed, and the content says why.
    pub is_error: bool,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum ContentBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// The image in base64.
        data: String,
        /// Its media type, such as `image/png`.
        mime_type: String,
        /// What else it has, such as `annotations`.
        #[serde(flatten)]
        more: Map<String, Value>,
    },
    /// A sound.
    Audio {
        /// The sound in base64.
        data: String,
        /// Its media type, such as `audio/wav`.
        mime_type: String,
        /// What else it has, such as `annotations`.
        #[serde(flatten)]
        more: Map<String, Value>,
    },
    /// A resource that the client may read.
    ResourceLink {
        /// The resource's address.
        uri: String,
        /// The resource's name.
        #[serde(default)]
        name: String,
        /// Its media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// What else it has, such as `annotations`.
        #[serde(flatten)]
        more: Map<String, Value>,
    },
    /// A resource with its contents.
    Resource {
        /// The resource.
        resource: ResourceContents,
        /// What else it has, such as `annotations`.
        #[serde(flatten)]
        more: Map<String, Value>,
    },
    /// A kind of block that this version doesn't know.
    #[serde(other)]
    Unknown,
}

/// The contents of a resource: either text or a blob.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceContents {
    /// The resource's address.
    pub uri: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// Its bytes in base64.
    pub blob: Option<String>,
    /// What else it has.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The members of a result as they came. They aren't read yet, because the kind of the result decides whether it has
/// content. `null` is a missing member: some languages write an empty list so.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResultMembers<'t> {
    #[serde(rename = "_meta", borrow)]
    meta: Option<&'t RawValue>,
    content: Option<&'t RawValue>,
    structured_content: Option<&'t RawValue>,
    is_error: Option<&'t RawValue>,
    pub(crate) result_type: Option<String>,
    pub(crate) input_requests: Option<HashMap<String, &'t RawValue>>,
    pub(crate) request_state: Option<&'t RawValue>,
}

impl CallToolResult {
    /// Reads the members that make up the result of a call, as far as they can be read: the call was answered, and a detail must not
    /// put it in doubt. What isn't in members that say what they are is the text of `json`, all of it.
    pub(crate) fn from_members(members: &ResultMembers<'_>, json: &RawValue) -> Self {
        let meta = members.meta.map(RawValue::get);
        let is_error = members.is_error.map_or("", RawValue::get);
        Self {
            meta: meta.map_or_else(Map::new, |meta| {
                serde_json::from_str(meta).unwrap_or_default()
            }),
            content: match members.content {
                Some(content) => read_blocks(content),
                None if members.structured_content.is_none() && has_own_members(json) => {
                    let text = json.get().to_owned();
                    vec![ContentBlock::Text { text }]
                }
                None => Vec::new(),
            },
            structured_content: members.structured_content.map(ToOwned::to_owned),
            is_error: is_error.trim_matches('"').eq_ignore_ascii_case("true"),
        }
    }
}

/// Whether a result has members that the protocol doesn't know, such as `toolResult`.
fn has_own_members(json: &RawValue) -> bool {
    let members: HashMap<String, &RawValue> = serde_json::from_str(json.get()).unwrap_or_default();
    let known = [
        "_meta",
        "content",
        "structuredContent",
        "isError",
        "resultType",
    ];
    members.keys().any(|name| !known.contains(&name.as_str()))
}

/// Reads blocks, or what some servers send instead: one block, or its text. One without its parts doesn't take the others with it.
fn read_blocks(content: &RawValue) -> Vec<ContentBlock> {
    if let Ok(text) = serde_json::from_str(content.get()) {
        return vec![ContentBlock::Text { text }];
    }
    let blocks: Vec<&RawValue> =
        serde_json::from_str(content.get()).unwrap_or_else(|_| vec![content]);
    let read =
        |block: &RawValue| serde_json::from_str(block.get()).unwrap_or(ContentBlock::Unknown);
    blocks.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_of_a_result_is_kept() {
        let blocks = |json: &str| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            let members = serde_json::from_str::<ResultMembers<'_>>(json);
            let result = members.map(|members| CallToolResult::from_members(&members, raw));
            result
                .ok()
                .map(|result| (result.content.len(), result.is_error))
        };
        for (json, expected) in [
            ("{}", Some((0, false))),
            (r#"{"toolResult":{"order":7}}"#, Some((1, false))),
            (
                r#"{"text":"order 7 made","isError":false}"#,
                Some((1, false)),
            ),
            (
                r#"{"content":[{"type":"text","text":"a"}],"isError":true}"#,
                Some((1, true)),
            ),
            (
                r#"{"content":[{"type":"text"},{"type":"video"},3,["text","a"]]}"#,
                Some((4, false)),
            ),
            (
                r#"{"content":null,"structuredContent":null,"isError":null,"_meta":null}"#,
                Some((0, false)),
            ),
            (r#"{"content":"text"}"#, Some((1, false))),
            (
                r#"{"content":{"type":"text","text":"a"}}"#,
                Some((1, false)),
            ),
            (r#"{"isError":"yes"}"#, Some((0, false))),
            (r#"{"isError":"True"}"#, Some((0, true))),
            (r#"{"_meta":[]}"#, Some((0, false))),
            (r#"{"content":[],"content":[]}"#, None),
        ] {
            assert_eq!(blocks(json), expected, "{json}");
        }
    }
}
