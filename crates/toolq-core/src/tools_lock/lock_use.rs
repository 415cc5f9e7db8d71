//! What tools.yaml is read with.

use crate::tools_lock::file::ToolsLock;

/// What is known of the servers of a tools.yaml.
#[derive(Debug, Clone, Copy)]
pub enum LockUse<'l> {
    /// Nothing: there is no lock.
    None,
    /// What the lock says.
    Read(&'l ToolsLock),
    /// What the lock says, which is about to be written anew. Tools may lack what it will have.
    Rewrite(&'l ToolsLock),
    /// What the lock says, and what servers have announced that it doesn't have. Others haven't been asked yet.
    Announced(&'l ToolsLock),
}

impl<'l> LockUse<'l> {
    /// Returns the lock, if there is one.
    pub fn lock(self) -> Option<&'l ToolsLock> {
        match self {
            Self::None => None,
            Self::Read(lock) | Self::Rewrite(lock) | Self::Announced(lock) => Some(lock),
        }
    }
}

impl<'l> From<&'l Option<ToolsLock>> for LockUse<'l> {
    fn from(lock: &'l Option<ToolsLock>) -> Self {
        lock.as_ref().map_or(Self::None, Self::Read)
    }
}
