//! Keys as written → tools that calls are checked against, with all defaults applied.

mod agent;
mod agent_tools;
mod builtins;
mod command;
mod context;
mod diagnostics;
mod http;
mod input_schema;
mod limits;
mod load;
mod messages;
mod placeholders;
mod prices;
mod resource_limits;
mod rules;
mod schema_presence;
mod tool;
mod tool_name;
mod url;
mod variables;

pub(crate) use agent_tools::circles;
pub(crate) use builtins::new_task;
pub(crate) use context::{Checks, Scope};
pub use load::{Loaded, load};
pub(crate) use placeholders::Sink;
pub(crate) use schema_presence::{Declared, declared, may_be};
