//! Which file a command's program is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

/// The program's file: one with a slash stands at `place`, any other in a folder of `search` (the variable PATH).
///
/// Relative folders in PATH are passed over: a command doesn't run where toolq was started.
pub(crate) fn find(program: &str, place: &Path, search: Option<&OsStr>) -> Result<PathBuf, Errno> {
    if program.contains('/') {
        return Ok(place.to_owned());
    }
    if program.is_empty() {
        return Err(Errno::NOENT);
    }
    let mut fault = Errno::NOENT;
    let folders = search.into_iter().flat_map(std::env::split_paths);
    for file in folders
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
    {
        match access(&file, Access::EXEC_OK) {
            Ok(()) if file.is_file() => return Ok(file),
            Err(Errno::ACCESS) => fault = Errno::ACCESS,
            _ => {}
        }
    }
    Err(fault)
}

/// A start error said more precisely than the system does: the program is a folder.
pub(crate) fn precise(errno: i32, program: &Path) -> i32 {
    match Errno::from_raw_os_error(errno) {
        Errno::ACCESS if program.is_dir() => Errno::ISDIR.raw_os_error(),
        _ => errno,
    }
}

/// Why no program can run in `folder`, if so: it is entered first, and the system's error doesn't tell the two apart.
pub(crate) fn folder_fault(folder: &Path) -> Option<i32> {
    let errno = match folder.metadata() {
        Err(error) => error.raw_os_error()?,
        Ok(found) if !found.is_dir() => Errno::NOTDIR.raw_os_error(),
        Ok(_) => access(folder, Access::EXEC_OK).err()?.raw_os_error(),
    };
    Some(errno)
}
