use std::fmt;

/// The type of a record: what it says. A log may hold types that a newer toolq added.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A run begins.
    Session,
    /// A turn begins.
    Turn,
    /// A model answered an agent.
    ModelResponse,
    /// A call was asked for.
    ToolCall,
    /// An attempt of a call is about to start.
    ToolStart,
    /// A call has its result.
    ToolResult,
    /// A call was answered without having been started.
    ToolSkipped,
    /// A call was started, and nobody knows whether it had its effect.
    ToolInDoubt,
    /// A tool's probe is about to be asked whether a call that was started did its work.
    ProbeStart,
    /// The probe has answered.
    ProbeEnd,
    /// A tool that describes itself is about to be asked what it takes.
    DescribeStart,
    /// It was asked.
    DescribeEnd,
    /// Somebody said what became of a call in doubt.
    Resolve,
    /// The end of the file was torn and was set aside.
    Recovered,
    /// The run came to its end.
    SessionEnd,
    /// One that this toolq doesn't know.
    Other(Box<str>),
}

impl Kind {
    /// The type of this name.
    pub fn of(name: &str) -> Self {
        match name {
            "session" => Self::Session,
            "turn" => Self::Turn,
            "model_response" => Self::ModelResponse,
            "tool_call" => Self::ToolCall,
            "tool_start" => Self::ToolStart,
            "tool_result" => Self::ToolResult,
            "tool_skipped" => Self::ToolSkipped,
            "tool_in_doubt" => Self::ToolInDoubt,
            "probe_start" => Self::ProbeStart,
            "probe_end" => Self::ProbeEnd,
            "describe_start" => Self::DescribeStart,
            "describe_end" => Self::DescribeEnd,
            "resolve" => Self::Resolve,
            "recovered" => Self::Recovered,
            "session_end" => Self::SessionEnd,
            other => Self::Other(other.into()),
        }
    }

    /// Its name in the file.
    pub fn name(&self) -> &str {
        match self {
            Self::Session => "session",
            Self::Turn => "turn",
            Self::ModelResponse => "model_response",
            Self::ToolCall => "tool_call",
            Self::ToolStart => "tool_start",
            Self::ToolResult => "tool_result",
            Self::ToolSkipped => "tool_skipped",
            Self::ToolInDoubt => "tool_in_doubt",
            Self::ProbeStart => "probe_start",
            Self::ProbeEnd => "probe_end",
            Self::DescribeStart => "describe_start",
            Self::DescribeEnd => "describe_end",
            Self::Resolve => "resolve",
            Self::Recovered => "recovered",
            Self::SessionEnd => "session_end",
            Self::Other(name) => name,
        }
    }

    /// Whether the last run has no end once a record of this type is there; `before` says it of those before. What is noted
    /// behind a run's end is part of no run.
    pub fn leaves_open(&self, before: bool) -> bool {
        match self {
            Self::SessionEnd => false,
            Self::Recovered | Self::Resolve => before,
            _ => true,
        }
    }

    /// Whether it tells how a call ended.
    pub fn ends_call(&self) -> bool {
        matches!(
            self,
            Self::ToolResult | Self::ToolSkipped | Self::ToolInDoubt
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
