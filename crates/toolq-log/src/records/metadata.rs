//! The metadata of each type of record, as a reader finds it. The members that are written are those of `fields`; what
//! a newer toolq adds is passed over.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use toolq_core::os::Process;
use toolq_core::types::Tokens;

/// Of a `session`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "docs/session-log.md says it")]
pub struct SessionStart {
    pub toolq: String,
    pub format: Format,
    pub tools: ToolsFile,
    #[serde(default)]
    pub input_sha256: Option<String>,
    pub cwd: String,
    #[serde(default)]
    pub root: Option<String>,
    pub jobs: usize,
    pub pid: u32,
    /// When that process started, in clock ticks since the system did.
    #[serde(default)]
    pub pid_started: Option<u64>,
    /// Which start of the system that was.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// The session that began the task which this one resumes.
    #[serde(default)]
    pub resumes: Option<Uuid>,
    /// How many sessions have worked on the task, this one included.
    #[serde(default)]
    pub epoch: Option<u32>,
}

impl SessionStart {
    /// Who wrote it.
    pub fn process(&self) -> Process {
        Process {
            pid: self.pid,
            started: self.pid_started,
            boot_id: self.boot_id.clone(),
        }
    }
}

/// The format of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "docs/session-log.md says it")]
pub struct Format {
    pub major: u32,
    pub minor: u32,
}

/// The tools of a session.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "docs/session-log.md says it")]
pub struct ToolsFile {
    pub path: String,
    pub sha256: String,
}

/// Content of a `tool_call`.
#[derive(Debug, Clone, Deserialize)]
pub struct LoggedCallContent {
    /// The tool that was asked for.
    pub name: String,
    /// What is executed; `None` where what came was no object.
    pub input: Option<Box<RawValue>>,
    /// The id of the call, where its metadata has a part of it only.
    #[serde(default)]
    pub id: Option<String>,
}

/// Metadata of a `tool_call`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "docs/session-log.md says it")]
pub struct Call {
    pub tool_use_id: String,
    pub turn: usize,
    pub position: usize,
    pub batch: Option<usize>,
    pub concurrency_safe: Option<bool>,
    pub reason: Option<String>,
    pub input_sha256: Option<String>,
    #[serde(default)]
    pub tool_name: String,
    /// Of the tool's definition.
    #[serde(default)]
    pub tool_sha256: Option<String>,
    #[serde(default)]
    pub input_before_coercion: Option<Box<RawValue>>,
    #[serde(default)]
    pub input_fault: Option<String>,
}

/// Metadata of a `tool_start`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "docs/session-log.md says it")]
pub struct Start<'r> {
    #[serde(borrow)]
    pub tool_use_id: Cow<'r, str>,
    #[serde(borrow)]
    pub tool_name: Cow<'r, str>,
    pub attempt: u32,
    #[serde(borrow)]
    pub idempotency_key: Cow<'r, str>,
    #[serde(borrow)]
    pub effect: Cow<'r, str>,
    /// The agent that started to work on the call.
    #[serde(default)]
    pub agent: Option<String>,
}

/// Metadata of a `probe_end`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "docs/session-log.md says it")]
pub struct ProbeEnd<'r> {
    #[serde(borrow)]
    pub finding: Cow<'r, str>,
}

/// Metadata of a `model_response`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "docs/session-log.md says it")]
pub struct ModelResponse {
    pub turn: usize,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub usage: Tokens,
    #[serde(default)]
    pub masked: bool,
}

/// Metadata of a `tool_result`, `tool_skipped` or `tool_in_doubt`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "docs/session-log.md says it")]
pub struct CallEnd<'r> {
    #[serde(borrow)]
    pub tool_use_id: Cow<'r, str>,
    #[serde(borrow)]
    pub tool_name: Cow<'r, str>,
    pub is_error: bool,
    #[serde(borrow)]
    pub status: Cow<'r, str>,
    pub duration_ms: u64,
    pub attempts: u32,
    #[serde(default)]
    pub exit: Option<i32>,
    #[serde(default)]
    pub signal: Option<i32>,
    #[serde(default)]
    pub http_status: Option<u16>,
    #[serde(default)]
    pub bytes: Option<u64>,
    #[serde(default)]
    pub cut_bytes: Option<u64>,
    #[serde(default)]
    pub saved: Option<String>,
    #[serde(default)]
    pub lossy: Option<bool>,
    #[serde(default)]
    pub limit: Option<String>,
    #[serde(default)]
    pub leftovers: Option<u32>,
    /// The agent whose own budget is used up.
    #[serde(default)]
    pub budget_of: Option<String>,
}

impl CallEnd<'_> {
    /// Whether the call was ended with its run.
    pub(crate) fn is_cut_short(&self) -> bool {
        is_cut_short(&self.status) && self.budget_of.is_none()
    }
}

/// Metadata of a `describe_start` or a `describe_end`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "docs/session-log.md says it")]
pub struct Asked {
    pub tool_name: String,
    #[serde(default)]
    pub status: Option<String>,
    #[serde(default)]
    pub duration_ms: u64,
    #[serde(default)]
    pub error: Option<String>,
}

/// The statuses of a call that may not run.
pub(crate) const REJECTED: [&str; 8] = [
    "unknown_tool",
    "invalid_input",
    "invalid_arguments",
    "path_outside_root",
    "duplicate_id",
    "truncated",
    "too_deep",
    "not_concurrency_safe",
];

/// Whether a call of this status was rejected: nothing ran.
pub(crate) fn is_rejected(status: &str) -> bool {
    REJECTED.contains(&status)
}

/// Whether a call of this status was ended with its run.
pub fn is_cut_short(status: &str) -> bool {
    matches!(status, "interrupted" | "over_budget")
}

/// What an agent used, in the metadata of its `tool_result`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AgentUsed {
    /// Only of an agent.
    #[serde(default)]
    pub agent_name: Option<String>,
    #[serde(default)]
    pub turns_used: u64,
    #[serde(default)]
    pub tool_calls_made: u64,
    #[serde(default)]
    pub corrections: u64,
    #[serde(default)]
    pub done: Option<bool>,
    #[serde(default)]
    pub usage: BTreeMap<String, Tokens>,
    #[serde(default)]
    pub lost: BTreeMap<String, Tokens>,
}

/// Metadata of a `resolve`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "docs/session-log.md says it")]
pub struct Resolved {
    pub tool_use_id: String,
    pub tool_name: String,
    pub done: bool,
    #[serde(default)]
    pub is_error: bool,
    #[serde(default)]
    pub note: Option<String>,
}
