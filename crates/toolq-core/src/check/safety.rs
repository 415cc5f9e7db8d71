//! Decides whether a call is concurrency-safe. The first of these that applies decides: the tool's own
//! `concurrency_safe`, a matching rule, the tool's `effect`.

use std::sync::Arc;

use crate::types::{SafetyPolicy, SafetySource};

/// Returns whether the call is concurrency-safe, and what decided it. `matches` returns whether the executed input
/// matches the `when` schema; it's only called if there is one.
pub(crate) fn decide_safety(
    safety: &SafetyPolicy,
    matches: impl FnOnce() -> bool,
) -> (bool, SafetySource) {
    match safety {
        SafetyPolicy::Declared(safe) => (*safe, SafetySource::Declared),
        SafetyPolicy::When(_) => (matches(), SafetySource::When),
        SafetyPolicy::Rule(rule) => (rule.safe, SafetySource::Rule(Arc::clone(&rule.glob))),
        SafetyPolicy::Effect(safe) => (*safe, SafetySource::Effect),
        SafetyPolicy::Default => (false, SafetySource::Default),
    }
}
