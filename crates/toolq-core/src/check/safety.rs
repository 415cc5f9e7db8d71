//! Whether a call may run beside others: the first that speaks of the tool's own word, a rule, and its effect.

use crate::types::{DecidedBy, Safety};

/// The decision and who made it; `matches` tells whether the executed input matches the schema of `when`, and is asked
/// only where there is one.
pub(crate) fn decided(safety: &Safety, matches: impl FnOnce() -> bool) -> (bool, DecidedBy) {
    match safety {
        Safety::Declared(safe) => (*safe, DecidedBy::Declared),
        Safety::When(_) => (matches(), DecidedBy::When),
        Safety::Rule(rule) => (rule.safe, DecidedBy::Rule(rule.glob.clone())),
        Safety::Effect(safe) => (*safe, DecidedBy::Effect),
        Safety::Default => (false, DecidedBy::Default),
    }
}
