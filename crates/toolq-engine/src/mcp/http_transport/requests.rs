//! The requests of a connection, with the headers that its server needs.

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Body, Method, Request};

use super::HttpTransport;
use crate::http::SendGuard;
use toolq_mcp::ProtocolEra;
use toolq_mcp::http::{
    OutgoingMessage, PROTOCOL_VERSION_HEADER, SESSION_ID_HEADER, TRACEPARENT_HEADER,
    TRACESTATE_HEADER,
};

impl HttpTransport {
    /// Builds the request that carries a message. `guard` is marked before its first byte can leave.
    pub(super) fn build_request(
        &self,
        message: &OutgoingMessage,
        guard: Option<&SendGuard>,
    ) -> Request {
        let mut request = self.endpoint.request(Method::POST);
        let headers = request.headers_mut();
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let has_own_trace = headers.contains_key(TRACEPARENT_HEADER);
        for (name, value) in message.headers(self.version, &self.param_headers) {
            // A trace in tools.yaml is meant.
            if has_own_trace && matches!(&*name, TRACEPARENT_HEADER | TRACESTATE_HEADER) {
                continue;
            }
            // Both were checked or encoded, so nothing is left out here.
            if let (Ok(name), Ok(value)) =
                (name.parse::<HeaderName>(), HeaderValue::from_str(&value))
            {
                headers.insert(name, value);
            }
        }
        let begins_session = matches!(
            message.method.as_deref(),
            Some("initialize" | "server/discover")
        );
        if let Some(id) = self.session_id.as_ref().filter(|_| !begins_session) {
            headers.insert(SESSION_ID_HEADER, id.clone());
        }
        let body = message.body.clone();
        *request.body_mut() = Some(match guard {
            Some(guard) => guard.wrap_body(body.into()),
            None => Body::from(body),
        });
        request
    }

    /// Returns the request for the rest of a stream, which exists only in the legacy era, after the handshake.
    pub(super) fn build_resumption(&self) -> Option<Request> {
        let version = self.version?;
        if version.era() != ProtocolEra::Legacy {
            return None;
        }
        let mut request = self.endpoint.request(Method::GET);
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let version = HeaderValue::from_static(version.as_str());
        headers.insert(PROTOCOL_VERSION_HEADER, version);
        if let Some(id) = &self.session_id {
            headers.insert(SESSION_ID_HEADER, id.clone());
        }
        Some(request)
    }
}
