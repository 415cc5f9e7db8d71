//! Reads and writes tools.lock: what the servers of a tools.yaml announced when a person locked them.

mod file;

mod lock_use;

pub use file::ToolsLock;
pub use lock_use::LockUse;
