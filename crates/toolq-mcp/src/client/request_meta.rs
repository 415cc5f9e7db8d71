//! `_meta` of the client's requests.

use serde::Serialize;

use crate::outbox::EmptyObject;
use crate::protocol::{Implementation, ProtocolEra, ProtocolVersion};

/// `_meta` of a request.
#[derive(Debug, Default, Serialize)]
pub(crate) struct RequestMeta<'a> {
    #[serde(
        rename = "io.modelcontextprotocol/protocolVersion",
        skip_serializing_if = "Option::is_none"
    )]
    protocol_version: Option<&'static str>,
    #[serde(
        rename = "io.modelcontextprotocol/clientInfo",
        skip_serializing_if = "Option::is_none"
    )]
    client_info: Option<&'a Implementation>,
    #[serde(
        rename = "io.modelcontextprotocol/clientCapabilities",
        skip_serializing_if = "Option::is_none"
    )]
    client_capabilities: Option<EmptyObject>,
    #[serde(rename = "progressToken", skip_serializing_if = "Option::is_none")]
    pub(crate) progress_token: Option<u64>,
    /// The key by which a server can recognize a repeated call. The protocol doesn't define one.
    #[serde(
        rename = "dev.toolq/idempotency-key",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) idempotency_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tracestate: Option<&'a str>,
}

/// What a call tells its server about itself. The server may ignore it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallMeta {
    /// The server may say how far the call is.
    pub wants_progress: bool,
    /// The key by which a server can tell a repeated call.
    pub idempotency_key: Option<String>,
    /// The span of the call, by the W3C recommendation Trace Context.
    pub traceparent: Option<String>,
    /// What other systems keep in the trace of that span.
    pub tracestate: Option<String>,
}

impl<'a> RequestMeta<'a> {
    /// What every request of `version` carries.
    pub(crate) fn new(version: ProtocolVersion, client: &'a Implementation) -> Self {
        if version.era() == ProtocolEra::Legacy {
            return Self::default();
        }
        Self {
            protocol_version: Some(version.as_str()),
            client_info: Some(client),
            client_capabilities: Some(EmptyObject {}),
            ..Self::default()
        }
    }

    /// Returns whether there's nothing to say.
    pub(crate) fn is_empty(&self) -> bool {
        self.protocol_version.is_none()
            && self.progress_token.is_none()
            && self.idempotency_key.is_none()
            && self.traceparent.is_none()
    }
}
