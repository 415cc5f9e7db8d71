//! How the calls of a tool are treated: what they do to the world, which run together, need an approval, or are answered
//! without being run, and how often they start.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::SerializeDisplay;
use strum::{EnumString, IntoStaticStr};

use crate::text::format_duration;
use crate::types::template::Template;

/// What decides whether a call is concurrency-safe, resolved from the tool and the file's rules.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum SafetyPolicy {
    /// `concurrency_safe: true` or `false`.
    Declared(bool),
    /// `concurrency_safe: {when: SCHEMA}`: safe if the input matches.
    When(Value),
    /// The first rule whose glob matches the tool's name.
    Rule(SafetyRule),
    /// A declared `effect`. Only `read` is safe.
    Effect(bool),
    /// Nothing was declared, so calls are not safe.
    #[default]
    Default,
}

/// A rule that decides about concurrency safety.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafetyRule {
    /// The glob as written. Calls share it.
    pub glob: Arc<str>,
    /// Whether matching tools are concurrency-safe.
    pub safe: bool,
}

/// What a tool does to the world, in increasing order. Decides whether its calls are concurrency-safe by default, and
/// whether a call that may have run is repeated.
#[derive(Serialize, Deserialize, JsonSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Only reads.
    Read,
    /// Repeating a call has no further effect.
    Idempotent,
    /// Anything else. The default.
    #[default]
    Write,
}

/// Says whether a call may run beside others, and what decided that: `parallel by rule get_*`.
pub fn safety_text(is_safe: bool, decided_by: &dyn fmt::Display) -> String {
    let how = if is_safe { "parallel" } else { "alone" };
    format!("{how} by {decided_by}")
}

impl Effect {
    /// What a call does to the world, in a word for people.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Idempotent => "repeatable",
            Self::Write => "changes",
        }
    }

    /// Returns the effect with this name in tools.yaml, if there is one.
    pub fn from_name(word: &str) -> Option<Self> {
        word.parse().ok()
    }

    /// The name used in tools.yaml.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What decides whether a call needs an approval, resolved from the tool, the file's rules and its defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ApprovalPolicy {
    /// No call does.
    #[default]
    Never,
    /// Every call does.
    Always,
    /// Calls whose input matches this schema do.
    When(Value),
}

/// When the result of an earlier call answers a call with the same input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
#[display("cached for {}", format_duration(*max_age))]
pub struct CachePolicy {
    /// How old it may be.
    pub max_age: Duration,
}

/// Calls with the same values are the same call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OncePolicy {
    /// The inputs whose values count.
    pub names: Vec<Vec<String>>,
    /// Where they count: calls in another scope are others.
    pub scope: String,
    /// For how long they count, from the result on. `None` is for ever.
    pub expires: Option<Duration>,
}

/// The limits of a tool or a server on its calls.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct StartLimits {
    /// Maximum number of calls that run at once.
    pub max_parallel: Option<NonZeroUsize>,
    /// How often calls start.
    pub rate: Option<StartRate>,
}

/// How often calls start: `10/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display, SerializeDisplay)]
#[display("{starts}/{period}")]
pub struct StartRate {
    /// Starts in each period.
    pub starts: NonZeroU32,
    /// The period.
    pub period: RatePeriod,
}

/// The period of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, EnumString)]
pub enum RatePeriod {
    /// `s`.
    #[strum(to_string = "s")]
    Second,
    /// `m`.
    #[strum(to_string = "m")]
    Minute,
    /// `h`.
    #[strum(to_string = "h")]
    Hour,
}

impl StartLimits {
    /// Returns whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.max_parallel.is_none() && self.rate.is_none()
    }
}

impl StartRate {
    /// Returns how far two starts are apart.
    pub fn interval(&self) -> Duration {
        self.period.duration() / self.starts.get()
    }
}

impl RatePeriod {
    fn duration(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        })
    }
}

/// `at most 2 at once, 10/s`.
impl fmt::Display for StartLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(max_parallel) = self.max_parallel {
            write!(f, "at most {max_parallel} at once")?;
        }
        let Some(rate) = self.rate else {
            return Ok(());
        };
        let comma = if self.max_parallel.is_some() {
            ", "
        } else {
            ""
        };
        write!(f, "{comma}{rate}")
    }
}

/// `locks` of a tool.
#[derive(Debug, Clone, Default)]
pub struct LockTemplates {
    /// What its calls read.
    pub read: Vec<Template>,
    /// What its calls change.
    pub write: Vec<Template>,
}

/// The locks of a call. Without any, [`AcceptedCall::locks`](crate::types::AcceptedCall::locks) is `None`.
pub type CallLocks = Arc<Vec<CallLock>>;

/// A lock of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLock {
    /// The text in tools.yaml, with the values of the input.
    pub name: String,
    /// Whether others may hold it at the same time.
    pub mode: LockMode,
    /// What it is on.
    pub resource: LockedResource,
}

/// What a call does with what it locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// It reads.
    Read,
    /// It changes.
    Write,
}

/// What a lock is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockedResource {
    /// A file, or a directory with everything below it: absolute, with symbolic links resolved.
    Path(PathBuf),
    /// Whatever the author means by this text.
    Text(String),
}

/// Prefix of the name of a lock on a file.
pub(crate) const FILE_LOCK_PREFIX: &str = "file:";

impl CallLock {
    /// Returns whether two calls with these locks mustn't run at the same time.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let any_writes = self.mode == LockMode::Write || other.mode == LockMode::Write;
        any_writes && self.resource.meets(&other.resource)
    }

    /// `writes src/a.rs`.
    pub fn describe(&self) -> String {
        let name = self
            .name
            .strip_prefix(FILE_LOCK_PREFIX)
            .unwrap_or(&self.name);
        match self.mode {
            LockMode::Read => format!("reads {name}"),
            LockMode::Write => format!("writes {name}"),
        }
    }
}

impl LockedResource {
    /// Whether both are the same, or one is a directory with the other below it.
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Path(one), Self::Path(other)) => {
                one.starts_with(other) || other.starts_with(one)
            }
            (Self::Text(one), Self::Text(other)) => one == other,
            _ => false,
        }
    }
}
