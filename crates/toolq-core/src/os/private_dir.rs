//! Directories that only their owner can access.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Creates a directory and its missing parents, each accessible only to its owner, regardless of the umask. Existing
/// directories are left alone. The entries of new directories survive a power loss.
///
/// # Errors
/// The directory can't be created, or the path is something else, such as a symlink.
pub fn create_private_dir(directory: &Path) -> io::Result<()> {
    // A strict umask can make a new directory unusable until its mode is set. Don't let other threads find it in that
    // state.
    static CREATION_LOCK: Mutex<()> = Mutex::new(());
    let _guard = CREATION_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    create_with_parents(directory)
}

fn create_with_parents(directory: &Path) -> io::Result<()> {
    let mut created = DirBuilder::new().mode(0o700).create(directory);
    if created
        .as_ref()
        .is_err_and(has_kind(io::ErrorKind::NotFound))
        && let Some(parent) = directory.parent()
    {
        create_with_parents(parent)?;
        created = DirBuilder::new().mode(0o700).create(directory);
    }
    match created {
        Ok(()) => {
            fs::set_permissions(directory, Permissions::from_mode(0o700))?;
            match sync_parent(directory) {
                // The parent may belong to another user.
                Err(error) if has_kind(io::ErrorKind::PermissionDenied)(&error) => Ok(()),
                synced => synced,
            }
        }
        Err(error)
            if has_kind(io::ErrorKind::AlreadyExists)(&error) && is_directory(directory)? =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Blocks until the entry of `path` in its directory survives a power loss.
///
/// # Errors
/// The directory can't be opened or synced.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    match File::open(parent.unwrap_or(Path::new(".")))?.sync_all() {
        // Returned by file systems that have nothing to sync for a directory.
        Err(error) if has_kind(io::ErrorKind::InvalidInput)(&error) => Ok(()),
        synced => synced,
    }
}

fn has_kind(kind: io::ErrorKind) -> impl Fn(&io::Error) -> bool {
    move |error| error.kind() == kind
}

fn is_directory(path: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.is_dir())
}
