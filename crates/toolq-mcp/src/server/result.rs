//! What the server sends: the members of its results, and the parameters of its notifications.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::http::ParamHeaders;
use crate::protocol::{Implementation, ProtocolEra, ProtocolVersion};
use crate::server::request::{Elicitation, InputRequests, input_requests};
use crate::tool::{CallToolResult, ContentBlock, Tool};

/// How long clients may keep lists, in milliseconds. The catalog may be replaced while the server runs, and clients aren't
/// told, so it takes them at most this long to see the new list.
const LIST_TTL_MS: u64 = 60_000;

/// Result of `initialize`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeResult<'a> {
    protocol_version: &'static str,
    capabilities: ServerCapabilities,
    server_info: &'a Implementation,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
}

/// Result of `server/discover`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiscoverResult<'a> {
    supported_versions: [&'static str; 1],
    capabilities: ServerCapabilities,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    #[serde(flatten)]
    modern: ModernMembers<'a>,
    #[serde(flatten)]
    cache: CacheMembers,
}

/// Result of `tools/list`.
#[derive(Serialize)]
pub(crate) struct ListToolsResult<'a> {
    tools: &'a [Tool],
    #[serde(flatten)]
    modern: Option<ModernMembers<'a>>,
    #[serde(flatten)]
    cache: Option<CacheMembers>,
}

/// Result of `tools/call`.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallToolAnswer<'a> {
    content: &'a [ContentBlock],
    structured_content: Option<&'a RawValue>,
    is_error: bool,
    result_type: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "CallResultMeta::is_empty")]
    meta: CallResultMeta<'a>,
}

/// Result of `tools/call` that asks for something before there can be an answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InputRequiredResult<'a> {
    result_type: &'static str,
    input_requests: InputRequests<'a>,
    request_state: &'a str,
    #[serde(rename = "_meta")]
    meta: ResultMeta<'a>,
}

/// `_meta` of a call's result.
#[derive(Serialize)]
struct CallResultMeta<'a> {
    #[serde(flatten)]
    of_era: Option<ResultMeta<'a>>,
    #[serde(flatten)]
    of_result: &'a Map<String, Value>,
}

impl CallResultMeta<'_> {
    fn is_empty(&self) -> bool {
        self.of_era.is_none() && self.of_result.is_empty()
    }
}

/// `{"tools": {}}`: there are tools. Without `listChanged`, no notification tells clients that the list has changed.
#[derive(Default, Serialize)]
struct ServerCapabilities {
    tools: ToolsCapability,
}

#[derive(Default, Serialize)]
struct ToolsCapability {}

/// What every result of the modern era has.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModernMembers<'a> {
    result_type: &'static str,
    #[serde(rename = "_meta")]
    meta: ResultMeta<'a>,
}

#[derive(Serialize)]
struct ResultMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: &'a Implementation,
}

/// How long a result may be kept, and by whom.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CacheMembers {
    ttl_ms: u64,
    cache_scope: &'static str,
}

/// Parameters of `notifications/cancelled` for a request of the server.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WithdrawnParams {
    pub(crate) request_id: u64,
}

/// Parameters of `notifications/progress`.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressParams<'a> {
    pub(crate) progress_token: &'a RawValue,
    pub(crate) progress: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<&'a str>,
}

impl<'a> ModernMembers<'a> {
    fn new(catalog: &'a ToolCatalog) -> Self {
        Self {
            result_type: "complete",
            meta: ResultMeta {
                server_info: catalog.server(),
            },
        }
    }

    fn for_version(version: ProtocolVersion, catalog: &'a ToolCatalog) -> Option<Self> {
        (version.era() == ProtocolEra::Modern).then(|| Self::new(catalog))
    }
}

impl<'a> InputRequiredResult<'a> {
    pub(crate) fn new(
        catalog: &'a ToolCatalog,
        question: &'a Elicitation,
        request_state: &'a str,
    ) -> Self {
        Self {
            result_type: "input_required",
            input_requests: input_requests(question),
            request_state,
            meta: ResultMeta {
                server_info: catalog.server(),
            },
        }
    }
}

impl CacheMembers {
    fn new() -> Self {
        Self {
            ttl_ms: LIST_TTL_MS,
            cache_scope: "private",
        }
    }
}

impl<'a> InitializeResult<'a> {
    pub(crate) fn new(version: ProtocolVersion, catalog: &'a ToolCatalog) -> Self {
        Self {
            protocol_version: version.as_str(),
            capabilities: ServerCapabilities::default(),
            server_info: catalog.server(),
            instructions: catalog.instructions(),
        }
    }
}

