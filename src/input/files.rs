//! The inputs of `run` and `plan`: files or stdin. Unless it is a stream or `--follow` is given, an input is read to
//! its end before anything runs.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Cursor, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde_json::value::RawValue;

use crate::args::{InputArguments, InputFormat};
use crate::input::stdin::{self, ChunkReader};
use crate::input::stream_input::{FollowInput, StreamInput};
use crate::output::{CommandError, Exit, StderrWriter};
use toolq_core::text::{escape, format_count};
use toolq_core::transcript::{
    self, InputError, InputSource, LineFollower, Recording, StoredContentLoader, StreamDecoder,
};
use toolq_core::types::{CheckedCall, Dialect, RejectionReason, Verdict};
use toolq_log::{Access, Corruption, RecordContent, StoredBlob};

/// Maximum number of bytes that are read to recognize a stream.
const DETECTION_BYTES: usize = 16;

/// An input of `run` or `plan`.
pub enum CommandInput {
    /// A document or JSONL, read to its end.
    Recording(Box<Recording>),
    /// A stream of server-sent events, read as it arrives.
    Stream(Box<StreamInput>),
    /// JSON lines that are answered as they arrive.
    Follow(Box<FollowInput>),
}

/// Opens every named input. Streams are left unread; the others are passed through `prepare` and read to their end.
///
/// # Errors
/// A file can't be opened, or an input isn't a model response in a known format; the error has the location.
pub fn open_inputs(
    arguments: &InputArguments,
    prepare: fn(InputSource) -> Result<InputSource, InputError>,
) -> Result<Vec<CommandInput>, CommandError> {
    open_each(arguments, |path, name, file| {
        let vendor = arguments.from.and_then(InputFormat::stream_vendor);
        let (prefix, is_stream) = match vendor {
            Some(_) => (Vec::new(), true),
            None => detect_stream(&file).map_err(|error| unreadable_input(&name, &error))?,
        };
        let given = arguments.from.and_then(InputFormat::dialect);
        if let Some(given) = given.filter(|_| is_stream) {
            return Err(stream_mismatch(&name, given));
        }
        if is_stream {
            let stream = StreamDecoder::new(name, vendor, arguments.max_document);
            let stream_input = StreamInput::new(ChunkReader::new(prefix, file), stream);
            return Ok(CommandInput::Stream(Box::new(stream_input)));
        }
        let source = if prefix.is_empty() {
            InputSource::from_file(name, file)?
        } else {
            InputSource::from_pipe(name, Cursor::new(prefix).chain(file))?
        };
        let recording = Recording::read(prepare(source)?, given, arguments.max_document)?;
        let recording = match recording.dialect() {
            Dialect::Toolq => verify_session_log(recording, path)?.0,
            _ => recording,
        };
        recording.check_stored_content(arguments.all)?;
        Ok(CommandInput::Recording(Box::new(recording)))
    })
}

/// Says what people should know about recordings before their calls run: which of them don't, and what is missing.
/// `include_all` if calls run that have a result or were abandoned.
pub fn print_notes<'r>(
    recordings: impl Iterator<Item = &'r Recording> + Clone,
    include_all: bool,
    stderr: &StderrWriter,
) {
    for damage in recordings.clone().filter_map(Recording::damage) {
        stderr.print_warning(&damage.to_string());
    }
    let abandoned: usize = recordings.clone().map(Recording::abandoned_calls).sum();
    if abandoned > 0 && !include_all {
        stderr.print_note(&abandoned_note(abandoned));
    }
    let misplaced = recordings.clone().map(Recording::misplaced_results).sum();
    if misplaced > 0 {
        stderr.print_note(&misplaced_note(misplaced));
    }
    let kinds: BTreeSet<&str> = recordings
        .flat_map(Recording::unknown_kinds)
        .map(String::as_str)
        .collect();
    print_unknown_kinds(&kinds, stderr);
}

fn abandoned_note(calls: usize) -> String {
    let (were, their, them) = match calls {
        1 => ("was", "its result", "it"),
        _ => ("were", "their results", "them"),
    };
    let calls = format_count(calls as u64, "call");
    format!(
        "{calls} {were} abandoned: the conversation went on without {their}; `--all` includes {them}"
    )
}

