//! What earlier runs recorded about a call, and what that means for the next run.

mod answer_cache;
mod earlier_run;
mod history;
mod in_doubt;
mod kept_lines;
mod kept_results;
mod logged_call;
mod lookup;
mod policy;
mod resolve;
mod restore_result;
mod task_selector;
mod tool_changes;

pub(crate) use history::CallPosition;
pub use history::TaskHistory;
pub use in_doubt::{DoubtReport, InDoubtCall, InDoubtCalls, list_calls_in_doubt};
pub use kept_results::{KeptResultEntry, KeptResults};
pub(crate) use logged_call::LoggedCall;
pub use lookup::CallConflict;
pub use resolve::{Resolution, ResolveError, resolve_call};
pub use restore_result::RestoreError;
pub use task_selector::TaskKey;
pub(crate) use task_selector::{SelectedTask, TaskSelector};
pub use tool_changes::ToolChange;
