//! Locks: what a call reads and writes, so that only calls that meet there wait for each other.

use std::path::PathBuf;
use std::sync::Arc;

use crate::types::template::Template;

/// `locks` of a tool.
#[derive(Debug, Clone, Default)]
pub struct LockTemplates {
    /// What its calls read.
    pub read: Vec<Template>,
    /// What its calls change.
    pub write: Vec<Template>,
}

/// The locks of a call. Without any, [`AcceptedCall::locks`](crate::types::AcceptedCall::locks) is `None`.
pub type CallLocks = Arc<Vec<CallLock>>;

/// A lock of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLock {
    /// The text in tools.yaml, with the values of the input.
    pub name: String,
    /// Whether others may hold it at the same time.
    pub mode: LockMode,
    /// What it is on.
    pub resource: LockedResource,
}

/// What a call does with what it locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// It reads.
    Read,
    /// It changes.
    Write,
}

/// What a lock is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockedResource {
    /// A file, or a directory with everything below it: absolute, with symbolic links resolved.
    Path(PathBuf),
    /// Whatever the author means by this text.
    Text(String),
}

/// Prefix of the name of a lock on a file.
pub(crate) const FILE_LOCK_PREFIX: &str = "file:";

impl CallLock {
    /// Returns whether two calls with these locks mustn't run at the same time.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let any_writes = self.mode == LockMode::Write || other.mode == LockMode::Write;
        any_writes && self.resource.meets(&other.resource)
    }

    /// `writes src/a.rs`.
    pub fn describe(&self) -> String {
        let name = self
            .name
            .strip_prefix(FILE_LOCK_PREFIX)
            .unwrap_or(&self.name);
        match self.mode {
            LockMode::Read => format!("reads {name}"),
            LockMode::Write => format!("writes {name}"),
        }
    }
}

impl LockedResource {
    /// Whether both are the same, or one is a directory with the other below it.
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Path(one), Self::Path(other)) => {
                one.starts_with(other) || other.starts_with(one)
            }
            (Self::Text(one), Self::Text(other)) => one == other,
            _ => false,
        }
    }
}
