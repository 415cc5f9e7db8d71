//! The inputs of `run` and `plan`: files or stdin, each read to its end before anything runs.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::path::Path;

use serde_json::value::RawValue;

use crate::cli::arguments::Input;
use crate::cli::failure::Failure;
use crate::parse::{Recording, Source};
use crate::record::Body;

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
        Ok(Recording::read(source, from, arguments.max_document)?)
    };
    files.iter().map(|file| read(file)).collect()
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
        let log = file.to_owned();
        let bodies = move |stored: &RawValue| Body::read_stored(stored, &log);
        return Ok(Source::file(name, opened)?.with_bodies(Box::new(bodies)));
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
