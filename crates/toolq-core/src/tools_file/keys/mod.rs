//! The keys of tools.yaml as written: one type for each table. Their doc comments become the descriptions in
//! tools.schema.json.

mod agent;
mod backing;
mod file;
mod key_hints;
mod tool;
mod values;

pub(crate) use agent::{AgentBudgetFile, AgentFile};
pub(crate) use backing::{
    Argv, BodyFile, CommandFile, CommandForm, HttpFile, LimitsFile, McpFile, ServerFile,
};
pub use file::generate_tools_schema;
pub(crate) use file::{PriceFile, RuleFile, ToolsFile};
pub(crate) use tool::{
    Defaults, MessagesFile, NormalizeFile, RetryFile, SafetyForm, TimeoutForm, TimeoutTable,
    ToolFile,
};
pub(crate) use values::{DurationText, PriceNumber, SizeText, StatusRangeText};
