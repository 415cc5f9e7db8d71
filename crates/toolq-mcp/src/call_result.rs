//! The result of `tools/call`.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

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
/// content. `null` is a missing member: some languages write an empty list so.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResultMembers<'t> {
    #[serde(rename = "_meta", borrow)]
    meta: Option<&'t RawValue>,
    #[serde(borrow)]
    content: Option<&'t RawValue>,
    #[serde(borrow)]
    structured_content: Option<&'t RawValue>,
    #[serde(borrow)]
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
        let blocks: Vec<&RawValue> = read_or_default(members.content)?;
        // One without its parts doesn't take the others with it.
        let read =
            |block: &RawValue| serde_json::from_str(block.get()).unwrap_or(ContentBlock::Unknown);
        Ok(Self {
            meta: read_or_default(members.meta)?,
            content: blocks.into_iter().map(read).collect(),
            structured_content: members.structured_content.map(ToOwned::to_owned),
            is_error: read_or_default(members.is_error)?,
        })
    }
}

fn read_or_default<'t, T: Deserialize<'t> + Default>(
    raw: Option<&'t RawValue>,
) -> serde_json::Result<T> {
    raw.map_or_else(|| Ok(T::default()), |raw| serde_json::from_str(raw.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_of_a_result_is_kept() {
        let blocks = |json: &str| {
            let members = serde_json::from_str::<ResultMembers<'_>>(json);
            let result = members.and_then(|members| CallToolResult::from_members(&members));
            result
                .ok()
                .map(|result| (result.content.len(), result.is_error))
        };
        for (json, expected) in [
            ("{}", Some((0, false))),
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
            (r#"{"content":"text"}"#, None),
            (r#"{"isError":"yes"}"#, None),
            (r#"{"_meta":[]}"#, None),
            (r#"{"content":[],"content":[]}"#, None),
        ] {
            assert_eq!(blocks(json), expected, "{json}");
        }
    }
}
