//! The inputs of `run` and `plan`: files or stdin, each read to its end before anything runs.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::path::Path;

use crate::cli::arguments::Input;
use crate::cli::failure::Failure;
use crate::model::Dialect;
use crate::parse::{LoadStored, Recording, Source};
use crate::record::{Body, Stored};

/// Reads every input that was named.
///
/// # Errors
/// A file that can't be opened, or an input that is no form of a model's answer, with its place.
pub fn read(arguments: &Input) -> Result<Vec<Recording>, Failure> {
    read_each(arguments, |source| source)
}

/// The same, with the digest of each.
///
/// # Errors
/// The same.
pub fn read_digested(arguments: &Input) -> Result<Vec<Recording>, Failure> {
    read_each(arguments, Source::digested)
}

fn read_each(
    arguments: &Input,
    prepare: impl Fn(Source) -> Source,
) -> Result<Vec<Recording>, Failure> {
    let stdin = [Path::new("-").to_path_buf()];
    let files = match arguments.files.as_slice() {
        [] => &stdin[..],
        files => files,
    };
    let read = |file| {
        let from = arguments.from.map(Into::into);
        let source = prepare(source(file)?);
        let recording = Recording::read(source, from, arguments.max_document)?;
        Ok(match recording.dialect() {
            Dialect::Toolq => recording.loading(stored_beside(file)),
            _ => recording,
        })
    };
    files.iter().map(|file| read(file)).collect()
}

/// Loads what a session log keeps in the folder beside it.
pub fn stored_beside(log: &Path) -> Box<LoadStored> {
    let log = log.to_owned();
    Box::new(move |named| {
        let stored: Stored = serde_json::from_str(named).map_err(|error| error.to_string())?;
        let body = Body::Stored(stored).load(&log);
        body.map_err(|error| error.to_string())
    })
}

/// The bytes of `file`; `-` is stdin.
///
/// # Errors
/// It can't be opened, or is a terminal, where nobody would know that input is awaited.
pub fn source(file: &Path) -> Result<Source, Failure> {
    if file != Path::new("-") {
        let name = file.display().to_string();
        let opened = File::open(file)
            .map_err(|error| Failure::usage(format!("{name} can't be read: {error}")))?;
        return Ok(Source::file(name, opened)?);
    }
    if io::stdin().is_terminal() {
        return Err(Failure::usage("stdin is a terminal, so there is no input")
            .with_hint("name a file, or pipe a model's answer in: `curl … | toolq run`"));
    }
    // A file behind `<` is read where it is, like one that was named.
    let stdin = io::stdin().as_fd().try_clone_to_owned();
    let stdin = stdin.map_err(|error| Failure::usage(format!("stdin can't be read: {error}")))?;
    Ok(Source::file("stdin", File::from(stdin))?)
}
