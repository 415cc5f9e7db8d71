//! Parsers that other crates only reach through larger ones.

use crate::template::{VariableMode, parse_with_marks};
use crate::transcript::{SseDecoder, SseError};
use crate::types::Template;

/// The data of a server-sent event, with the line and the column where it begins.
pub type SseData = (String, usize, usize);

/// Decodes server-sent events that arrive in `pieces`. Returns the events and, if decoding failed, the line where.
pub fn decode_sse<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    max_event_bytes: u64,
) -> (Vec<SseData>, Option<usize>) {
    let mut decoder = SseDecoder::new(max_event_bytes);
    let mut events = Vec::new();
    for mut piece in pieces {
        loop {
            match decoder.next_event(&mut piece) {
                Ok(Some(event)) => events.push((event.text, event.line, event.column)),
                Ok(None) => break,
                Err(error) => return (events, Some(error_line(error))),
            }
        }
    }
    match decoder.finish() {
        Ok(last) => {
            events.extend(last.map(|event| (event.text, event.line, event.column)));
            (events, None)
        }
        Err(error) => (events, Some(error_line(error))),
    }
}

fn error_line(error: SseError) -> usize {
    match error {
        SseError::NotUtf8 { line } | SseError::TooLarge { line } => line,
    }
}

/// Parses a template in which environment variables aren't expanded, as in the arguments of a command.
pub fn parse_argument_template(text: &str) -> Template {
    parse_with_marks(text, VariableMode::Literal).template
}
