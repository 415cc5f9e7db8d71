//! Removes what calls left in a copy. They can leave symlinks anywhere, also in place of directories that were there
//! before, so nothing here follows one.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Removes what is in a directory, except for the directories in `kept` and what leads to them.
///
/// # Errors
/// Something can't be removed, or `directory` isn't a directory any more.
pub(crate) fn remove_contents(directory: &Path, kept: &[PathBuf]) -> io::Result<()> {
    for entry in open_directory(directory)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        if !kind.is_dir() {
            fs::remove_file(&path)?;
        } else if kept
            .iter()
            .any(|kept| kept != &path && kept.starts_with(&path))
        {
            remove_contents(&path, kept)?;
            fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        } else if !kept.contains(&path) {
            remove_tree(&path)?;
        }
    }
    Ok(())
}

/// Removes a directory with everything in it: directories that aren't writable, and trees that are deeper than a path can
/// be long. So each directory is moved up before it is emptied.
///
/// # Errors
/// Something can't be removed.
pub(crate) fn remove_tree(directory: &Path) -> io::Result<()> {
    let mut names = (0_u64..).map(|number| directory.join(format!("toolq-{number}")));
    loop {
        let entries = open_directory(directory)?;
        let mut is_empty = true;
        for entry in entries {
            let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            is_empty = false;
            if kind.is_dir() {
                move_directories_up(&path, &mut names)?;
                fs::remove_dir(&path)?;
            } else {
                fs::remove_file(&path)?;
            }
        }
        if is_empty {
            return fs::remove_dir(directory);
        }
    }
}

/// Moves the directories in `directory` to `names`, and removes everything else in it.
fn move_directories_up(
    directory: &Path,
    names: &mut impl Iterator<Item = PathBuf>,
) -> io::Result<()> {
    for entry in open_directory(directory)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        if !kind.is_dir() {
            fs::remove_file(&path)?;
            continue;
        }
        // Moving a directory changes its `..`.
        fs::set_permissions(&path, Permissions::from_mode(0o700))?;
        let free = names.find(|name| name.symlink_metadata().is_err());
        fs::rename(&path, free.ok_or(io::ErrorKind::AlreadyExists)?)?;
    }
    Ok(())
}

/// Opens a directory that a tool may have made unreadable.
fn open_directory(directory: &Path) -> io::Result<fs::ReadDir> {
    if !directory.symlink_metadata()?.is_dir() {
        let message = format!("{} was replaced", directory.display());
        return Err(io::Error::new(io::ErrorKind::NotADirectory, message));
    }
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    fs::read_dir(directory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn directories_that_lead_to_kept_ones_stay() {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("a/kept/inner")).unwrap();
        fs::create_dir_all(at("a/other/inner")).unwrap();
        fs::write(at("a/file"), "").unwrap();
        fs::set_permissions(at("a/other"), Permissions::from_mode(0o500)).unwrap();
        remove_contents(dir.path(), &[at("a/kept")]).unwrap();
        assert!(at("a/kept/inner").exists());
        assert_eq!(fs::read_dir(at("a")).unwrap().count(), 1);
    }

    /// Otherwise, a call could choose what is deleted after it.
    #[test]
    fn a_symlink_in_place_of_a_directory_is_removed_and_not_followed() {
        let (dir, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(outside.path().join("kept")).unwrap();
        fs::write(outside.path().join("kept/file"), "").unwrap();
        fs::set_permissions(outside.path(), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(at("b")).unwrap();
        for link in ["a", "b/link", "kept"] {
            symlink(outside.path(), at(link)).unwrap();
        }
        assert!(remove_contents(&at("a"), &[]).is_err());
        remove_contents(dir.path(), &[at("a/kept"), at("kept")]).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        symlink(outside.path(), at("link")).unwrap();
        assert!(remove_tree(&at("link")).is_err());
        let mode = outside.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert!(outside.path().join("kept/file").exists());
    }

    #[test]
    fn a_tree_deeper_than_a_path_is_removed() {
        let dir = TempDir::new().unwrap();
        let top = dir.path().join("top");
        fs::create_dir(&top).unwrap();
        fs::create_dir(top.join("toolq-1")).unwrap();
        fs::write(top.join("toolq-1/file"), "").unwrap();
        for number in 0..3 {
            let mut path = PathBuf::from(number.to_string());
            path.extend(std::iter::repeat_n("x".repeat(100), 30));
            fs::create_dir_all(dir.path().join(&path)).unwrap();
            // Each tree goes below the one before it.
            let place = dir.path().join(&path).join("below");
            fs::rename(&top, &place).unwrap();
            fs::set_permissions(&place, Permissions::from_mode(0o300)).unwrap();
            fs::rename(dir.path().join(number.to_string()), &top).unwrap();
        }
        remove_tree(&top).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
