//! The locks of a call in its records, so that later runs know which results it may have changed.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use redact::Mask;
use toolq_core::types::{CallLock, LockMode, LockedResource};

/// Maximum size of the locks in a record, in bytes.
const MAX_LOCKS_BYTES: usize = 4 << 10;

/// What a call locks.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LocksRecord<'a> {
    /// What it reads.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<LockedRecord<'a>>,
    /// What it changes.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<LockedRecord<'a>>,
}

/// What a lock is on.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LockedRecord<'a> {
    /// A file or a directory, with symbolic links resolved.
    #[serde(borrow)]
    Path(Cow<'a, str>),
    /// Whatever the author means by this text.
    #[serde(borrow)]
    Text(Cow<'a, str>),
}

impl<'a> LocksRecord<'a> {
    /// Returns the record of these locks. `None` if it would be large, or lack something: a secret, or bytes that aren't
    /// UTF-8. What isn't known of a call counts as everything.
    pub(crate) fn new(locks: &'a [CallLock], mask: &Mask) -> Option<Self> {
        let mut record = Self::default();
        let mut bytes = 0;
        for lock in locks {
            let locked = LockedRecord::new(&lock.resource, mask)?;
            bytes += locked.text().len();
            match lock.mode {
                LockMode::Read => record.read.push(locked),
                LockMode::Write => record.write.push(locked),
            }
        }
        (bytes <= MAX_LOCKS_BYTES).then_some(record)
    }

    /// Returns the locks, whose names aren't known.
    pub(crate) fn to_locks(&self) -> Vec<CallLock> {
        let of_mode = |mode, locked: &[LockedRecord<'_>]| {
            let locks = locked.iter().map(move |locked| CallLock {
                name: String::new(),
                mode,
                resource: locked.to_resource(),
            });
            locks.collect::<Vec<_>>()
        };
        let mut locks = of_mode(LockMode::Write, &self.write);
        locks.extend(of_mode(LockMode::Read, &self.read));
        locks
    }
}

impl<'a> LockedRecord<'a> {
    fn new(resource: &'a LockedResource, mask: &Mask) -> Option<Self> {
        let is_public = |text: &&str| mask.apply(text) == **text;
        Some(match resource {
            LockedResource::Path(path) => Self::Path(Path::to_str(path).filter(is_public)?.into()),
            LockedResource::Text(text) => Self::Text(Some(text.as_str()).filter(is_public)?.into()),
        })
    }

    fn text(&self) -> &str {
        match self {
            Self::Path(text) | Self::Text(text) => text,
        }
    }

    fn to_resource(&self) -> LockedResource {
        match self {
            Self::Path(path) => LockedResource::Path(PathBuf::from(&**path)),
            Self::Text(text) => LockedResource::Text(text.to_string()),
        }
    }
}
