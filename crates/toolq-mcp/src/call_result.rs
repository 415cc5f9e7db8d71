//! The result of `tools/call`.

use std::collections::HashMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What a tool answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// What programs may want to know about it. Keys have a prefix.
    #[serde(rename = "_meta", default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// The answer for the model, in order. A block that can't be read is an unknown one.
    #[serde(default, deserialize_with = "read_blocks")]
    pub content: Vec<ContentBlock>,
    /// The answer as JSON, as the tool's output schema describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Box<RawValue>>,
    /// The call failed, and the content says why.
    #[serde(default)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceContents {
    /// The resource's address.
    pub uri: String,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its bytes in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// What else it has.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The members of a result as they came. They aren't read yet, because the kind of the result decides whether it has
/// content.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResultMembers<'t> {
    #[serde(rename = "_meta", borrow, default, deserialize_with = "keep_raw")]
    meta: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "keep_raw")]
    content: Option<&'t RawValue>,
    #[serde(borrow)]
    structured_content: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "keep_raw")]
    is_error: Option<&'t RawValue>,
    pub(crate) result_type: Option<String>,
    #[serde(borrow)]
    pub(crate) input_requests: Option<HashMap<String, &'t RawValue>>,
    #[serde(borrow)]
    pub(crate) request_state: Option<&'t RawValue>,
}

impl CallToolResult {
    /// Reads the members that make up the result of a call.
    ///
    /// # Errors
    /// One of them has the wrong type.
    pub(crate) fn from_members(members: &ResultMembers<'_>) -> serde_json::Result<Self> {
        let read_content =
            |raw: &RawValue| read_blocks(&mut serde_json::Deserializer::from_str(raw.get()));
        let content = members.content.map(read_content).transpose()?;
        Ok(Self {
            meta: read_or_default(members.meta)?,
            content: content.unwrap_or_default(),
            structured_content: members.structured_content.map(ToOwned::to_owned),
            is_error: read_or_default(members.is_error)?,
        })
    }
}

fn read_or_default<T: DeserializeOwned + Default>(raw: Option<&RawValue>) -> serde_json::Result<T> {
    raw.map_or_else(|| Ok(T::default()), |raw| serde_json::from_str(raw.get()))
}

/// Keeps a member as it came. Unlike in an `Option`, `null` isn't a missing member.
fn keep_raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads each block alone, so that one without its parts doesn't take the others with it.
fn read_blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ContentBlock>, D::Error> {
    let blocks = Vec::<Box<RawValue>>::deserialize(deserializer)?;
    let read =
        |block: Box<RawValue>| serde_json::from_str(block.get()).unwrap_or(ContentBlock::Unknown);
    Ok(blocks.into_iter().map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client reads in two steps is what the whole says.
    #[test]
    fn the_members_of_a_result_make_up_the_same_result() {
        for json in [
            "{}",
            r#"{"content":[{"type":"text","text":"a\n\"b\""}],"isError":true}"#,
            r#"{"content":[{"text":"a","type":"text","annotations":{"x":1}}],"_meta":{"a/b":1.50}}"#,
            r#"{"content":[{"type":"te\u0078t","text":"a"},{"type":"text"},{"type":"text","text":1},3]}"#,
            r#"{"content":[{"type":"text","text":"a","text":"b"},{"type":"image","data":"AA==","mimeType":"image/png"}]}"#,
            r#"{"content":[{"type":"video","text":"a"},{"type":"resource","resource":{"uri":"x:y","text":"a"}}]}"#,
            r#"{"content":[{"text":"a","type":"image","data":"AA==","mimeType":"image/png"}]}"#,
            r#"{"content":[{"text":"a","text":"b","type":"text"}]}"#,
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
            r#"{"content":[["text","a"]]}"#,
            r#"{"content":[],"structuredContent":{"n":12345678901234567890.10},"resultType":"complete"}"#,
            r#"{"structuredContent":null,"isError":false,"more":[1]}"#,
            r#"{"content":null}"#,
            r#"{"content":"text"}"#,
            r#"{"isError":null}"#,
            r#"{"isError":"yes"}"#,
            r#"{"_meta":[]}"#,
            r#"{"content":[],"content":[]}"#,
        ] {
            let whole = serde_json::from_str::<CallToolResult>(json);
            let members = serde_json::from_str::<ResultMembers<'_>>(json);
            let result = members.and_then(|members| CallToolResult::from_members(&members));
            let describe = |result: serde_json::Result<CallToolResult>| {
                result.map(|result| format!("{result:?}")).ok()
            };
            assert_eq!(describe(result), describe(whole), "{json}");
        }
    }
}
