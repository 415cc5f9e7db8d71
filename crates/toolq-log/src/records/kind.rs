//! The types of records.

use std::fmt;

/// The type of a record. A log may contain types that a newer toolq added.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A run begins.
    Session,
    /// A turn begins.
    Turn,
    /// A model responded to an agent.
    ModelResponse,
    /// A call was requested.
    ToolCall,
    /// A call was approved or denied.
    Approval,
    /// An attempt at a call is about to start.
    ToolStart,
    /// A call has its result.
    ToolResult,
    /// A call was answered without running.
    ToolSkipped,
    /// A call was started, and whether it had its effect is unknown.
    ToolInDoubt,
    /// The result of an attempt came after the call was answered without it.
    LateResult,
    /// A tool's probe is about to check whether a call that was started did its work.
    ProbeStart,
    /// The probe ended.
    ProbeEnd,
    /// A tool's `describe` program is about to run.
    DescribeStart,
    /// The `describe` program ended.
    DescribeEnd,
    /// The tools of a server that tools.lock doesn't have are about to be requested.
    ListStart,
    /// The request for the tools ended.
    ListEnd,
    /// A server is ready for calls, or has ended before it was.
    ServerStart,
    /// A server has ended.
    ServerEnd,
    /// The tools file was read again.
    ToolsChange,
    /// A user stated what happened to a call in doubt.
    Resolve,
    /// The torn end of the file was set aside.
    Recovered,
    /// The run ended.
    SessionEnd,
    /// A type that this toolq doesn't know.
    Other(Box<str>),
}

impl RecordKind {
    /// Converts the name used in the file.
    pub fn from_name(name: &str) -> Self {
        match name {
            "session" => Self::Session,
            "turn" => Self::Turn,
            "model_response" => Self::ModelResponse,
            "tool_call" => Self::ToolCall,
            "approval" => Self::Approval,
            "tool_start" => Self::ToolStart,
            "tool_result" => Self::ToolResult,
            "tool_skipped" => Self::ToolSkipped,
            "tool_in_doubt" => Self::ToolInDoubt,
            "late_result" => Self::LateResult,
            "probe_start" => Self::ProbeStart,
            "probe_end" => Self::ProbeEnd,
            "describe_start" => Self::DescribeStart,
            "describe_end" => Self::DescribeEnd,
            "list_start" => Self::ListStart,
            "list_end" => Self::ListEnd,
            "server_start" => Self::ServerStart,
            "server_end" => Self::ServerEnd,
            "tools_change" => Self::ToolsChange,
            "resolve" => Self::Resolve,
            "recovered" => Self::Recovered,
            "session_end" => Self::SessionEnd,
            other => Self::Other(other.into()),
        }
    }

    /// Returns the name used in the file.
    pub fn name(&self) -> &str {
        match self {
            Self::Session => "session",
            Self::Turn => "turn",
            Self::ModelResponse => "model_response",
            Self::ToolCall => "tool_call",
            Self::Approval => "approval",
            Self::ToolStart => "tool_start",
            Self::ToolResult => "tool_result",
            Self::ToolSkipped => "tool_skipped",
            Self::ToolInDoubt => "tool_in_doubt",
            Self::LateResult => "late_result",
            Self::ProbeStart => "probe_start",
            Self::ProbeEnd => "probe_end",
            Self::DescribeStart => "describe_start",
            Self::DescribeEnd => "describe_end",
            Self::ListStart => "list_start",
            Self::ListEnd => "list_end",
            Self::ServerStart => "server_start",
            Self::ServerEnd => "server_end",
            Self::ToolsChange => "tools_change",
            Self::Resolve => "resolve",
            Self::Recovered => "recovered",
            Self::SessionEnd => "session_end",
            Self::Other(name) => name,
        }
    }

    /// Whether the last run is unfinished after a record of this type, given whether it was before. `recovered` and
    /// `resolve` records may follow the end of a run and don't belong to any.
    pub fn leaves_run_open(&self, was_open: bool) -> bool {
        match self {
            Self::SessionEnd => false,
            Self::Recovered | Self::Resolve => was_open,
            _ => true,
        }
    }

    /// Whether a record of this type ends a call.
    pub fn ends_call(&self) -> bool {
        matches!(
            self,
            Self::ToolResult | Self::ToolSkipped | Self::ToolInDoubt
        )
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
