//! The tables of tools.yaml, a file each: keys with their types, checks, and the values that calls are checked against. The
//! doc comments of keys become the descriptions in tools.schema.json.

pub(crate) mod agent;
pub(crate) mod agent_tools;
pub(crate) mod arguments;
pub(crate) mod builtins;
pub(crate) mod calls;
pub(crate) mod command;
pub(crate) mod env;
pub(crate) mod file;
pub(crate) mod http;
pub(crate) mod limits;
pub(crate) mod messages;
pub(crate) mod request;
pub(crate) mod rules;
pub(crate) mod sandbox;
pub(crate) mod schemas;
pub(crate) mod server;
pub(crate) mod server_tools;
pub(crate) mod settings;
pub(crate) mod tool;
pub(crate) mod tools;
pub(crate) mod values;
pub(crate) mod when;
