//! Parsing inputs: every documented shape, and errors for everything else.

mod calls;
mod hostile_inputs;
mod input_errors;
mod open_calls;
mod shapes;
mod unusual_calls;

use std::io::Cursor;

use toolq_core::json::Input;
use toolq_core::transcript::{InputError, InputSource, LineCol, Recording};
use toolq_core::types::{Dialect, Turn};

/// The largest allowed document, in bytes.
const MAX_DOCUMENT_BYTES: u64 = 1 << 20;

fn read(text: impl AsRef<[u8]>) -> Result<Recording, InputError> {
    read_as(None, text)
}

fn read_as(from: Option<Dialect>, text: impl AsRef<[u8]>) -> Result<Recording, InputError> {
    let bytes = Cursor::new(text.as_ref().to_vec());
    Recording::read(
        InputSource::from_pipe("in", bytes).unwrap(),
        from,
        MAX_DOCUMENT_BYTES,
    )
}

fn turns(recording: &Recording) -> Vec<Turn> {
    let numbers = 0..recording.len();
    numbers
        .map(|number| recording.turn(number, false).unwrap())
        .collect()
}

/// Returns the calls without a result, as `turn.position:id name input`; an invalid input is `!`.
fn open_calls(text: &str) -> Vec<String> {
    let recording = read(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let turns = turns(&recording);
    let calls = turns.iter().flat_map(|turn| &turn.calls);
    let lines = calls.map(|call| {
        let input = call.input.as_ref().map_or("!", Input::text);
        format!(
            "{}.{}:{} {} {input}",
            call.turn, call.position, call.id, call.name
        )
    });
    lines.collect()
}

/// Returns the line, column and message of the error that a text causes.
fn read_error(text: impl AsRef<[u8]>) -> (usize, usize, String) {
    let Err(error) = read(text) else {
        panic!("the input is valid");
    };
    let LineCol { line, column } = error.position.unwrap();
    (line, column, error.message)
}
