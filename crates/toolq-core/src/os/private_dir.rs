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
            sync_parent(directory)
        }
        Err(error)
            if has_kind(io::ErrorKind::AlreadyExists)(&error) && is_directory(directory)? =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn sync_parent(directory: &Path) -> io::Result<()> {
    let parent = directory
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let synced = File::open(parent.unwrap_or(Path::new("."))).and_then(|parent| parent.sync_all());
    match synced {
        // The parent may belong to another user, or its file system may not support syncing directories.
        Err(error)
            if has_kind(io::ErrorKind::PermissionDenied)(&error)
                || has_kind(io::ErrorKind::InvalidInput)(&error) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

fn has_kind(kind: io::ErrorKind) -> impl Fn(&io::Error) -> bool {
    move |error| error.kind() == kind
}

fn is_directory(path: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.is_dir())
}
