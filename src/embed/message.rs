//! Reads messages.

use std::io::Cursor;

use toolq_core::transcript::{InputSource, Recording};

use crate::embed::error::Error;

/// Reads a message, or a recording of many.
pub(crate) fn read_message(message: Vec<u8>, max_bytes: u64) -> Result<Recording, Error> {
    let source = InputSource::from_pipe("message", Cursor::new(message))?;
    Ok(Recording::read(source, None, max_bytes)?)
}
