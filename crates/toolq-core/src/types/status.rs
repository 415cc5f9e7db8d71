//! The words for how a call ended.

use std::borrow::Cow;
use std::cmp::Ordering;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use strum::{AsRefStr, Display, EnumString, IntoStaticStr, VariantNames};

/// How a call ended, in one word: the word that the session log, the events and the reports use.
#[derive(AsRefStr, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, SerializeDisplay, DeserializeFromStr)]
#[non_exhaustive]
pub enum Status {
    /// It succeeded.
    #[default]
    Ok,
    /// The program exited with an unsuccessful code or a signal, or the response had an error status.
    Failed,
    /// Its output doesn't match what the tool declares.
    BadOutput,
    /// It exceeded a time limit.
    Timeout,
    /// The program couldn't be started.
    NotStarted,
    /// The request got no complete response.
    Unavailable,
    /// It may have taken effect, and no complete result confirms it.
    InDoubt,
    /// An agent failed to give an answer.
    AgentFailed,
    /// The tool has no backing.
    NoBacking,
    /// The session log refused the start record.
    LogRefused,
    /// It was stopped because another call of its batch failed.
    #[strum(to_string = "cancelled")]
    Canceled,
    /// It was stopped because the run stopped.
    Interrupted,
    /// A budget of the run or of an agent is used up.
    OverBudget,
    /// It was never started.
    NotExecuted,
    /// Its tool failed too many times in a row.
    Paused,
    /// What names it names a call with another tool or input.
    Conflict,
    /// It is running already.
    IsRunning,
    /// It needs an approval that wasn't given.
    NeedsApproval,
    /// Its approval was requested and denied.
    Denied,
    /// A user resolved it as done after it was in doubt.
    Resolved,
    /// A panic in toolq itself.
    InternalError,
    /// Rejected: no tool has this name.
    UnknownTool,
    /// Rejected: the input violates the tool's schema, or the tool can't use a value where its template puts it.
    InvalidInput,
    /// Rejected: the arguments are not a JSON object.
    InvalidArguments,
    /// Rejected: the response was cut off inside this call.
    Truncated,
    /// Rejected: the response with this call was refused, failed or canceled.
    ResponseRefused,
    /// Rejected: the conversation has a result that may be that of this call, but doesn't say so.
    MisplacedResult,
    /// Rejected: a path leads outside the root.
    PathOutsideRoot,
    /// Rejected: the call would nest agents too deep.
    TooDeep,
    /// Rejected: the calling agent runs concurrently with other calls, and this call isn't concurrency-safe.
    NotConcurrencySafe,
    /// A word that a newer toolq wrote.
    #[strum(default, transparent)]
    Other(Box<str>),
}

impl Status {
    /// Returns the word.
    pub fn as_str(&self) -> &str {
        self.as_ref()
    }

    /// Whether the call was rejected before anything ran.
    pub fn is_rejected(&self) -> bool {
        matches!(
            self,
            Self::UnknownTool
                | Self::InvalidInput
                | Self::InvalidArguments
                | Self::Truncated
                | Self::ResponseRefused
                | Self::MisplacedResult
                | Self::PathOutsideRoot
                | Self::TooDeep
                | Self::NotConcurrencySafe
        )
    }

    /// Whether the call was answered without being started. A budget can also run out while a call is running, so its status
    /// doesn't say.
    pub fn is_skipped(&self) -> bool {
        matches!(
            self,
            Self::NotExecuted
                | Self::Paused
                | Self::NeedsApproval
                | Self::LogRefused
                | Self::Conflict
                | Self::IsRunning
        )
    }

    /// Whether the call ran to completion, successfully or not.
    pub fn is_completed(&self) -> bool {
        matches!(
            self,
            Self::Ok | Self::Failed | Self::BadOutput | Self::AgentFailed | Self::Resolved
        )
    }

    /// Whether the call was stopped because its run ended, by a signal or a budget.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Interrupted | Self::OverBudget)
    }

    /// Whether the call was stopped for a reason outside of it.
    pub fn is_stopped_externally(&self) -> bool {
        self.is_interrupted() || *self == Self::Canceled
    }

    /// Returns all words that this toolq writes.
    fn known_words() -> &'static [&'static str] {
        Self::VARIANTS.split_last().map_or(&[], |(_, known)| known)
    }

    /// Returns the words for people: `bad output`.
    pub fn label(&self) -> String {
        self.as_str().replace('_', " ")
    }
}

impl PartialEq<&str> for Status {
    fn eq(&self, word: &&str) -> bool {
        self.as_str() == *word
    }
}

/// Alphabetical, so that lists for people have a stable order.
impl Ord for Status {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for Status {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl JsonSchema for Status {
    fn schema_name() -> Cow<'static, str> {
        "Status".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How a call ended, in one word. A newer toolq may write others.",
            "type": "string",
            "examples": Self::known_words(),
        })
    }
}

/// How a call ended, in a word for people. Its [`Status`] says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum OutcomeKind {
    /// It succeeded.
    Ok,
    /// It ran or was about to, and didn't succeed.
    Failed,
    /// It was rejected: it can't be run as it is.
    Rejected,
    /// It was answered without running. A later run may start it.
    Skipped,
    /// It may have had its effect, and nothing says so.
    #[strum(to_string = "in doubt")]
    InDoubt,
    /// It has no end yet, or its end isn't known.
    Unfinished,
}

impl OutcomeKind {
    /// Returns the word.
    pub fn label(self) -> &'static str {
        self.into()
    }

    /// Returns whether the call counts as a failure: it failed, or was rejected.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Rejected)
    }

    /// Returns the word with what says more: `failed: exit 3`. A cause that is the word itself is left out.
    pub fn with_cause(self, cause: &str) -> String {
        let label = self.label();
        if cause.is_empty() || cause == label {
            label.to_owned()
        } else {
            format!("{label}: {cause}")
        }
    }
}

/// What the end of a call says about its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Reach {
    /// Nothing happened: it wasn't started or sent, or was turned away unseen.
    Nothing,
    /// What was called says that it failed: by its exit code, or a status of 4xx but 408.
    Refused,
    /// It failed in a way that leaves its effect open: a timeout, a signal, another status.
    Open,
    /// It was done.
    Done,
}

impl Reach {
    /// The name used in the log.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the reach with this name. One that a newer toolq added leaves the effect open.
    pub fn from_name(name: &str) -> Self {
        name.parse().unwrap_or(Self::Open)
    }
}

/// What a probe found out about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
        name.parse().unwrap_or(Self::Unknown)
    }

    /// The name used in the log.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_as_the_status_that_is_written_as_it() {
        for word in Status::known_words() {
            let status: Status = serde_json::from_str(&format!("\"{word}\"")).unwrap();
            assert!(!matches!(status, Status::Other(_)), "{word}");
            assert_eq!(
                serde_json::to_string(&status).unwrap(),
                format!("\"{word}\"")
            );
        }
    }

    #[test]
    fn a_word_of_a_newer_toolq_stays_readable() {
        let status = Status::from("teleported");
        assert_eq!(status, Status::Other("teleported".into()));
        assert_eq!(status.to_string(), "teleported");
        assert!(!status.is_completed() && !status.is_rejected());
    }

    /// A restored result counts as completed exactly if it did in the run in which it arose.
    #[test]
    fn an_agent_that_failed_and_a_resolved_call_are_completed() {
        assert!(Status::AgentFailed.is_completed() && Status::Resolved.is_completed());
        assert!(!Status::Timeout.is_completed() && !Status::InDoubt.is_completed());
    }
}
