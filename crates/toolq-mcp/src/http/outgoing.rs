//! A message that is to be sent as an HTTP request.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::param_headers::{ParamHeaders, encode_header_value};
use crate::http::{
    METHOD_HEADER, NAME_HEADER, PROTOCOL_VERSION_HEADER, TRACEPARENT_HEADER, TRACESTATE_HEADER,
};
use crate::message::{Message, parse_messages};
use crate::protocol::{ProtocolEra, ProtocolVersion};

/// A message of a client, and what its HTTP request says about it.
#[derive(Debug, Clone)]
pub struct OutgoingMessage {
    /// The message, without a line break.
    pub body: Vec<u8>,
    /// The id, if the message is a request.
    pub request: Option<u64>,
    /// The method, if the message is a request or a notification.
    pub method: Option<String>,
    /// The request that the message cancels.
    pub cancels: Option<u64>,
    /// The tool that is called, its arguments, and the trace that the call is part of.
    call: Option<OutgoingCall>,
}

#[derive(Debug, Clone, Deserialize)]
struct OutgoingCall {
    name: String,
    #[serde(default)]
    arguments: Box<RawValue>,
    #[serde(default, rename = "_meta")]
    meta: TraceMeta,
}

/// What the proxies and servers on the way of a request read in its headers.
#[derive(Debug, Clone, Default, Deserialize)]
struct TraceMeta {
    traceparent: Option<String>,
    tracestate: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CanceledParams {
    request_id: u64,
}

impl OutgoingMessage {
    /// Splits what [`ClientSession::take_output`](crate::client::ClientSession::take_output) returned.
    pub fn split(output: &[u8]) -> Vec<Self> {
        let lines = output.split(|byte| *byte == b'\n');
        lines
            .filter(|line| !line.is_empty())
            .map(Self::read)
            .collect()
    }

    fn read(line: &[u8]) -> Self {
        let mut message = Self {
            body: line.to_vec(),
            request: None,
            method: None,
            cancels: None,
            call: None,
        };
        // What a session wrote is one message.
        match parse_messages(line).unwrap_or_default().pop() {
            Some(Message::Request { id, method, params }) => {
                message.request = id.as_number();
                let params = params.filter(|_| method == "tools/call");
                message.call = params.and_then(|params| serde_json::from_str(params.get()).ok());
                message.method = Some(method.into_owned());
            }
            Some(Message::Notification { method, params }) => {
                let params = params.filter(|_| method == "notifications/cancelled");
                let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
                message.cancels = params.map(|params: CanceledParams| params.request_id);
                message.method = Some(method.into_owned());
            }
            Some(Message::Response { .. }) | None => {}
        }
        message
    }

    /// Returns the headers of the message. `agreed` is the version of the connection, once there is one. `tools` has the
    /// headers that the tools of the server ask for, by their names.
    pub fn headers(
        &self,
        agreed: Option<ProtocolVersion>,
        tools: &HashMap<String, ParamHeaders>,
    ) -> Vec<(String, String)> {
        let method = self.method.as_deref();
        let version = match method {
            // The legacy handshake has its version in the body alone.
            Some("initialize") => return Vec::new(),
            Some("server/discover") => Some(ProtocolVersion::LATEST),
            _ => agreed,
        };
        let Some(version) = version else {
            return Vec::new();
        };
        let mut headers = vec![(
            PROTOCOL_VERSION_HEADER.to_owned(),
            version.as_str().to_owned(),
        )];
        if let Some(OutgoingCall { meta, .. }) = &self.call {
            let trace = [
                (TRACEPARENT_HEADER, &meta.traceparent),
                (TRACESTATE_HEADER, &meta.tracestate),
            ];
            let trace = trace
                .into_iter()
                .filter_map(|(name, value)| Some((name, value.clone()?)));
            headers.extend(trace.map(|(name, value)| (name.to_owned(), value)));
        }
        if version.era() == ProtocolEra::Legacy {
            return headers;
        }
        if let Some(method) = method {
            headers.push((METHOD_HEADER.to_owned(), method.to_owned()));
        }
        if let Some(OutgoingCall {
            name, arguments, ..
        }) = &self.call
        {
            let value = encode_header_value(name).into_owned();
            headers.push((NAME_HEADER.to_owned(), value));
            let params = tools.get(name);
            headers.extend(
                params
                    .into_iter()
                    .flat_map(|tool| tool.of_arguments(arguments)),
            );
        }
        headers
    }
}
