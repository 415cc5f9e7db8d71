//! What has changed since the run that is being resumed, and which calls that blocks.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::output::CommandError;
use crate::session::log_request::LogRequest;
use toolq_core::types::{CheckedCall, ToolsConfig};
use toolq_log::{TaskHistory, ToolChange};

/// What has changed since the run that is being resumed, without `--accept-changes`.
#[derive(Clone)]
pub(super) enum ChangedContext {
    /// The root directory: nothing may run.
    Root,
    /// tools.yaml: only calls whose tools mean the same may run. Holds the current tools.
    Tools(Arc<ToolsConfig>),
}

impl ChangedContext {
    /// Compares the context in which calls last ran with that of this run.
    pub(super) fn find(history: &TaskHistory, request: &LogRequest<'_>) -> Option<Self> {
        if history.is_empty() || request.settings.accept_changes {
            None
        } else if moved_root(history, request).is_some() {
            Some(Self::Root)
        } else if history.tools_sha256() != request.setup.tools.digest {
            Some(Self::Tools(Arc::clone(&request.setup.tools)))
        } else {
            None
        }
    }

    /// Returns why a call may not run, or `None` if it may, or doesn't have to.
    pub(super) fn blocking(
        &self,
        checked: &CheckedCall,
        history: &TaskHistory,
    ) -> Option<BTreeSet<ToolChange>> {
        match self {
            Self::Root => history.needs_current_tools(checked).then(BTreeSet::new),
            Self::Tools(tools) => {
                let changes = history.changes_affecting(checked, tools);
                (!changes.is_empty()).then_some(changes)
            }
        }
    }
}

/// Calls that can't run because something has changed.
#[derive(Default)]
pub(super) struct BlockedCalls {
    /// The names of their tools.
    names: BTreeSet<String>,
    changes: BTreeSet<ToolChange>,
}

impl BlockedCalls {
    pub(super) fn add(
        &mut self,
        changed: &ChangedContext,
        checked: &CheckedCall,
        history: &TaskHistory,
    ) {
        if let Some(changes) = changed.blocking(checked, history) {
            self.names.insert(checked.call.name.to_string());
            self.changes.extend(changes);
        }
    }

    /// Returns an error if there are any.
    pub(super) fn require_none(
        &self,
        history: &TaskHistory,
        request: &LogRequest<'_>,
    ) -> Result<(), CommandError> {
        if self.names.is_empty() {
            return Ok(());
        }
        let missing: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let missing = missing.join(", ");
        if let Some(root) = moved_root(history, request) {
            let today = request.setup.tools.root.display();
            return Err(CommandError::usage(format!(
                "this run started in {root}, but the calls that still have to run ({missing}) would run in {today}"
            ))
            .with_hint(format!("`cd {root}` first, or run them here with `--accept-changes`")));
        }
        let (path, changed) = (request.context.tools_path.display(), join(&self.changes));
        Err(CommandError::usage(format!(
            "{path} has changed since this run started, and some calls still have to run ({missing}); changed: {changed}"
        ))
        .with_hint(
            "`--accept-changes` runs them with the current tools; existing results are kept",
        ))
    }
}

/// Returns the error of a call of `tool` that would have to run although something has changed.
pub(super) fn changed_error(tool: &str, changes: &BTreeSet<ToolChange>) -> CommandError {
    let changed = if changes.is_empty() {
        "the directory in which commands run".to_owned()
    } else {
        format!("tools.yaml: {}", join(changes))
    };
    CommandError::usage(format!(
        "a call of {tool} still has to run, but this has changed since the run started: {changed}"
    ))
    .with_hint("`--accept-changes` runs it with the current tools")
}

fn join(changes: &BTreeSet<ToolChange>) -> String {
    let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
    changes.join(", ")
}

/// Returns the root directory of the logged run if the current one differs. With the same tools.yaml, commands and
/// probes would then see different files.
fn moved_root<'h>(history: &'h TaskHistory, request: &LogRequest<'_>) -> Option<&'h str> {
    let today = request.setup.tools.root.display().to_string();
    history
        .root()
        .filter(|root| *root != request.setup.mask.apply(&today))
}
