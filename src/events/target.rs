//! Opens the target of `--events`: a file, a named pipe, or a file descriptor inherited from the shell.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{FdFlags, fcntl_getfd};

use crate::output::{CommandError, check_output_file, follow_links};
use toolq_core::types::{CallRef, EmitError, Event, EventSink};

const STDOUT_IS_TAKEN: &str = "stdout is reserved for results";
const LOG_IS_TAKEN: &str = "it is the session log, which may contain only records";

/// Opens `target`, a path or `fd:N`. `log` is the path of the session log, if one was named. `inputs` are the files that
/// the command reads, and `tools_files` those that tools.yaml consists of.
///
/// # Errors
/// The target can't be written, or is stdout, one of these files or a session log.
pub fn open(
    target: &str,
    log: Option<&Path>,
    inputs: &[PathBuf],
    tools_files: &[PathBuf],
) -> Result<Box<dyn Write + Send>, CommandError> {
    if !target.starts_with("fd:")
        && !log.is_some_and(|log| is_same_new_file(Path::new(target), log))
    {
        let inputs = inputs.iter().map(PathBuf::as_path);
        check_output_file(Path::new(target), inputs, tools_files)?;
    }
    let opened = match target.strip_prefix("fd:") {
        _ if target == "-" => Err(STDOUT_IS_TAKEN.to_owned()),
        Some(number) => open_descriptor(number, log),
        None => open_path(Path::new(target), log),
    };
    opened.map_err(|reason| {
        CommandError::usage(format!("--events {target} can't be written: {reason}")).with_hint(
            "name a file, or a descriptor that the shell opened: `--events fd:3 3>events.ndjson`",
        )
    })
}

fn open_path(path: &Path, log: Option<&Path>) -> Result<Box<dyn Write + Send>, String> {
    let is_pipe = |metadata: &Metadata| metadata.file_type().is_fifo();
    if let Ok(found) = fs::metadata(path)
        && is_pipe(&found)
    {
        reject_stdout(&found)?;
        let (path, opened) = (path.to_owned(), None);
        return Ok(Box::new(NamedPipe { path, file: opened }));
    }
    if log.is_some_and(|log| is_same_new_file(path, log)) {
        return Err(LOG_IS_TAKEN.to_owned());
    }
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = file.map_err(|error| error.to_string())?;
    reject_results_and_log(&file, log)?;
    Ok(Box::new(file))
}

/// Returns an error if the file is stdout under another name. In `/dev/null`, nothing can get mixed up.
fn reject_stdout(file: &Metadata) -> Result<(), String> {
    let identity = |number: &Metadata| (number.dev(), number.ino());
    let stdout = rustix::fs::fstat(rustix::stdio::stdout());
    let is_stdout = stdout.is_ok_and(|stdout| (stdout.st_dev, stdout.st_ino) == identity(file));
    let null = fs::metadata("/dev/null");
    if is_stdout && !null.is_ok_and(|null| identity(&null) == identity(file)) {
        return Err(STDOUT_IS_TAKEN.to_owned());
    }
    Ok(())
}

/// Returns an error if `file` is stdout or the session log.
fn reject_results_and_log(file: &File, log: Option<&Path>) -> Result<(), String> {
    let log_metadata = log.and_then(|log| fs::metadata(log).ok());
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    reject_stdout(&metadata)?;
    match log_metadata {
        Some(log) if (log.dev(), log.ino()) == (metadata.dev(), metadata.ino()) => {
            Err(LOG_IS_TAKEN.to_owned())
        }
        _ => Ok(()),
    }
}

/// Returns whether opening both paths would create the same file.
fn is_same_new_file(path: &Path, log: &Path) -> bool {
    let new = follow_links(path);
    new.is_some() && new == follow_links(log)
}

