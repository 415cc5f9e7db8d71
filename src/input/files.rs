//! The inputs of `run` and `plan`: files or stdin. What is no stream is read to its end before anything runs.

use std::fs::File;
use std::io::{self, Cursor, IsTerminal as _, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde_json::value::RawValue;

use crate::args::{FromDialect, Input};
use crate::input::chunk_reader::Feed;
use crate::input::follow::Lines;
use crate::input::stream::Live;
use crate::output::{Exit, Failure};
use toolq_core::transcript;
use toolq_core::transcript::{Follow, InputError, LoadStored, Recording, Source, Stream};
use toolq_core::types::Dialect;
use toolq_log::{Body, Stored};

/// Bytes by which a stream is recognised, at most.
const BEGIN: usize = 16;

/// An input.
pub enum Incoming {
    /// It was read to its end.
    Recording(Box<Recording>),
    /// A stream, which is read as it arrives.
    Stream(Box<Live>),
    /// Lines that are answered as they arrive.
    Lines(Box<Lines>),
}

/// Opens every input that was named: streams are still to be read, all else is read, once `prepare` saw to it.
///
/// # Errors
/// A file that can't be opened, or an input that is no form of a model's answer, with its place.
pub fn open(arguments: &Input, prepare: fn(Source) -> Source) -> Result<Vec<Incoming>, Failure> {
    each(arguments, |path, name, file| {
        let vendor = arguments.from.and_then(FromDialect::vendor);
        let (begin, is_stream) = match arguments.from {
            Some(_) => (Vec::new(), vendor.is_some()),
            None => recognise(&file).map_err(|error| unreadable(&name, &error))?,
        };
        if is_stream {
            let stream = Stream::new(name, vendor, arguments.max_document);
            let live = Live::new(Feed::new(begin, file), stream);
            return Ok(Incoming::Stream(Box::new(live)));
        }
        let source = if begin.is_empty() {
            Source::file(name, file)?
        } else {
            Source::pipe(name, Cursor::new(begin).chain(file))?
        };
        let from = arguments.from.map(Into::into);
        let recording = Recording::read(prepare(source), from, arguments.max_document)?;
        let recording = match recording.dialect() {
            Dialect::Toolq => of_log(recording, path)?,
            _ => recording,
        };
        recording.check_stored(arguments.all)?;
        Ok(Incoming::Recording(Box::new(recording)))
    })
}

/// Opens every input that was named as lines.
///
/// # Errors
/// A file that can't be opened.
pub fn follow(arguments: &Input) -> Result<Vec<Incoming>, Failure> {
    if arguments.from.and_then(FromDialect::vendor).is_some() {
        let failure = Failure::usage("--follow reads JSON lines, not a stream of events");
        return Err(failure.with_hint("a stream is answered as it arrives without it"));
    }
    each(arguments, |_, name, file| {
        let from = arguments.from.map(Into::into);
        let follow = Follow::new(name, from, arguments.max_document);
        let lines = Lines::new(Feed::new(Vec::new(), file), follow);
        Ok(Incoming::Lines(Box::new(lines)))
    })
}

fn each(
    arguments: &Input,
    open: impl Fn(&Path, String, File) -> Result<Incoming, Failure>,
) -> Result<Vec<Incoming>, Failure> {
    let stdin = [Path::new("-").to_path_buf()];
    let files = match arguments.files.as_slice() {
        [] => &stdin[..],
        files => files,
    };
    let opened = files.iter().map(|path| {
        let (name, file) = file(path)?;
        open(path, name, file)
    });
    opened.collect()
}

/// The recording that a session log is. What it says of its calls decides what runs.
///
/// # Errors
/// It is not as a run wrote it, or one still writes it.
pub fn of_log(recording: Recording, path: &Path) -> Result<Recording, Failure> {
    let Some(file) = recording.file() else {
        return Err(Failure::usage(
            "a session log is read from its first line on",
        ));
    };
    let name = match path.to_str() {
        Some("-") => Path::new("stdin"),
        _ => path,
    };
    let file = file.try_clone();
    let file = file.map_err(|error| unreadable(&name.display().to_string(), &error))?;
    toolq_log::witness(name, file)?;
    Ok(recording.loading(stored_beside(path)))
}

/// Loads what a session log keeps in the folder beside it.
pub fn stored_beside(log: &Path) -> Box<LoadStored> {
    if log == Path::new("-") {
        return Box::new(stored_nowhere);
    }
    let log = log.to_owned();
    Box::new(move |named| {
        let stored: Stored = serde_json::from_str(named).map_err(|error| error.to_string())?;
        let body = Body::Stored(stored).load(&log);
        body.map_err(|error| error.to_string())
    })
}

/// Of a log that is piped nobody knows what it stands beside.
fn stored_nowhere(_: &str) -> Result<Box<RawValue>, String> {
    Err("what this record names stands in a file beside the session log: name the log, `toolq run LOG`, instead of piping it".to_owned())
}

/// The bytes of `path`; `-` is stdin.
///
/// # Errors
/// It can't be opened, or is a terminal, where nobody would know that input is awaited.
pub fn source(path: &Path) -> Result<Source, Failure> {
    let (name, file) = file(path)?;
    Ok(Source::file(name, file)?)
}

/// The file at `path` with the name that people see; `-` is stdin.
fn file(path: &Path) -> Result<(String, File), Failure> {
    if path != Path::new("-") {
        let name = path.display().to_string();
        let opened = File::open(path).map_err(|error| unreadable(&name, &error))?;
        return Ok((name, opened));
    }
    if io::stdin().is_terminal() {
        return Err(Failure::usage("stdin is a terminal, so there is no input")
            .with_hint("name a file, or pipe a model's answer in: `curl … | toolq run`"));
    }
    // A file behind `<` is read where it is, like one that was named.
    let stdin = io::stdin().as_fd().try_clone_to_owned();
    let stdin = stdin.map_err(|error| unreadable("stdin", &error))?;
    Ok(("stdin".to_owned(), File::from(stdin)))
}

/// Whether `file` holds a stream, and what had to be taken from it to know.
fn recognise(mut file: &File) -> io::Result<(Vec<u8>, bool)> {
    let is_regular = file.metadata()?.is_file();
    let mut begin = [0; BEGIN];
    if is_regular {
        let at = io::Seek::stream_position(&mut file)?;
        let count = file.read_at(&mut begin, at)?;
        return Ok((
            Vec::new(),
            transcript::is_stream(&begin[..count]) == Some(true),
        ));
    }
    let mut known = 0;
    loop {
        let found = transcript::is_stream(&begin[..known]);
        if found.is_some() || known == begin.len() {
            return Ok((begin[..known].to_vec(), found == Some(true)));
        }
        match file.read(&mut begin[known..]) {
            Ok(0) => return Ok((begin[..known].to_vec(), false)),
            Ok(count) => known += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Why a stream can't be read to its end. Where none of its messages had begun, it is no stream of a model.
pub fn broken(error: InputError, messages: usize) -> Failure {
    let failure = Failure::from(error);
    match messages {
        0 => failure,
        _ => Failure {
            exit: Exit::Stopped,
            ..failure
        },
    }
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::usage(format!("{name} can't be read: {error}"))
}
