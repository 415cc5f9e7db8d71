//! tools.yaml as its author wrote it: one type for each table of keys. Their docs are tools.schema.json.

mod agent;
mod backing;
mod file;
mod key_hints;
mod tool;
mod values;

pub(crate) use agent::{AgentBudgetFile, AgentFile};
pub(crate) use backing::{Argv, BodyFile, CommandFile, CommandForm, HttpFile, LimitsFile};
pub use file::tools_schema;
pub(crate) use file::{PriceFile, RuleFile, ToolsFile};
pub(crate) use tool::{
    Defaults, MessagesFile, RetryFile, SafetyForm, TimeoutForm, TimeoutTable, ToolFile,
};
pub(crate) use values::{Bytes, DurationText, PriceNumber, Statuses};