/// Duplicates a descriptor. The copy shares its file offset with the shell's.
fn open_descriptor(number: &str, log: Option<&Path>) -> Result<Box<dyn Write + Send>, String> {
    let number: RawFd = match number.parse() {
        Ok(1) => return Err(STDOUT_IS_TAKEN.to_owned()),
        Ok(number) if number >= 0 => number,
        _ => return Err(format!("`{number}` isn't a file descriptor number")),
    };
    // SAFETY: whatever the number refers to, if anything, the calls below only query it, and duplicate it if inherited.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    // Descriptors that toolq opened itself are close-on-exec; inherited ones can't be.
    let is_open = fcntl_getfd(inherited).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC));
    if !is_open {
        return Err(format!("descriptor {number} is not open"));
    }
    let mode = fcntl_getfl(inherited).map_err(|error| error.to_string())?;
    if mode & OFlags::RWMODE == OFlags::RDONLY {
        return Err(format!("descriptor {number} is open only for reading"));
    }
    let copy = inherited.try_clone_to_owned();
    let copy = File::from(copy.map_err(|error| error.to_string())?);
    reject_results_and_log(&copy, log)?;
    Ok(Box::new(copy))
}

/// A named pipe. It is opened on the first write, which happens on the background thread, because opening blocks until
/// there is a reader.
struct NamedPipe {
    path: PathBuf,
    file: Option<File>,
}

impl Write for NamedPipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(pipe) => pipe.write(bytes),
            closed => {
                let pipe = OpenOptions::new().write(true).open(&self.path)?;
                closed.insert(pipe).write(bytes)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// Distributes events to several sinks.

/// Passes events to observers, whose errors don't count, once the session log has been told. `None` stands for one that isn't
/// there. If the log refused the events, observers don't get the starts among them, because those calls won't run.
pub fn show_to_all(
    events: &[Event<'_>],
    is_recorded: bool,
    observers: &mut [Option<&mut dyn EventSink>],
) {
    let is_started = |event: &&Event<'_>| matches!(event, Event::Started { .. });
    let mut observed = events.to_vec();
    if !is_recorded {
        observed.retain(|event| !is_started(&event));
    }
    for observer in observers.iter_mut().flatten() {
        // An observer that fails reports that itself at the end of the run.
        let _ = observer.emit(&observed);
    }
}

/// Shows each event to `observe`, then passes it on to `sink`.
pub(crate) struct Observed<'s, F> {
    pub(crate) sink: &'s mut dyn EventSink,
    pub(crate) observe: F,
}

impl<F: FnMut(&Event<'_>) + Send> EventSink for Observed<'_, F> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        events.iter().for_each(&mut self.observe);
        self.sink.emit(events)
    }

    fn shows_progress(&self, call: &CallRef) -> bool {
        self.sink.shows_progress(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::types::{TurnOrigin, Verdict};
    use toolq_testing::call_with_estimate;

    #[derive(Default)]
    struct RecordingSink(Vec<String>, bool);

    impl EventSink for RecordingSink {
        fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
            let debug_texts = events.iter().map(|event| format!("{event:?}"));
            let names = debug_texts.map(|debug_text| {
                debug_text
                    .split([' ', '{'])
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            });
            self.0.extend(names);
            if self.1 {
                Err(EmitError("no".to_owned()))
            } else {
                Ok(())
            }
        }
    }

    #[test]
    fn observers_miss_the_starts_that_the_log_refused_and_fail_alone() {
        let checked = call_with_estimate(0, "get", 1, true);
        let call = CallRef::new(&checked.call, Some(0));
        let Verdict::Accepted(accepted) = &checked.verdict else {
            unreachable!()
        };
        let started = Event::Started {
            call: &call,
            accepted,
            attempt: 1,
            idempotency_key: "key",
            claim: None,
            waited: None,
        };
        let events = [
            Event::TurnStarted {
                turn: 0,
                parent: None,
                origin: &TurnOrigin::default(),
            },
            started,
        ];
        for log_fails in [false, true] {
            let (mut failing_observer, mut observer) =
                (RecordingSink(vec![], true), RecordingSink::default());
            let mut observers: [Option<&mut dyn EventSink>; 2] =
                [Some(&mut failing_observer), Some(&mut observer)];
            show_to_all(&events, !log_fails, &mut observers);
            let expected: &[&str] = if log_fails {
                &["TurnStarted"]
            } else {
                &["TurnStarted", "Started"]
            };
            assert_eq!(observer.0, expected);
        }
    }
}
