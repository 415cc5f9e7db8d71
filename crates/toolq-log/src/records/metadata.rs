//! The metadata of each record type, as it is read. `fields` defines the members that are written; members that a newer
//! toolq adds are ignored.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use toolq_core::os::ProcessIdentity;
use toolq_core::types::{ReportedUsage, Status};

/// Metadata of a `session`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "documented in docs/session-log.md")]
pub struct SessionRecord {
    pub toolq: String,
    pub format: FormatVersion,
    pub tools: ToolsFileRef,
    #[serde(default)]
    pub input_sha256: Option<String>,
    pub cwd: String,
    #[serde(default)]
    pub root: Option<String>,
    pub jobs: usize,
    pub pid: u32,
    /// When that process started, in clock ticks since boot.
    #[serde(default)]
    pub pid_started: Option<u64>,
    /// The boot ID of the system at that time.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// The session that began the task, if this session resumes one.
    #[serde(default)]
    pub resumes: Option<Uuid>,
    /// How many sessions have worked on the task, including this one.
    #[serde(default)]
    pub epoch: Option<u32>,
}

impl SessionRecord {
    /// Returns the process that ran the session.
    pub fn process(&self) -> ProcessIdentity {
        ProcessIdentity {
            pid: self.pid,
            start_ticks: self.pid_started,
            boot_id: self.boot_id.clone(),
        }
    }
}

/// The format version of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "documented in docs/session-log.md")]
pub struct FormatVersion {
    pub major: u32,
    pub minor: u32,
}

/// The tools file of a session.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "documented in docs/session-log.md")]
pub struct ToolsFileRef {
    pub path: String,
    pub sha256: String,
}

/// Content of a `tool_call`.
#[derive(Debug, Clone, Deserialize)]
pub struct LoggedCallContent {
    /// The requested tool.
    pub name: String,
    /// The input that is executed; `None` if the request had no JSON object in its place.
    pub input: Option<Box<RawValue>>,
    /// The full id of the call, if the metadata has only part of it.
    #[serde(default)]
    pub id: Option<String>,
}

/// Metadata of a `tool_call`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "documented in docs/session-log.md")]
pub struct CallRecord {
    pub tool_use_id: String,
    pub turn: usize,
    pub position: usize,
    pub batch: Option<usize>,
    pub concurrency_safe: Option<bool>,
    pub reason: Option<String>,
    pub input_sha256: Option<String>,
    #[serde(default)]
    pub tool_name: String,
    /// SHA-256 of the tool's definition.
    #[serde(default)]
    pub tool_sha256: Option<String>,
    #[serde(default)]
    pub input_before_coercion: Option<Box<RawValue>>,
    #[serde(default)]
    pub input_fault: Option<String>,
}

/// Metadata of a `tool_start`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "documented in docs/session-log.md")]
pub struct StartRecord<'r> {
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
#[expect(missing_docs, reason = "documented in docs/session-log.md")]
pub struct ProbeEndRecord<'r> {
    #[serde(borrow)]
    pub finding: Cow<'r, str>,
}

/// Metadata of a `model_response`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "documented in docs/session-log.md")]
pub struct ModelResponseRecord {
    pub turn: usize,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub usage: ReportedUsage,
    #[serde(default)]
    pub masked: bool,
}

/// Metadata of a `tool_result`, `tool_skipped` or `tool_in_doubt`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "documented in docs/session-log.md")]
pub struct CallEndRecord<'r> {
    #[serde(borrow)]
    pub tool_use_id: Cow<'r, str>,
    #[serde(borrow)]
    pub tool_name: Cow<'r, str>,
    pub is_error: bool,
    pub status: Status,
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

impl CallEndRecord<'_> {
    /// Returns whether the call was ended because its run ended.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.status.is_interrupted() && self.budget_of.is_none()
    }
}

/// Metadata of a `describe_start` or a `describe_end`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "documented in docs/session-log.md")]
pub struct DescribeRecord {
    pub tool_name: String,
    #[serde(default)]
    pub status: Option<Status>,
    #[serde(default)]
    pub duration_ms: u64,
    #[serde(default)]
    pub error: Option<String>,
}

/// What an agent used, from the metadata of its `tool_result`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AgentUsageRecord {
    /// Present only in the result of an agent.
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
    pub usage: BTreeMap<String, ReportedUsage>,
    #[serde(default)]
    pub lost: BTreeMap<String, ReportedUsage>,
}

/// Metadata of a `resolve`.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "documented in docs/session-log.md")]
pub struct ResolveRecord {
    pub tool_use_id: String,
    pub tool_name: String,
    pub done: bool,
    #[serde(default)]
    pub is_error: bool,
    #[serde(default)]
    pub note: Option<String>,
}
