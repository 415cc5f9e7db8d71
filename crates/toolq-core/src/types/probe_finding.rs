//! What a tool's probe finds out: whether a call that an earlier run started has taken effect.

/// What a probe found out about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeFinding {
    /// The call took effect. The probe's output is its result.
    Done,
    /// The call didn't take effect.
    NotDone,
    /// The probe couldn't find out.
    Unknown,
}

impl ProbeFinding {
    /// Returns the finding with this name. A name that a newer toolq added is read as [`Unknown`](Self::Unknown).
    pub fn from_name(name: &str) -> Self {
        match name {
            "done" => Self::Done,
            "not_done" => Self::NotDone,
            _ => Self::Unknown,
        }
    }

    /// The name used in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NotDone => "not_done",
            Self::Unknown => "unknown",
        }
    }
}
