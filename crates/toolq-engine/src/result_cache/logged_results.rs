//! Results of earlier runs, which the log has.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::SystemTime;

use toolq_core::schedule::CallAccess;
use toolq_core::types::{
    AcceptedCall, CacheHit, CallEnding, CallLocks, CaptureStats, Outcome, ResultContent,
};

/// Results of earlier runs in the log of this one.
pub trait LoggedResults: Debug + Send + Sync {
    /// Returns what was left of them when this run began.
    fn list(&self) -> Vec<LoggedResult>;

    /// Returns the digest that identifies a call, made from its tool, `root`, the variables that it uses, its input,
    /// and these locks. `None` if it can't be made.
    fn digest(&self, accepted: &AcceptedCall, locks: Option<&CallLocks>) -> Option<String>;

    /// Reads the result with this digest. `None` if it can't be read anymore.
    fn load(&self, digest: &str) -> Option<ResultContent>;
}

/// A result of an earlier run.
#[derive(Debug, Clone)]
pub struct LoggedResult {
    /// Identifies the call.
    pub digest: String,
    /// The id of the call.
    pub tool_use_id: String,
    /// When the call ended.
    pub taken: SystemTime,
    /// What the call read. `None` if that isn't known.
    pub locks: Option<CallLocks>,
}

/// Those of the results that nothing in this run may have changed.
#[derive(Debug, Default)]
pub(super) struct RemainingResults {
    logged: Option<Arc<dyn LoggedResults>>,
    by_digest: HashMap<String, LoggedResult>,
}

impl RemainingResults {
    pub(super) fn new(logged: Option<Arc<dyn LoggedResults>>) -> Self {
        let list = logged.as_ref().map(|logged| logged.list());
        let results = list.into_iter().flatten();
        Self {
            by_digest: results
                .map(|result| (result.digest.clone(), result))
                .collect(),
            logged,
        }
    }

    /// Returns the digest of a call whose result may be found by later runs.
    pub(super) fn digest(&self, accepted: &AcceptedCall, access: &CallAccess) -> Option<String> {
        accepted.tool.cache.filter(|cache| cache.over_runs)?;
        let logged = self.logged.as_ref()?;
        logged.digest(accepted, access.locks.as_ref())
    }

    /// Returns the result of an earlier run, if there is one that isn't too old, and wasn't taken in the future: then the clock
    /// was set back, and its age isn't known.
    pub(super) fn find(
        &mut self,
        now: SystemTime,
        accepted: &AcceptedCall,
        access: &CallAccess,
    ) -> Option<Outcome> {
        let max_age = accepted.tool.cache?.max_age;
        if self.by_digest.is_empty() {
            return None;
        }
        let digest = self.digest(accepted, access)?;
        let result = self.by_digest.get(&digest)?;
        let age = now.duration_since(result.taken).ok();
        let Some(age) = age.filter(|age| *age <= max_age) else {
            self.by_digest.remove(&digest);
            return None;
        };
        let content = self.logged.as_ref()?.load(&digest)?;
        let hit = CacheHit {
            age,
            tool_use_id: result.tool_use_id.clone(),
        };
        Some(Outcome::Succeeded {
            captured: CaptureStats {
                cached: Some(Box::new(hit)),
                ..CaptureStats::default()
            },
            content,
            ending: CallEnding::Answered,
            for_clients: None,
        })
    }

    /// Keeps only the results of reads with such an access.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&CallAccess) -> bool) {
        self.by_digest.retain(|_, result| {
            is_kept(&CallAccess {
                safe: true,
                locks: result.locks.clone(),
            })
        });
    }
}

/// Returns whether the log has all of a result: not what was made of it for clients of MCP, and no notice about processes that
/// the call has left.
pub(super) fn is_loggable(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Succeeded {
            captured,
            for_clients,
            ..
        } => for_clients.is_none() && captured.killed_leftovers == 0,
        _ => false,
    }
}
