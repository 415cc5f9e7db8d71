//! What the server sends: the members of its results, and the parameters of its notifications.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::http::ParamHeaders;
use crate::protocol::{Implementation, ProtocolEra, ProtocolVersion};
use crate::server::request::{ELICITATION_METHOD, Elicitation, INPUT_KEY};
use crate::tool::{CallToolResult, ContentBlock, Tool};

/// How long clients may keep lists, in milliseconds. The catalog may be replaced while the server runs, and clients aren't
/// told, so it takes them at most this long to see the new list.
const LIST_TTL_MS: u64 = 60_000;

/// Where `_meta` says who the server is.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Result of `tools/list`.
#[derive(Serialize)]
pub(crate) struct ListToolsResult<'a> {
    tools: &'a [Tool],
    #[serde(flatten)]
    modern: Map<String, Value>,
}

/// Result of `tools/call`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallToolAnswer<'a> {
    content: &'a [ContentBlock],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    is_error: bool,
    #[serde(flatten)]
    other: Map<String, Value>,
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

/// Returns the result of `initialize`.
pub(crate) fn initialize_result(
    version: ProtocolVersion,
    catalog: &ToolCatalog,
) -> Map<String, Value> {
    let mut result = introduction("protocolVersion", json!(version.as_str()), catalog);
    result.insert("serverInfo".to_owned(), json!(catalog.server));
    result
}

/// Returns the result of `server/discover`.
pub(crate) fn discover_result(catalog: &ToolCatalog) -> Map<String, Value> {
    let versions = json!([ProtocolVersion::LATEST.as_str()]);
    let mut result = introduction("supportedVersions", versions, catalog);
    result.extend(modern_members("complete", catalog));
    result.extend(cache_members());
    result
}

/// Returns the result of `tools/call` that asks for something before there can be an answer.
pub(crate) fn input_required_result(
    catalog: &ToolCatalog,
    question: &Elicitation,
    request_state: &str,
) -> Map<String, Value> {
    let request = json!({"method": ELICITATION_METHOD, "params": question});
    let mut result = modern_members("input_required", catalog);
    result.insert("inputRequests".to_owned(), json!({INPUT_KEY: request}));
    result.insert("requestState".to_owned(), json!(request_state));
    result
}

/// What both handshakes say. Without `listChanged`, no notification tells clients that the list has changed.
fn introduction(version_key: &str, version: Value, catalog: &ToolCatalog) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert(version_key.to_owned(), version);
    members.insert("capabilities".to_owned(), json!({"tools": {}}));
    if let Some(instructions) = &catalog.instructions {
        members.insert("instructions".to_owned(), json!(instructions));
    }
    members
}

/// What every result of the modern era has.
fn modern_members(result_type: &str, catalog: &ToolCatalog) -> Map<String, Value> {
    let meta = json!({SERVER_INFO: catalog.server});
    Map::from_iter([
        ("resultType".to_owned(), json!(result_type)),
        ("_meta".to_owned(), meta),
    ])
}

/// How long a result may be kept, and by whom.
fn cache_members() -> [(String, Value); 2] {
    [
        ("ttlMs".to_owned(), json!(LIST_TTL_MS)),
        ("cacheScope".to_owned(), json!("private")),
    ]
}

impl<'a> ListToolsResult<'a> {
    pub(crate) fn new(version: ProtocolVersion, catalog: &'a ToolCatalog) -> Self {
        let mut modern = Map::new();
        if version.era() == ProtocolEra::Modern {
            modern.extend(modern_members("complete", catalog));
            modern.extend(cache_members());
        }
        Self {
            tools: catalog.tools(version.era()),
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
        let (mut other, mut meta) = (Map::new(), Map::new());
        if version.era() == ProtocolEra::Modern {
            other.insert("resultType".to_owned(), json!("complete"));
            meta.insert(SERVER_INFO.to_owned(), json!(catalog.server));
        }
        meta.extend(result.meta.clone());
        if !meta.is_empty() {
            other.insert("_meta".to_owned(), meta.into());
        }
        Self {
            content: &result.content,
            structured_content: result.structured_content.as_deref().filter(is_allowed),
            is_error: result.is_error,
            other,
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
