use std::sync::Arc;

use crate::output::Failure;
use crate::session::log_request::{Intent, is_frozen};
use redact::Mask;
use toolq_core::types::{Begun, Call, Checked, Effect, Memory, Past, Verdict};
use toolq_log::{History, Recollection};

/// What is known of the calls of a run from before it.
pub struct Earlier {
    history: Option<Arc<History>>,
    mask: Arc<Mask>,
    /// Nothing may run.
    frozen: bool,
    /// All calls that will come were compared with it.
    compared: bool,
}

impl Earlier {
    pub fn new(history: Option<Arc<History>>, intent: &Intent<'_>, compared: bool) -> Self {
        let frozen = history.as_ref();
        let frozen = frozen.is_some_and(|history| is_frozen(history, intent));
        Self {
            history,
            mask: Arc::clone(intent.mask),
            frozen,
            compared,
        }
    }

    /// The same for what agents do.
    pub fn memory(&self) -> Option<Arc<dyn Memory>> {
        let history = self.history.as_ref()?;
        let recollection = Recollection::new(Arc::clone(history), Arc::clone(&self.mask));
        Some(Arc::new(recollection))
    }

    /// Those of `calls` of which today's tools have to say what becomes. None where nothing may run: the log has another
    /// call in the place of one, or tools.yaml is not as it was.
    pub fn open<'c>(&self, calls: &'c [Call]) -> Vec<&'c Call> {
        let Some(history) = &self.history else {
            return calls.iter().collect();
        };
        let conflicts = |call: &Call| !self.compared && history.check(call, &self.mask).is_err();
        if self.frozen || calls.iter().any(conflicts) {
            return Vec::new();
        }
        let open = calls.iter().filter(|call| history.is_open(call));
        open.collect()
    }

    /// What is known of a call. `started` says that the input itself, a log, tells of its start and of no end.
    ///
    /// # Errors
    /// The log has another call in its place, its answer can't be read any more, or it is missing and nothing may run.
    pub fn past(&self, checked: &Checked, started: bool) -> Result<Past, Failure> {
        if let Some(history) = &self.history {
            let known = if self.compared {
                history.knows(&checked.call)
            } else {
                history.check(&checked.call, &self.mask)?
            };
            if self.frozen && history.is_missing(checked) {
                let message = "tools.yaml, or the folder in which its commands run, is not as it was when this run began, and calls are still to run";
                return Err(Failure::usage(message)
                    .with_hint("`--accept-changes` runs them by the tools of today"));
            }
            if known {
                return Ok(history.past(checked)?);
            }
        }
        Ok(if started { orphan(checked) } else { Past::None })
    }
}

/// A call that another log tells of: it was started there, and nobody knows how it ended.
fn orphan(checked: &Checked) -> Past {
    let writes = match &checked.verdict {
        Verdict::Accepted(accepted) => accepted.tool.effect == Effect::Write,
        Verdict::Rejected(_) => true,
    };
    let begun = |attempts| Begun {
        attempts,
        key: None,
        doubtful: false,
    };
    match &checked.verdict {
        _ if !writes => Past::Started(begun(0)),
        Verdict::Accepted(accepted) if accepted.probe.is_some() => Past::Unsure(begun(0)),
        _ => Past::InDoubt(begun(1)),
    }
}
