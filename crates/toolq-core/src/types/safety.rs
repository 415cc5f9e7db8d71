//! What a tool does to the world, and whether its calls may run in parallel.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What decides whether a call is concurrency-safe, resolved from the tool and the file's rules.
#[derive(Debug, Clone, PartialEq)]
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

/// A setting that a tool has from a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSetting {
    /// The key, such as `timeout`.
    pub key: &'static str,
    /// The glob of the rule, as written.
    pub glob: String,
}

/// What a tool does to the world, in increasing order. Decides whether its calls are concurrency-safe by default, and
/// whether a call that may have run is repeated.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Only reads.
    Read,
    /// Repeating a call has no further effect.
    Idempotent,
    /// Anything else. The default.
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
        [Self::Read, Self::Idempotent, Self::Write]
            .into_iter()
            .find(|effect| effect.name() == word)
    }

    /// The name used in tools.yaml.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Idempotent => "idempotent",
            Self::Write => "write",
        }
    }
}
