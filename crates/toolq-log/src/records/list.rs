//! Metadata of a `list_start` and a `list_end`.

use std::borrow::Cow;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::records::recorded_text::recorded_text;
use crate::records::to_millis;
use redact::Mask;
use toolq_core::types::UnlockedServer;

/// Metadata of a `list_start`: a server that tools.lock doesn't have is asked for its tools. A `list_end` also has the answer.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListRecord<'a> {
    /// The key in tools.yaml.
    #[serde(borrow)]
    pub server: Cow<'a, str>,
    /// How long it took, with the server's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// How many tools of the server can be called from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// The digest of what the server announced.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Cow<'a, str>>,
    /// Why none of its tools can be called.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
}

impl<'a> ListRecord<'a> {
    pub(crate) fn start(server: &'a UnlockedServer, mask: &Mask) -> Self {
        Self {
            server: recorded_text(&server.server.name, mask),
            duration_ms: None,
            tools: None,
            sha256: None,
            error: None,
        }
    }

    pub(crate) fn end(server: &'a UnlockedServer, duration: Duration, mask: &Mask) -> Self {
        let listing = server.listing();
        let answer = listing.and_then(Result::ok);
        Self {
            duration_ms: Some(to_millis(duration)),
            tools: answer.map(|listing| listing.tools.len()),
            sha256: answer.map(|listing| Cow::Owned(listing.lock.digest())),
            error: listing
                .and_then(Result::err)
                .map(|why| recorded_text(why, mask)),
            ..Self::start(server, mask)
        }
    }
}