fn misplaced_note(results: usize) -> String {
    let fit = if results == 1 { "fits" } else { "fit" };
    let results = format_count(results as u64, "result");
    format!("{results} {fit} no call of the conversation")
}

/// Returns the error for a recording of which a call didn't run because a result may be its own.
pub fn misplaced_failure(recording: &Recording, calls: &[CheckedCall]) -> Option<CommandError> {
    let is_unsure = |call: &CheckedCall| {
        let Verdict::Rejected(rejection) = &call.verdict else {
            return false;
        };
        rejection.reason == RejectionReason::MisplacedResult
    };
    let place = recording.misplaced_result()?;
    calls
        .iter()
        .any(is_unsure)
        .then(|| stream_failure(place.clone(), 1))
}

/// Names what the model asked for in ways that toolq doesn't know.
pub fn print_unknown_kinds(kinds: &BTreeSet<&str>, stderr: &StderrWriter) {
    if !kinds.is_empty() {
        stderr.print_note(&unknown_kinds_message(kinds));
    }
}

/// Checks a stream without calls for what the model asked for in ways that toolq doesn't know.
///
/// # Errors
/// It asked for something.
pub fn check_unknown_kinds(
    stream: &StreamInput,
    stderr: &StderrWriter,
) -> Result<(), CommandError> {
    let kinds: BTreeSet<&str> = stream.unknown_kinds().map(|(kind, _)| kind).collect();
    if stream.unknown_kinds().any(|(_, is_call)| is_call) {
        return Err(CommandError::usage(unknown_kinds_message(&kinds)));
    }
    print_unknown_kinds(&kinds, stderr);
    Ok(())
}

fn unknown_kinds_message(kinds: &BTreeSet<&str>) -> String {
    let names: Vec<String> = kinds
        .iter()
        .map(|kind| format!("`{}`", escape(kind)))
        .collect();
    format!(
        "the model asks for what toolq doesn't run: {}",
        names.join(", ")
    )
}

/// Returns the recordings among inputs.
pub fn recordings(inputs: &[CommandInput]) -> impl Iterator<Item = &Recording> + Clone {
    inputs.iter().filter_map(|input| match input {
        CommandInput::Recording(recording) => Some(&**recording),
        CommandInput::Stream(_) | CommandInput::Follow(_) => None,
    })
}

/// Returns the error for a stream that `--from` calls a document of `given`.
fn stream_mismatch(name: &str, given: Dialect) -> CommandError {
    let message = format!("{name}:1:1: this is a stream of events, but `--from` says `{given}`");
    CommandError::usage(message).with_hint("leave it out: toolq detects the format")
}

/// Opens every named input as lines to follow.
///
/// # Errors
/// A file can't be opened, or `--from` names a stream.
pub fn open_follow_inputs(arguments: &InputArguments) -> Result<Vec<CommandInput>, CommandError> {
    if arguments
        .from
        .and_then(InputFormat::stream_vendor)
        .is_some()
    {
        let failure = CommandError::usage("--follow reads JSON lines, not a stream of events");
        return Err(failure.with_hint("leave it out: streams are answered as they arrive anyway"));
    }
    open_each(arguments, |_, name, file| {
        let from = arguments.from.and_then(InputFormat::dialect);
        let follow = LineFollower::new(name, from, arguments.max_document);
        let lines = FollowInput::new(ChunkReader::new(Vec::new(), file), follow);
        Ok(CommandInput::Follow(Box::new(lines)))
    })
}

fn open_each(
    arguments: &InputArguments,
    open: impl Fn(&Path, String, File) -> Result<CommandInput, CommandError>,
) -> Result<Vec<CommandInput>, CommandError> {
    if arguments.files.is_empty() && stdin::is_terminal() {
        return Err(CommandError::usage("no input: stdin is a terminal")
            .with_hint("name a file, or pipe in a model response: `curl … | toolq run`"));
    }
    let opened = arguments.paths().into_iter().map(|path| {
        let (name, file) = open_file(&path)?;
        open(&path, name, file)
    });
    opened.collect()
}

