//! Looks up the file of a command's program, and explains why it can't be started.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

/// Maximum length of a script's first line, as in Linux.
const MAX_FIRST_LINE_BYTES: u64 = 256;

/// Returns the program's file: `declared_path` if the program contains a slash; otherwise the first match in the
/// directories of `path_variable`.
///
/// Relative directories in PATH are skipped, because commands don't run in the directory in which toolq was started.
///
/// # Errors
/// No such file can be executed.
pub fn find_program(
    program: &str,
    declared_path: &Path,
    path_variable: Option<&OsStr>,
) -> Result<PathBuf, Errno> {
    if program.contains('/') {
        return Ok(declared_path.to_owned());
    }
    if program.is_empty() {
        return Err(Errno::NOENT);
    }
    let mut error = Errno::NOENT;
    let directories = path_variable.into_iter().flat_map(std::env::split_paths);
    for file in directories
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(program))
    {
        match access(&file, Access::EXEC_OK) {
            Ok(()) if file.is_file() => return Ok(file),
            Err(Errno::ACCESS) => error = Errno::ACCESS,
            _ => {}
        }
    }
    Err(error)
}

/// Makes a start error more precise than the system does, if the program is a directory.
pub(crate) fn refine_start_error(errno: i32, program: &Path) -> i32 {
    match Errno::from_raw_os_error(errno) {
        Errno::ACCESS if program.is_dir() => Errno::ISDIR.raw_os_error(),
        _ => errno,
    }
}

/// Returns the interpreter that a script names and that isn't there, if its start failed because of that.
pub(crate) fn missing_interpreter(errno: i32, script: &Path) -> Option<String> {
    let (interpreter, _) = find_interpreter(script)?;
    let is_missing = Errno::from_raw_os_error(errno) == Errno::NOENT && !interpreter.exists();
    is_missing.then(|| interpreter.to_string_lossy().into_owned())
}

/// Returns the interpreter in the first line of a script, and its first argument.
pub fn find_interpreter(script: &Path) -> Option<(PathBuf, Option<String>)> {
    let mut text = Vec::new();
    let file = File::open(script).ok()?;
    file.take(MAX_FIRST_LINE_BYTES)
        .read_to_end(&mut text)
        .ok()?;
    let line = text.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    // A carriage return belongs to the word before it, as for the system.
    let words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let mut words = words.filter(|word| !word.is_empty());
    let interpreter = PathBuf::from(OsStr::from_bytes(words.next()?));
    let argument = words
        .next()
        .map(|word| String::from_utf8_lossy(word).into_owned());
    Some((interpreter, argument))
}

/// Whether a program in a sandbox failed to start although its user may execute it.
pub(crate) fn is_kept_out_by_sandbox(errno: i32, program: &Path) -> bool {
    let is_refused = Errno::from_raw_os_error(errno) == Errno::ACCESS;
    is_refused && program.is_file() && access(program, Access::EXEC_OK).is_ok()
}

/// Returns why no program can run in `directory`, if so. The system's start error doesn't tell whether it is about the
/// working directory, which is entered first, or about the program.
pub(crate) fn directory_error(directory: &Path) -> Option<i32> {
    let errno = match directory.metadata() {
        Err(error) => error.raw_os_error()?,
        Ok(metadata) if !metadata.is_dir() => Errno::NOTDIR.raw_os_error(),
        Ok(_) => access(directory, Access::EXEC_OK).err()?.raw_os_error(),
    };
    Some(errno)
}
