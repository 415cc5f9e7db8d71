//! Resolves keys as written into the tools that calls are checked against, with all defaults applied.

mod agent;
mod agent_tool_checks;
mod argument;
mod attempt_limits;
mod builtins;
mod command;
mod context;
mod diagnostics;
mod env_variables;
mod http;
mod input_schema;
mod leading_dash;
mod load;
mod messages;
mod normalizers;
mod output_schema;
mod placeholders;
mod plain_text;
mod prices;
mod resource_limits;
mod schema_presence;
mod server;
mod server_tools;
mod setting_layers;
mod tool;
mod tool_name;
mod tool_rules;
mod url_template;
mod value_names;

pub(crate) use agent_tool_checks::agent_cycle_warnings;
pub(crate) use builtins::new_task_tool;
pub(crate) use context::{CheckContext, ToolContext};
pub use load::{ParsedToolsFile, parse_locked_tools_file, parse_tools_file};
pub(crate) use placeholders::TemplatePolicy;
pub(crate) use plain_text::accepts_only_plain_text;
pub(crate) use schema_presence::{SchemaPresence, allows_type, find_presence};
