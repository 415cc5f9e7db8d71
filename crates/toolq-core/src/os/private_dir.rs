use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Makes a folder, and those above it that are missing, each for its owner only, whatever the umask is. What is there
/// already stays as it is. The names of those that it makes survive a loss of power.
///
/// # Errors
/// It can't be made, or something else has its name, such as a link.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    // Where the umask takes more than it should, nobody may find a folder that can't be used yet.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    make(folder)
}

fn make(folder: &Path) -> io::Result<()> {
    let mut made = DirBuilder::new().mode(0o700).create(folder);
    if made.as_ref().is_err_and(is(io::ErrorKind::NotFound))
        && let Some(above) = folder.parent()
    {
        make(above)?;
        made = DirBuilder::new().mode(0o700).create(folder);
    }
    match made {
        Ok(()) => {
            fs::set_permissions(folder, Permissions::from_mode(0o700))?;
            sync_name(folder)
        }
        Err(error) if is(io::ErrorKind::AlreadyExists)(&error) && is_folder(folder)? => Ok(()),
        Err(error) => Err(error),
    }
}

fn sync_name(folder: &Path) -> io::Result<()> {
    let above = folder
        .parent()
        .filter(|above| !above.as_os_str().is_empty());
    let synced = File::open(above.unwrap_or(Path::new("."))).and_then(|above| above.sync_all());
    match synced {
        // It may belong to others, who keep it; or its file system has nothing to do for a folder.
        Err(error)
            if is(io::ErrorKind::PermissionDenied)(&error)
                || is(io::ErrorKind::InvalidInput)(&error) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

fn is(kind: io::ErrorKind) -> impl Fn(&io::Error) -> bool {
    move |error| error.kind() == kind
}

fn is_folder(path: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.is_dir())
}
