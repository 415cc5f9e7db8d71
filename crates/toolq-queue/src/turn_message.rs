//! A turn as a message: what a worker needs to run it as if it had read the input itself.

use std::borrow::Cow;
use std::fmt::Display;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::turn_log::TurnNotAnswered;
use toolq_core::json::{Input, InvalidInput};
use toolq_core::types::{AnswerForm, Call, CallKind, ResponseEnding, Turn, TurnOrigin};

/// The version of the message. A worker that knows only older ones hands the turn back.
const MESSAGE_VERSION: u32 = 1;

/// The first message of a turn.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TurnMessage {
    version: u32,
    /// The digest of the tools that the turn is to run with.
    tools_sha256: String,
    /// The path of the input as it was given, or `-`.
    input: Option<String>,
    number: usize,
    calls: Vec<CallMessage>,
    form: AnswerForm,
    ending: ResponseEnding,
    started_positions: Vec<usize>,
    in_doubt_positions: Vec<usize>,
    /// Positions of calls that may have a result in the input, which doesn't say whose it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unsure_positions: Vec<usize>,
    message_id: Option<String>,
    model: Option<String>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
struct CallMessage {
    position: usize,
    id: String,
    /// Its id came as a number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_number_id: bool,
    /// It calls a custom tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_custom: bool,
    name: String,
    /// The input's text, digit by digit.
    input: Option<Box<RawValue>>,
    /// Why there is no input.
    invalid: Option<String>,
}

/// What all versions of the message have. It is read first: a newer toolq may write values that this one doesn't know.
#[derive(Deserialize)]
struct MessageHead {
    version: u32,
}

impl TurnMessage {
    /// Reads the first message of a turn. Returns the turn with the digest of the tools that it needs.
    ///
    /// # Errors
    /// Another program, or a newer toolq, has written it.
    pub(super) fn read(payload: &[u8]) -> Result<(Turn, String), TurnNotAnswered> {
        let head: MessageHead = serde_json::from_slice(payload).map_err(invalid)?;
        if head.version > MESSAGE_VERSION {
            let why = "turns that were submitted by a newer toolq are handed back";
            return Err(TurnNotAnswered::Foreign(why.to_owned()));
        }
        let message: Self = serde_json::from_slice(payload).map_err(invalid)?;
        let tools_sha256 = message.tools_sha256.clone();
        Ok((message.into_turn(), tools_sha256))
    }

    pub(super) fn new(turn: &Turn, tools_sha256: &str, input: &str, form: AnswerForm) -> Self {
        Self {
            version: MESSAGE_VERSION,
            tools_sha256: tools_sha256.to_owned(),
            input: Some(input.to_owned()),
            number: turn.number,
            calls: turn.calls.iter().map(CallMessage::new).collect(),
            form,
            ending: turn.ending,
            started_positions: turn.started_positions.clone(),
            in_doubt_positions: turn.in_doubt_positions.clone(),
            unsure_positions: turn.unsure_positions.clone(),
            message_id: turn.origin.message_id.clone(),
            model: turn.origin.model.clone(),
        }
    }

    fn into_turn(self) -> Turn {
        let number = self.number;
        let calls = self.calls.into_iter().map(|call| call.into_call(number));
        Turn {
            ending: self.ending,
            started_positions: self.started_positions,
            in_doubt_positions: self.in_doubt_positions,
            unsure_positions: self.unsure_positions,
            origin: TurnOrigin {
                input: self.input,
                message_id: self.message_id,
                model: self.model,
                ..TurnOrigin::default()
            },
            ..Turn::of_calls(number, calls.collect(), self.form)
        }
    }
}

fn invalid(why: impl Display) -> TurnNotAnswered {
    TurnNotAnswered::HandedBack(format!("it can't be read: {why}"))
}

impl CallMessage {
    fn new(call: &Call) -> Self {
        let (input, invalid) = match &call.input {
            Ok(input) => (RawValue::from_string(input.text().to_owned()).ok(), None),
            Err(invalid) if **invalid == InvalidInput::MissingName => {
                (None, Some(Cow::Borrowed(MISSING_NAME)))
            }
            Err(invalid) => (None, Some(Cow::Owned(invalid.to_string()))),
        };
        Self {
            position: call.position,
            id: call.id.clone(),
            has_number_id: call.has_number_id,
            is_custom: call.kind == CallKind::Custom,
            name: call.name.to_string(),
            input,
            invalid: invalid.map(Cow::into_owned),
        }
    }

    fn into_call(self, turn: usize) -> Call {
        let input = match (self.input, self.invalid) {
            (Some(input), _) => Input::parse(input.get()),
            (None, Some(why)) if why == MISSING_NAME => Err(InvalidInput::MissingName),
            (None, Some(why)) => Err(InvalidInput::Recorded(why)),
            (None, None) => Err(InvalidInput::Missing),
        };
        Call {
            turn,
            position: self.position,
            id: self.id,
            has_number_id: self.has_number_id,
            name: self.name.into(),
            input: input.map_err(Box::new),
            parent: None,
            kind: if self.is_custom {
                CallKind::Custom
            } else {
                CallKind::Function
            },
        }
    }
}

/// Encodes [`InvalidInput::MissingName`], which readers must distinguish from the other reasons.
const MISSING_NAME: &str = "missing-name";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_newer_toolq_is_known_as_such_whatever_it_has() {
        let newer = br#"{"version": 2, "form": "a-new-form", "calls": {}}"#;
        let refusal = TurnMessage::read(newer).err();
        assert!(matches!(refusal, Some(TurnNotAnswered::Foreign(_))));
    }

    #[test]
    fn a_message_of_another_program_cannot_be_read() {
        for payload in ["", "[]", r#"{"version": 1, "form": "a-new-form"}"#] {
            let refusal = TurnMessage::read(payload.as_bytes()).err();
            assert!(matches!(refusal, Some(TurnNotAnswered::HandedBack(_))));
        }
    }
}
