//! The keys of tools.yaml as written: one type for each table. Their doc comments become the descriptions in
//! tools.schema.json.

mod agent;
mod approve;
mod attempts;
mod backing;
mod file;
mod messages;
mod sandbox;
mod scalar;
mod start_limits;
mod tool;
mod values;

pub(crate) use agent::{AgentBudgetFile, AgentFile};
pub(crate) use approve::{ApproveForm, ApproveWord};
pub(crate) use attempts::{RetryFile, TimeoutForm, TimeoutTable};
pub(crate) use backing::{
    Argv, BodyFile, CommandFile, CommandForm, HttpFile, LimitsFile, McpFile, ServerFile,
};
pub use file::generate_tools_schema;
pub(crate) use file::{IncludedFile, PriceFile, RuleFile, ToolsFile};
pub(crate) use messages::MessagesFile;
pub(crate) use sandbox::{NetworkForm, NetworkWord, SandboxForm, SandboxTable};
pub(crate) use start_limits::{HostFile, RateForm, RateText};
pub(crate) use tool::{CacheFile, Defaults, NormalizeFile, OnceForm, SafetyForm, ToolFile};
pub(crate) use values::{DurationText, PriceNumber, SizeText, StatusRangeText};
