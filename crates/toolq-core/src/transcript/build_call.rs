//! Creates the calls of a turn from their JSON.

use crate::json::{Input, ParsedObject, to_json_line};
use crate::transcript::index::CallIndexEntry;
use crate::transcript::raw_call::RawCall;
use crate::types::Call;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// Parses `call` from `text`, which starts at byte `text_offset` of the input.
pub(crate) fn extract_call(
    text: &str,
    call: CallIndexEntry,
    text_offset: u64,
) -> Option<ParsedObject<'_>> {
    let at = usize::try_from(call.offset - text_offset).ok()?;
    let text = text.get(at..at + call.len as usize)?;
    ParsedObject::parse(text).ok().flatten()
}

/// Creates the call at a position of a turn. If it has no id, it gets one that is the same on every run, and whether or
/// not the call was streamed.
pub(crate) fn call_with_id(turn: usize, position: usize, raw: RawCall) -> Call {
    let RawCall { id, name, input } = raw;
    let name = name.unwrap_or_default();
    let id = id.unwrap_or_else(|| {
        let input = input.as_ref().map_or("", Input::text);
        generate_call_id(turn, position, &name, &to_json_line(input))
    });
    Call {
        turn,
        position,
        id,
        name: name.into(),
        input: input.map_err(Box::new),
        parent: None,
    }
}

/// Generates the id of a call without one, from its position, its name, and its input on one line.
fn generate_call_id(turn: usize, position: usize, name: &str, input: &str) -> String {
    let text = format!("{turn}\0{position}\0{name}\0{input}");
    let digest = Sha256::digest(text);
    format!("toolq_{}", HEXLOWER.encode(&digest[..8]))
}
