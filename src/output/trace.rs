//! Diagnostics of the engine, for finding out why a run hangs or is slow. Off unless `TOOLQ_LOG` is set.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, PoisonError};

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::output::stderr::StderrWriter;
use toolq_core::exit::CommandError;
use toolq_core::os::Environment;

/// The variable with the filter: a level such as `debug`, or levels by module such as `toolq_engine=trace`.
const FILTER_VARIABLE: &str = "TOOLQ_LOG";
const FILTER_HINT: &str = "write error, warn, info, debug, trace or off, or levels by module: `toolq_engine=debug`; \
    TOOLQ_LOG_FILE is what names the session log";
/// The variable with the file to append to instead of stderr.
const FILE_VARIABLE: &str = "TOOLQ_TRACE_FILE";

/// Starts to print diagnostics if the environment says so.
///
/// # Errors
/// The filter is malformed, or the file can't be opened.
pub fn install(environment: &Environment) -> Result<(), CommandError> {
    let filter = environment.get(FILTER_VARIABLE);
    let Some(filter) = filter.filter(|filter| !filter.is_empty()) else {
        return Ok(());
    };
    let targets = parse_filter(&filter).map_err(|why| {
        CommandError::usage(format!("{FILTER_VARIABLE}: {why}")).with_hint(FILTER_HINT)
    })?;
    let writer = match environment.get(FILE_VARIABLE) {
        Some(path) if !path.is_empty() => TraceWriter::File(Mutex::new(open(&path)?)),
        _ => TraceWriter::Stderr,
    };
    let layer = fmt::layer().with_ansi(false).with_writer(writer);
    // Fails if the process already has a subscriber, whose choice it then is what to print.
    let _ = tracing_subscriber::registry()
        .with(layer.with_filter(targets))
        .try_init();
    Ok(())
}

/// Parses a filter. A word alone would be the name of a module, so that a level with a typo would silence everything.
fn parse_filter(filter: &str) -> Result<Targets, String> {
    let is_level = |word: &&str| word.parse::<LevelFilter>().is_ok();
    let mut words = filter.split(',').filter(|part| !part.contains('='));
    if let Some(word) = words.find(|word| !is_level(word)) {
        return Err(format!("`{word}` isn't a level"));
    }
    let targets = filter.parse::<Targets>();
    targets.map_err(|error| format!("`{filter}` isn't a filter: {error}"))
}

fn open(path: &str) -> Result<File, CommandError> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path);
    file.map_err(|error| {
        CommandError::usage(format!("{FILE_VARIABLE}: {path} can't be written: {error}"))
    })
}

/// Where diagnostics go.
enum TraceWriter {
    Stderr,
    File(Mutex<File>),
}

/// One diagnostic, which is written as a whole.
struct TraceLine<'w> {
    writer: &'w TraceWriter,
    line: Vec<u8>,
}

impl<'w> MakeWriter<'w> for TraceWriter {
    type Writer = TraceLine<'w>;

    fn make_writer(&'w self) -> TraceLine<'w> {
        TraceLine {
            writer: self,
            line: Vec::new(),
        }
    }
}

impl Write for TraceLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for TraceLine<'_> {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        let text = format!("{}\n", StderrWriter::mask_and_escape(text.trim_end()));
        match self.writer {
            TraceWriter::Stderr => StderrWriter::write_text(&text),
            TraceWriter::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                // Diagnostics must not fail the run.
                let _ = file.write_all(text.as_bytes());
            }
        }
    }
}

// Prints panics as one line. It is masked and escaped like all messages, because it can contain a part of the input.

/// Installs the panic hook. It only prints; whether the program ends depends on where the panic is caught.
pub fn install_hook() {
    panic::set_hook(Box::new(|panic| {
        StderrWriter::print_panic(&panic_message(panic));
    }));
}

/// Formats a message such as `toolq panicked at src/context.rs:12:5: index out of bounds`.
fn panic_message(panic: &PanicHookInfo<'_>) -> String {
    let message = panic.payload_as_str().unwrap_or("no message");
    match panic.location() {
        Some(location) => format!("toolq panicked at {location}: {message}"),
        None => format!("toolq panicked: {message}"),
    }
}
