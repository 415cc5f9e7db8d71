//! Reads and writes tools.lock: what the servers of a tools.yaml announced when a person locked them.

mod file;

pub use file::{LockUse, ToolsLock};