/// Verifies a session log that is used as an input, since its records decide which calls run. Returns its torn end, too,
/// if it has one.
///
/// # Errors
/// The log is corrupt, still being written, or not read from its start.
pub fn verify_session_log(
    recording: Recording,
    path: &Path,
) -> Result<(Recording, Option<Corruption>), CommandError> {
    let Some(file) = recording.file() else {
        return Err(CommandError::usage(
            "a session log must be read from its first line",
        ));
    };
    let name = match path.to_str() {
        Some("-") => Path::new("stdin"),
        _ => path,
    };
    let file = file.try_clone();
    let file = file.map_err(|error| unreadable_input(&name.display().to_string(), &error))?;
    let torn_end = toolq_log::verify_log(name, file).map_err(|error| {
        // It isn't the log of this run, so it is judged as any other input is.
        CommandError::usage(&error).with_hint(error.hint(Access::Read))
    })?;
    let recording = recording.with_content_loader(blob_loader(path));
    Ok((recording, torn_end))
}

/// Returns a loader for content that the session log stores in its directory of files.
fn blob_loader(log: &Path) -> Box<StoredContentLoader> {
    if log == Path::new("-") {
        return Box::new(reject_piped_blob);
    }
    let log = log.to_owned();
    Box::new(move |reference| {
        let stored: StoredBlob =
            serde_json::from_str(reference).map_err(|error| error.to_string())?;
        let body = RecordContent::Stored(stored).load(&log);
        body.map_err(|error| error.to_string())
    })
}

/// A piped log has no known location, so the files next to it can't be found.
fn reject_piped_blob(_: &str) -> Result<Box<RawValue>, String> {
    Err("this record refers to a file next to the session log: name the log, `toolq run LOG`, instead of piping it".to_owned())
}

/// Opens `path` for reading; `-` is stdin.
///
/// # Errors
/// It can't be opened.
pub fn open_source(path: &Path) -> Result<InputSource, CommandError> {
    let (name, file) = open_file(path)?;
    Ok(InputSource::from_file(name, file)?)
}

/// Opens `path` and returns it with its name for messages; `-` is stdin.
fn open_file(path: &Path) -> Result<(String, File), CommandError> {
    if path != Path::new("-") {
        let name = path.display().to_string();
        let opened = File::open(path).map_err(|error| unreadable_input(&name, &error))?;
        return Ok((name, opened));
    }
    Ok(("stdin".to_owned(), stdin::take()?))
}

/// Returns whether `file` is a stream of events, and the bytes that had to be consumed to tell.
fn detect_stream(mut file: &File) -> io::Result<(Vec<u8>, bool)> {
    let is_regular = file.metadata()?.is_file();
    let mut prefix = [0; DETECTION_BYTES];
    if is_regular {
        let position = io::Seek::stream_position(&mut file)?;
        let count = file.read_at(&mut prefix, position)?;
        return Ok((
            Vec::new(),
            transcript::is_event_stream(&prefix[..count]) == Some(true),
        ));
    }
    let mut len = 0;
    loop {
        let decision = transcript::is_event_stream(&prefix[..len]);
        if decision.is_some() || len == prefix.len() {
            return Ok((prefix[..len].to_vec(), decision == Some(true)));
        }
        match file.read(&mut prefix[len..]) {
            Ok(0) => return Ok((prefix[..len].to_vec(), false)),
            Ok(count) => len += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Converts the error of a stream that can't be read to its end. If no message had started, the input was wrong;
/// otherwise it broke off.
pub fn stream_failure(error: InputError, message_count: usize) -> CommandError {
    let failure = CommandError::from(error);
    match message_count {
        0 => failure,
        _ => CommandError {
            exit: Exit::Incomplete,
            ..failure
        },
    }
}

fn unreadable_input(name: &str, error: &io::Error) -> CommandError {
    CommandError::unusable_file(format!("{name} can't be read: {error}"), error)
}
