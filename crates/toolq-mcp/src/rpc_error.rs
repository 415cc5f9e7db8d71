//! Errors of JSON-RPC, with the codes that MCP adds.

use std::fmt;

use redact::Mask;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::protocol::ProtocolVersion;

/// How much of the data of an error is shown.
const MAX_DATA_CHARS: usize = 1_000;

/// The answer to a request that couldn't be served.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RpcError {
    /// What kind of error it is: one of the constants below, or one of the server's own.
    pub code: i64,
    /// A short description.
    #[serde(default)]
    pub message: String,
    /// What else the sender says about the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// The message isn't JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The message isn't a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The request's parameters can't be used, or name something unknown.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The receiver doesn't know the method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// An HTTP header says something else than the request's body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a capability that the client didn't declare.
    pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i64 = -32021;
    /// The server doesn't speak the version of the request. `data.supported` lists those that it does speak.
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Reads an error. One in another form is kept as text, with the code 0: it ends its request all the same.
    pub(crate) fn from_raw(raw: &RawValue) -> Self {
        #[derive(Deserialize)]
        struct ErrorMessage {
            message: String,
        }
        serde_json::from_str(raw.get()).unwrap_or_else(|_| {
            let message = serde_json::from_str(raw.get()).map(|error: ErrorMessage| error.message);
            let message = message.or_else(|_| serde_json::from_str(raw.get()));
            Self::new(0, message.unwrap_or_else(|_| raw.get().to_owned()))
        })
    }

    /// Says which versions a request can name, to a client that named another one: the same as `server/discover` does, as the
    /// conformance suite asks.
    pub(crate) fn unsupported_version(requested: &str) -> Self {
        let supported = [ProtocolVersion::LATEST.as_str()];
        let data = serde_json::json!({"supported": supported, "requested": requested});
        Self {
            data: serde_json::value::to_raw_value(&data).ok(),
            ..Self::new(
                Self::UNSUPPORTED_PROTOCOL_VERSION,
                format!("unsupported protocol version {requested}"),
            )
        }
    }

    /// Returns the error without secrets.
    #[must_use]
    pub(crate) fn masked(self, mask: &Mask) -> Self {
        let masked_data = |data: Box<RawValue>| {
            let masked = mask.apply_to_json(data.get()).into_owned();
            RawValue::from_string(masked).ok()
        };
        Self {
            code: self.code,
            message: mask.apply(&self.message).into_owned(),
            data: self.data.and_then(masked_data),
        }
    }

    /// Returns whether only a server of the modern era answers so.
    pub(crate) fn is_modern(&self) -> bool {
        matches!(
            self.code,
            Self::HEADER_MISMATCH
                | Self::MISSING_REQUIRED_CLIENT_CAPABILITY
                | Self::UNSUPPORTED_PROTOCOL_VERSION
        )
    }

    /// Returns the versions in `data.supported`.
    pub(crate) fn supported_versions(&self) -> Vec<String> {
        #[derive(Deserialize)]
        struct SupportedVersions {
            supported: Vec<String>,
        }
        let data = self.data.as_deref().map(RawValue::get).unwrap_or_default();
        serde_json::from_str(data)
            .map_or_else(|_| Vec::new(), |data: SupportedVersions| data.supported)
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.message {
            "" => "no message",
            message => message,
        })?;
        // Some servers give no code, or one that isn't a number.
        if self.code != 0 {
            write!(f, " (error {})", self.code)?;
        }
        match self.data.as_deref().map(RawValue::get) {
            None | Some("null") => Ok(()),
            Some(data) => {
                let text = serde_json::from_str::<String>(data);
                let text = text.as_deref().unwrap_or(data);
                let shown: String = text.chars().take(MAX_DATA_CHARS).collect();
                let more = if shown.len() < text.len() { "…" } else { "" };
                write!(f, ": {shown}{more}")
            }
        }
    }
}
