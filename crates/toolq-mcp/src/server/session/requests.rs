//! Serves the requests of the client: the handshake, the list of tools, and the calls, which are handed out.

use serde_json::value::RawValue;

use crate::message::RequestId;
use crate::outbox::EmptyObject;
use crate::protocol::{ProtocolEra, ProtocolVersion};
use crate::rpc_error::RpcError;
use crate::server::elicitation::{ElicitationForm, InputResponse};
use crate::server::event::{ServedCallId, ServerEvent, ToolCall};
use crate::server::request::{
    CallToolParams, CommonParams, InitializeParams, ListToolsParams, RequestMeta,
    read_optional_params, read_params,
};
use crate::server::result::{DiscoverResult, InitializeResult, ListToolsResult};
use crate::server::session::{LegacyClient, ServerSession, UnansweredCall};

/// Who makes a call, and what with.
struct CallOrigin {
    version: ProtocolVersion,
    progress_token: Option<Box<RawValue>>,
    client_name: Option<String>,
    elicitation: Option<ElicitationForm>,
    /// Its `traceparent` and `tracestate`.
    trace: Option<(String, Option<String>)>,
}

impl ServerSession {
    pub(super) fn on_request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<ServerEvent> {
        match self.serve_request(id, method, params) {
            Ok(event) => event,
            Err(error) => {
                self.outbox.error(Some(id), error.masked(&self.mask));
                None
            }
        }
    }

    /// Answers a request, or hands out the call that it makes.
    ///
    /// # Errors
    /// Why the request can't be served.
    fn serve_request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Option<ServerEvent>, RpcError> {
        let catalog = self.catalog.current();
        if method == "initialize" {
            let params: InitializeParams = read_params(params)?;
            let version = ProtocolVersion::from_date(&params.protocol_version)
                .filter(|version| version.era() == ProtocolEra::Legacy)
                .unwrap_or(ProtocolVersion::LATEST_LEGACY);
            self.legacy_client = Some(LegacyClient {
                version,
                name: params.client_name(),
                elicitation: ElicitationForm::of_client(version, Some(&params.capabilities)),
            });
            let result = InitializeResult::new(version, &catalog);
            self.outbox.result(id, result);
            return Ok(None);
        }
        let common: CommonParams<'_> = read_optional_params(params)?;
        let meta = common.meta.unwrap_or_default();
        let modern = meta.version()?;
        match (method, modern.or(self.legacy_version())) {
            ("ping", _) if modern.is_none() => self.outbox.result(id, EmptyObject {}),
            ("server/discover", _) if modern.is_some() => {
                self.outbox.result(id, DiscoverResult::new(&catalog));
            }
            ("tools/list", Some(version)) => {
                let params: ListToolsParams = read_optional_params(params)?;
                if let Some(cursor) = params.cursor {
                    let message = format!("unknown cursor {cursor:?}: the list has one page");
                    return Err(RpcError::new(RpcError::INVALID_PARAMS, message));
                }
                let result = ListToolsResult::new(version, &catalog);
                self.outbox.result(id, result);
            }
            ("tools/call", Some(version)) => {
                let params = read_params(params)?;
                let origin = self.call_origin(version, &meta);
                return self.begin_call(id, origin, params).map(Some);
            }
            ("tools/list" | "tools/call" | "server/discover", _) => {
                let message = "_meta has no io.modelcontextprotocol/protocolVersion, and no initialize came before";
                return Err(RpcError::new(RpcError::INVALID_PARAMS, message));
            }
            _ => {
                let message = format!("this server doesn't serve {method}");
                return Err(RpcError::new(RpcError::METHOD_NOT_FOUND, message));
            }
        }
        Ok(None)
    }

    fn call_origin(&self, version: ProtocolVersion, meta: &RequestMeta<'_>) -> CallOrigin {
        let capabilities = meta.client_capabilities();
        let legacy_client = self.legacy_client.clone();
        let (client_name, elicitation) = match (version.era(), legacy_client) {
            (ProtocolEra::Legacy, Some(client)) => (client.name, client.elicitation),
            _ => (
                meta.client_name(),
                ElicitationForm::of_client(version, capabilities.as_ref()),
            ),
        };
        CallOrigin {
            version,
            progress_token: meta.progress_token.map(ToOwned::to_owned),
            client_name,
            elicitation,
            trace: meta.trace(),
        }
    }

    fn begin_call(
        &mut self,
        id: &RequestId,
        origin: CallOrigin,
        params: CallToolParams,
    ) -> Result<ServerEvent, RpcError> {
        let CallOrigin {
            version,
            progress_token,
            client_name,
            elicitation,
            trace,
        } = origin;
        let catalog = self.catalog.current();
        let Some(tool) = catalog.tool(&params.name, version.era()) else {
            let message = format!("unknown tool {}", params.name);
            return Err(RpcError::new(RpcError::INVALID_PARAMS, message));
        };
        let expects_structured_content = tool.output_schema.is_some();
        if self.find_call(id.as_json()).is_some() {
            let message = "a call with this id is still running";
            return Err(RpcError::new(RpcError::INVALID_REQUEST, message));
        }
        let call = ServedCallId(self.next_call);
        self.next_call += 1;
        let wants_progress = progress_token.is_some();
        self.running.insert(
            call,
            UnansweredCall {
                request: id.clone(),
                version,
                progress_token,
                progress: None,
            },
        );
        Ok(ServerEvent::CallTool(ToolCall {
            call,
            request_id: id.as_json().to_owned(),
            name: params.name,
            arguments: params.arguments.unwrap_or_else(empty_object),
            wants_progress,
            expects_structured_content,
            client_name,
            elicitation,
            trace,
            input_response: InputResponse::from_params(
                params.request_state,
                params.input_responses.as_ref(),
            ),
        }))
    }
}

fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_default()
}
