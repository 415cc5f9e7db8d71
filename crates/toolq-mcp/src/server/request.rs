//! What clients send: the parameters of their requests and notifications.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::protocol::{Implementation, ProtocolEra, ProtocolVersion};
use crate::rpc_error::RpcError;

/// The requests of the modern era that a server serves.
pub(crate) const MODERN_METHODS: [&str; 3] = ["server/discover", "tools/list", "tools/call"];

/// What all requests may have.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CommonParams<'t> {
    #[serde(rename = "_meta", borrow)]
    pub(crate) meta: Option<RequestMeta<'t>>,
}

/// `_meta` of a request.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RequestMeta<'t> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) protocol_version: Option<String>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow)]
    client_capabilities: Option<&'t RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo", borrow)]
    client_info: Option<&'t RawValue>,
    #[serde(rename = "progressToken", borrow)]
    pub(crate) progress_token: Option<&'t RawValue>,
    #[serde(borrow)]
    traceparent: Option<&'t RawValue>,
    #[serde(borrow)]
    tracestate: Option<&'t RawValue>,
}

/// Parameters of `initialize`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeParams {
    pub(crate) protocol_version: String,
    #[serde(default)]
    pub(crate) capabilities: Value,
    #[serde(default)]
    client_info: Value,
}

/// Parameters of `tools/list`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ListToolsParams {
    pub(crate) cursor: Option<String>,
}

/// Parameters of `tools/call`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallToolParams {
    pub(crate) name: String,
    pub(crate) arguments: Option<Box<RawValue>>,
    /// The answers to what an earlier result asked for.
    pub(crate) input_responses: Option<Value>,
    /// What that result had as its state.
    pub(crate) request_state: Option<String>,
}

/// Parameters of `notifications/cancelled`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CanceledParams<'t> {
    #[serde(borrow)]
    pub(crate) request_id: &'t RawValue,
    pub(crate) reason: Option<String>,
}

impl RequestMeta<'_> {
    /// Returns the version of a modern request; `None` for a legacy one.
    ///
    /// # Errors
    /// What the request lacks, or a version that isn't supported.
    pub(crate) fn version(&self) -> Result<Option<ProtocolVersion>, RpcError> {
        let Some(date) = &self.protocol_version else {
            return Ok(None);
        };
        let version = ProtocolVersion::from_date(date)
            .filter(|version| version.era() == ProtocolEra::Modern)
            .ok_or_else(|| RpcError::unsupported_version(date))?;
        if self.client_capabilities.is_none() {
            let message = "_meta has no io.modelcontextprotocol/clientCapabilities";
            return Err(RpcError::new(RpcError::INVALID_PARAMS, message));
        }
        Ok(Some(version))
    }

    /// Returns what the client says that it can do.
    pub(crate) fn client_capabilities(&self) -> Option<Value> {
        serde_json::from_str(self.client_capabilities?.get()).ok()
    }

    /// Returns the client's `traceparent`, and the `tracestate` that belongs to it. Anything but texts is ignored.
    pub(crate) fn trace(&self) -> Option<(String, Option<String>)> {
        let text = |value: Option<&RawValue>| serde_json::from_str(value?.get()).ok();
        Some((text(self.traceparent)?, text(self.tracestate)))
    }

    /// Returns the name of the client, if it has one.
    pub(crate) fn client_name(&self) -> Option<String> {
        let info = serde_json::from_str(self.client_info?.get());
        info.ok().map(|client: Implementation| client.name)
    }
}

impl InitializeParams {
    /// Returns the name of the client, if it has one.
    pub(crate) fn client_name(&self) -> Option<String> {
        self.client_info["name"].as_str().map(str::to_owned)
    }
}

/// Reads parameters that must be there.
pub(crate) fn read_params<'t, P: Deserialize<'t>>(
    params: Option<&'t RawValue>,
) -> Result<P, RpcError> {
    let json = params.map_or("{}", RawValue::get);
    serde_json::from_str(json).map_err(|error| {
        let message = format!("the parameters can't be read: {error}");
        RpcError::new(RpcError::INVALID_PARAMS, message)
    })
}

/// Reads parameters that may be left out.
pub(crate) fn read_optional_params<'t, P: Deserialize<'t> + Default>(
    params: Option<&'t RawValue>,
) -> Result<P, RpcError> {
    match params {
        Some(_) => read_params(params),
        None => Ok(P::default()),
    }
}
