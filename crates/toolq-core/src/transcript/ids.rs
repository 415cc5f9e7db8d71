use crate::json::{Json, Object};
use crate::transcript::index::CallEntry;
use crate::transcript::raw_call::Asked;
use crate::types::Call;
use sha2::{Digest as _, Sha256};

/// A call in a text that begins at `begin` of the input.
pub(crate) fn within(text: &str, call: CallEntry, begin: u64) -> Option<Object<'_>> {
    let at = usize::try_from(call.offset - begin).ok()?;
    let text = text.get(at..at + call.len as usize)?;
    Object::read(text).ok().flatten()
}

/// A call in its place. Where it has no id, it gets one that is the same on every run.
pub(crate) fn finish(turn: usize, position: usize, asked: Asked, call: Json) -> Call {
    let Asked { id, name, input } = asked;
    let name = name.unwrap_or_default();
    let id = id.unwrap_or_else(|| made_id(turn, position, &name, call.get()));
    Call {
        turn,
        position,
        id,
        name,
        input,
        within: None,
    }
}

/// The id of a call that has none; `call` is what it asks.
pub(crate) fn made_id(turn: usize, position: usize, name: &str, call: &str) -> String {
    let text = format!("{turn}\0{position}\0{name}\0{call}");
    let digest = Sha256::digest(text);
    let hex = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
    hex.fold("toolq_".to_owned(), |id, byte| id + &byte)
}