impl<'a> DiscoverResult<'a> {
    pub(crate) fn new(catalog: &'a ToolCatalog) -> Self {
        Self {
            supported_versions: [ProtocolVersion::LATEST.as_str()],
            capabilities: ServerCapabilities::default(),
            instructions: catalog.instructions(),
            modern: ModernMembers::new(catalog),
            cache: CacheMembers::new(),
        }
    }
}

impl<'a> ListToolsResult<'a> {
    pub(crate) fn new(version: ProtocolVersion, catalog: &'a ToolCatalog) -> Self {
        let modern = ModernMembers::for_version(version, catalog);
        Self {
            tools: catalog.tools(version.era()),
            cache: modern.is_some().then(CacheMembers::new),
            modern,
        }
    }
}

impl<'a> CallToolAnswer<'a> {
    /// Structured content exists since 2025-06-18. Until 2026-07-28 it had to be an object.
    pub(crate) fn new(
        version: ProtocolVersion,
        catalog: &'a ToolCatalog,
        result: &'a CallToolResult,
    ) -> Self {
        let is_allowed = |json: &&RawValue| match version {
            ProtocolVersion::V2024_11_05 | ProtocolVersion::V2025_03_26 => false,
            ProtocolVersion::V2025_06_18 | ProtocolVersion::V2025_11_25 => {
                json.get().starts_with('{')
            }
            ProtocolVersion::V2026_07_28 => true,
        };
        let modern = ModernMembers::for_version(version, catalog);
        Self {
            content: &result.content,
            structured_content: result.structured_content.as_deref().filter(is_allowed),
            is_error: result.is_error,
            result_type: modern.as_ref().map(|members| members.result_type),
            meta: CallResultMeta {
                of_era: modern.map(|members| members.meta),
                of_result: &result.meta,
            },
        }
    }
}

/// What a server tells every client about itself.
#[derive(Debug)]
pub struct ToolCatalog {
    server: Implementation,
    instructions: Option<String>,
    tools: Vec<Tool>,
    /// The tools as clients of the legacy era may see them.
    legacy_tools: Vec<Tool>,
    /// Where each tool is, by its name.
    pub(crate) positions: HashMap<String, usize>,
    /// What [`param_headers`](Self::param_headers) returns, once it is needed.
    known_param_headers: OnceLock<HashMap<String, ParamHeaders>>,
}

impl ToolCatalog {
    /// Creates a catalog of `tools`, which are listed in this order. `instructions` tells the model how to use them.
    pub fn new(server: Implementation, instructions: Option<String>, tools: Vec<Tool>) -> Self {
        Self {
            positions: (tools.iter().enumerate())
                .map(|(position, tool)| (tool.name.clone(), position))
                .collect(),
            server,
            instructions,
            legacy_tools: tools.iter().map(Tool::to_legacy).collect(),
            tools,
            known_param_headers: OnceLock::new(),
        }
    }

    /// Returns the headers that the tools ask for over HTTP, by the names of the tools.
    ///
    /// # Errors
    /// The name of a tool that can't be called over HTTP, and why.
    pub fn param_headers(&self) -> Result<HashMap<String, ParamHeaders>, (String, String)> {
        let headers = self.tools.iter().map(|tool| {
            let headers = ParamHeaders::from_schema(&tool.input_schema);
            let headers = headers.map_err(|why| (tool.name.clone(), why))?;
            Ok((tool.name.clone(), headers))
        });
        headers.collect()
    }

    /// Returns the headers that the tools require over HTTP. It is empty if a tool can't be called over HTTP.
    pub fn known_param_headers(&self) -> &HashMap<String, ParamHeaders> {
        self.known_param_headers
            .get_or_init(|| self.param_headers().unwrap_or_default())
    }

    /// Returns the server's name and version.
    pub(crate) fn server(&self) -> &Implementation {
        &self.server
    }

    /// Returns the instructions for the model.
    pub(crate) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Returns the tools in order, for clients of an era.
    pub(crate) fn tools(&self, era: ProtocolEra) -> &[Tool] {
        match era {
            ProtocolEra::Legacy => &self.legacy_tools,
            ProtocolEra::Modern => &self.tools,
        }
    }

    /// Returns the tool of this name, as clients of an era may see it.
    pub(crate) fn tool(&self, name: &str, era: ProtocolEra) -> Option<&Tool> {
        self.tools(era).get(*self.positions.get(name)?)
    }
}
