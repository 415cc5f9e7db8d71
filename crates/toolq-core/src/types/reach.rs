//! How far a call got: what is known of its effect.

/// What the end of a call says about its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Nothing happened: it wasn't started or sent, or was turned away unseen.
    Nothing,
    /// What was called says that it failed: by its exit code, or a status of 4xx.
    Refused,
    /// It failed in a way that leaves its effect open: a timeout, a signal, a server's error.
    Open,
    /// It was done.
    Done,
}

impl Reach {
    /// The name used in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Refused => "refused",
            Self::Open => "open",
            Self::Done => "done",
        }
    }

    /// Returns the reach with this name. One that a newer toolq added leaves the effect open.
    pub fn from_name(name: &str) -> Self {
        match name {
            "nothing" => Self::Nothing,
            "refused" => Self::Refused,
            "done" => Self::Done,
            _ => Self::Open,
        }
    }
}
