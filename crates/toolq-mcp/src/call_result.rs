//! The result of `tools/call`.

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

/// Reads each block alone, so that one without its parts doesn't take the others with it.
fn read_blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ContentBlock>, D::Error> {
    let blocks = Vec::<Box<RawValue>>::deserialize(deserializer)?;
    let read =
        |block: &RawValue| serde_json::from_str(block.get()).unwrap_or(ContentBlock::Unknown);
    Ok(blocks.iter().map(|block| read(block)).collect())
}
