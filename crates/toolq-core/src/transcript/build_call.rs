//! Creates the calls of a turn from their JSON.

use crate::json::{JsonText, ParsedObject};
use crate::transcript::index::CallEntry;
use crate::transcript::raw_call::RawCall;
use crate::types::Call;
use sha2::{Digest as _, Sha256};

/// Parses `call` from `text`, which starts at byte `text_offset` of the input.
pub(crate) fn extract_call(
    text: &str,
    call: CallEntry,
    text_offset: u64,
) -> Option<ParsedObject<'_>> {
    let at = usize::try_from(call.offset - text_offset).ok()?;
    let text = text.get(at..at + call.len as usize)?;
    ParsedObject::parse(text).ok().flatten()
}

/// Creates the call at a position of a turn. If it has no id, it gets one that is the same on every run. `call` is its
/// JSON.
pub(crate) fn build_call(turn: usize, position: usize, raw: RawCall, call: JsonText) -> Call {
    let RawCall { id, name, input } = raw;
    let name = name.unwrap_or_default();
    let id = id.unwrap_or_else(|| generate_call_id(turn, position, &name, call.get()));
    Call {
        turn,
        position,
        id,
        name,
        input,
        parent: None,
    }
}

/// Generates the id of a call that has none, from its position, its name, and its JSON.
pub(crate) fn generate_call_id(turn: usize, position: usize, name: &str, call: &str) -> String {
    let text = format!("{turn}\0{position}\0{name}\0{call}");
    let digest = Sha256::digest(text);
    let hex = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
    hex.fold("toolq_".to_owned(), |id, byte| id + &byte)
}
