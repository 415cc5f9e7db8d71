//! What the server sends: the members of its results, and the parameters of its notifications.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::call_result::{CallToolResult, ContentBlock};
use crate::protocol::{Implementation, ProtocolEra, ProtocolVersion};
use crate::server::request::{Elicitation, InputRequests, input_requests};
use crate::server::session::ToolCatalog;
use crate::tool::Tool;

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
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallToolAnswer<'a> {
    content: &'a [ContentBlock],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
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
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressParams<'a> {
    pub(crate) progress_token: &'a RawValue,
    pub(crate) progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
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
