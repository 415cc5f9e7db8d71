//! Files that flags name for what a command writes, such as a plan, a page or a report. Nothing that toolq reads or records
//! is lost to one, and devices, pipes and symbolic links stay what they are.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, IntoInnerError, Read as _, Write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::output::{CommandError, Exit};

/// How many symbolic links are followed, as on Linux.
const MAX_LINKS: usize = 40;
/// How a session log begins, and what its first record says within the first bytes: a log can have any name, so it is told by
/// its content.
const RECORD_START: &[u8] = br#"{"seq":0,"id":""#;
const SESSION_TYPE: &[u8] = br#""type":"session""#;
const RECORD_START_BYTES: u64 = 256;

/// Checks that nothing is lost if `path` is written. `inputs` are the files that the command reads, besides stdin and
/// `tools_files`: tools.yaml, and what it was read from.
///
/// # Errors
/// It is one of them, or a session log.
pub(crate) fn check_output_file<'p>(
    path: &Path,
    inputs: impl IntoIterator<Item = &'p Path>,
    tools_files: &[PathBuf],
) -> Result<(), CommandError> {
    let Ok(output) = fs::metadata(path) else {
        return Ok(());
    };
    let identity = |file: &Metadata| (file.dev(), file.ino());
    let is_output =
        |input: &Path| fs::metadata(input).is_ok_and(|input| identity(&input) == identity(&output));
    let why = if !output.is_file() {
        return Ok(());
    } else if inputs.into_iter().any(is_output) || is_stdin(&output) {
        "this command reads it"
    } else if tools_files.iter().any(|file| is_output(file)) {
        "it is part of the tools file"
    } else if is_session_log(path) {
        "it is a session log"
    } else {
        return Ok(());
    };
    let error = format!("{} isn't overwritten: {why}", path.display());
    Err(CommandError::usage(error).with_hint("name another file"))
}

/// Returns whether the shell opened this file as stdin.
fn is_stdin(file: &Metadata) -> bool {
    let stdin = rustix::fs::fstat(rustix::stdio::stdin());
    stdin.is_ok_and(|stdin| (stdin.st_dev, stdin.st_ino) == (file.dev(), file.ino()))
}

/// Returns whether a file begins as session logs do.
fn is_session_log(path: &Path) -> bool {
    let mut start = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(RECORD_START_BYTES).read_to_end(&mut start));
    let has_type = || {
        start
            .windows(SESSION_TYPE.len())
            .any(|bytes| bytes == SESSION_TYPE)
    };
    read.is_ok() && start.starts_with(RECORD_START) && has_type()
}

/// Writes a file as a whole, so that no reader sees half of it and a failure leaves the old one. What isn't a regular file is
/// written in place.
///
/// # Errors
/// It can't be written.
pub(crate) fn replace_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // Some links, such as `/dev/stdout`, lead to what has no path.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fill_buffered(OpenOptions::new().write(true).open(path)?, fill).map(drop);
    }
    let target = follow_links(path).unwrap_or_else(|| path.to_owned());
    let dir = target.parent().filter(|dir| !dir.as_os_str().is_empty());
    // It gets the permissions of any other new file.
    let file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(dir.unwrap_or(Path::new(".")));
    let file = fill_buffered(file.map_err(without_path)?, fill)?;
    file.as_file().sync_data()?;
    file.persist(&target).map_err(|refused| refused.error)?;
    Ok(())
}

fn fill_buffered<F: Write>(
    file: F,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<F> {
    let mut file = BufWriter::new(file);
    fill(&mut file)?;
    file.into_inner().map_err(IntoInnerError::into_error)
}

/// Returns the error of the system, without the name of the temporary file, which would only be confusing.
fn without_path(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(std::error::Error::source);
    let cause = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause.and_then(io::Error::raw_os_error) {
        Some(number) => io::Error::from_raw_os_error(number),
        None => error,
    }
}

/// Returns the error of a command whose output file can't be written.
pub(crate) fn unwritten_file(path: &Path, error: &io::Error) -> CommandError {
    let message = format!("{} can't be written: {error}", path.display());
    CommandError::new(Exit::Output, message)
}

/// Returns the path of the file that writing `path` would write or create: where symbolic links lead, in an existing
/// directory.
pub(crate) fn follow_links(path: &Path) -> Option<PathBuf> {
    let mut path = std::path::absolute(path).ok()?;
    for _ in 0..MAX_LINKS {
        let dir = path.parent()?.canonicalize().ok()?;
        match fs::read_link(&path) {
            Ok(target) => path = dir.join(target),
            Err(_) => return Some(dir.join(path.file_name()?)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, symlink};
    use std::thread;

    use super::*;

    fn replace(path: &Path, text: &str) -> io::Result<()> {
        replace_file(path, |file| file.write_all(text.as_bytes()))
    }

    #[test]
    fn what_a_link_leads_to_is_replaced_and_the_link_stays() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("target"), "old").unwrap();
        symlink("target", at("link")).unwrap();
        symlink("new", at("dangling")).unwrap();
        for (link, target) in [("link", "target"), ("dangling", "new")] {
            replace(&at(link), "text").unwrap();
            assert_eq!(fs::read_to_string(at(target)).unwrap(), "text");
            assert!(at(link).is_symlink(), "{link}");
        }
    }

    #[test]
    fn devices_and_pipes_are_written_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let path = pipe.clone();
        let reader = thread::spawn(move || fs::read_to_string(path).unwrap());
        replace(&pipe, "text").unwrap();
        assert_eq!(reader.join().unwrap(), "text");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        let full = replace(Path::new("/dev/full"), "text");
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(
            fs::metadata("/dev/full")
                .unwrap()
                .file_type()
                .is_char_device()
        );
    }

    #[test]
    fn what_is_read_and_what_was_recorded_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (input, link, log) = (at("input"), at("link"), at("log"));
        fs::write(&input, "{}").unwrap();
        symlink("input", &link).unwrap();
        fs::write(
            &log,
            r#"{"seq":0,"id":"0","parentId":null,"type":"session"}"#,
        )
        .unwrap();
        let check = |path: &Path| check_output_file(path, [input.as_path()], &[]).is_ok();
        let may_be_written = [&input, &link, &log, &at("new")].map(|path| check(path));
        assert_eq!(may_be_written, [false, false, false, true]);
        assert!(check(Path::new("/dev/null")));
    }
}
