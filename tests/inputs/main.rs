//! What is read of an input: every documented shape, and what is no such shape.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod calls;
mod hostile;
mod refused;
mod shapes;

use std::io::Cursor;

use toolq_core::json::Input;
use toolq_core::transcript::{InputError, Place, Recording, Source};
use toolq_core::types::{Dialect, Turn};

/// The largest document, in bytes.
const MAX: u64 = 1 << 20;

fn read(text: impl AsRef<[u8]>) -> Result<Recording, InputError> {
    read_as(None, text)
}

fn read_as(from: Option<Dialect>, text: impl AsRef<[u8]>) -> Result<Recording, InputError> {
    let bytes = Cursor::new(text.as_ref().to_vec());
    Recording::read(Source::pipe("in", bytes).unwrap(), from, MAX)
}

fn turns(recording: &Recording) -> Vec<Turn> {
    let numbers = 0..recording.len();
    numbers
        .map(|number| recording.turn(number, false).unwrap())
        .collect()
}

/// The calls that are to be answered, as `turn.position:id name input`.
fn calls(text: &str) -> Vec<String> {
    let recording = read(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let turns = turns(&recording);
    let calls = turns.iter().flat_map(|turn| &turn.calls);
    let shown = calls.map(|call| {
        let input = call.input.as_ref().map_or("!", Input::text);
        format!(
            "{}.{}:{} {} {input}",
            call.turn, call.position, call.id, call.name
        )
    });
    shown.collect()
}

/// The error that a text gives: line, column, message.
fn error(text: impl AsRef<[u8]>) -> (usize, usize, String) {
    let Err(error) = read(text) else {
        panic!("it was read");
    };
    let Place { line, column } = error.place.unwrap();
    (line, column, error.message)
}
