//! Sends requests, each with a number of its own.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{ClientSession, PendingCall, PendingRequest};
use crate::client::event::CallId;
use crate::client::request_meta::RequestMeta;
use crate::client::tool_list::{ListToolsParams, ToolListPages};
use crate::protocol::ProtocolVersion;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallToolParams<'a> {
    name: &'a str,
    arguments: &'a RawValue,
    /// What the server asked to have back, byte for byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a RawValue>,
    #[serde(rename = "_meta", skip_serializing_if = "RequestMeta::is_empty")]
    meta: RequestMeta<'a>,
}

impl ClientSession {
    pub(super) fn ask_for_tools(&mut self, pages: ToolListPages, cursor: Option<&str>) {
        let id = self.take_id();
        let params = ListToolsParams {
            meta: RequestMeta::new(self.request_version(), self.handshake.client()),
            cursor,
        };
        self.outbox.request(id, "tools/list", params);
        self.pending.insert(id, PendingRequest::ListTools(pages));
    }

    /// Sends the request of a call, with what the server asked to have back if it is repeated.
    pub(super) fn send_call(&mut self, call: PendingCall, request_state: Option<&RawValue>) {
        let id = self.take_id();
        let mut meta = RequestMeta::new(self.request_version(), self.handshake.client());
        meta.progress_token = call.meta.wants_progress.then_some(id);
        meta.idempotency_key = call.meta.idempotency_key.as_deref();
        meta.traceparent = call.meta.traceparent.as_deref();
        meta.tracestate = call.meta.tracestate.as_deref();
        let params = CallToolParams {
            name: &call.name,
            arguments: &call.arguments,
            request_state,
            meta,
        };
        self.outbox.request(id, "tools/call", params);
        self.pending.insert(id, PendingRequest::CallTool(call));
    }

    /// Returns the request that a call waits for.
    pub(super) fn find_request(&self, call: CallId) -> Option<u64> {
        let is_of_call = |request: &PendingRequest| matches!(request, PendingRequest::CallTool(pending) if pending.id == call);
        let mut pending = self.pending.iter();
        pending.find_map(|(id, request)| is_of_call(request).then_some(*id))
    }

    /// Returns the version of requests.
    pub(super) fn request_version(&self) -> ProtocolVersion {
        self.version.unwrap_or(ProtocolVersion::LATEST_LEGACY)
    }

    pub(super) fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }
}
