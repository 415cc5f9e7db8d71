//! A turn as a message: what a worker needs to run it as if it had read the input itself.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use crate::turn_log::TurnNotAnswered;
use toolq_core::types::Turn;

/// The version of the message. A worker that knows only older ones hands the turn back.
const MESSAGE_VERSION: u32 = 2;

/// The first message of a turn.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TurnMessage {
    version: u32,
    /// The digest of the tools that the turn is to run with.
    pub tools_sha256: String,
    pub turn: Turn,
}

/// What all versions of the message have. It is read first: a newer toolq may write values that this one doesn't know.
#[derive(Deserialize)]
struct MessageHead {
    version: u32,
}

impl TurnMessage {
    pub(super) fn new(turn: Turn, tools_sha256: String) -> Self {
        Self {
            version: MESSAGE_VERSION,
            tools_sha256,
            turn,
        }
    }

    /// Reads the first message of a turn.
    ///
    /// # Errors
    /// Another program, or a newer toolq, has written it.
    pub(super) fn read(payload: &[u8]) -> Result<Self, TurnNotAnswered> {
        let head: MessageHead = serde_json::from_slice(payload).map_err(invalid)?;
        if head.version > MESSAGE_VERSION {
            let why = "turns that were submitted by a newer toolq are handed back";
            return Err(TurnNotAnswered::Foreign(why.to_owned()));
        }
        serde_json::from_slice(payload).map_err(invalid)
    }
}

fn invalid(why: impl Display) -> TurnNotAnswered {
    TurnNotAnswered::HandedBack(format!("it can't be read: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::json::Input;
    use toolq_core::types::{AnswerForm, Call, CallKind};

    #[test]
    fn a_message_of_a_newer_toolq_is_known_as_such_whatever_it_has() {
        let newer = br#"{"version": 3, "form": "a-new-form", "calls": {}}"#;
        let refusal = TurnMessage::read(newer).err();
        assert!(matches!(refusal, Some(TurnNotAnswered::Foreign(_))));
    }

    #[test]
    fn a_message_of_another_program_cannot_be_read() {
        for payload in ["", "[]", r#"{"version": 2, "turn": {}}"#] {
            let refusal = TurnMessage::read(payload.as_bytes()).err();
            assert!(matches!(refusal, Some(TurnNotAnswered::HandedBack(_))));
        }
    }

    /// A worker runs what was submitted: the digits of its numbers, and why an input is none.
    #[test]
    fn a_turn_arrives_as_it_was_submitted() {
        let call = |input: &str| Call {
            turn: 3,
            position: 0,
            id: "a".to_owned(),
            has_number_id: false,
            kind: CallKind::Custom,
            name: "pay".into(),
            input: Input::parse(input).map_err(Box::new),
            parent: None,
        };
        let calls = vec![call(r#"{"eur": 1.00}"#), call("[]")];
        let mut turn = Turn::of_calls(3, calls, AnswerForm::Gemini);
        turn.broken_from = Some(1);
        let message = serde_json::to_vec(&TurnMessage::new(turn.clone(), "0a".to_owned())).unwrap();
        let read = TurnMessage::read(&message).unwrap();
        assert_eq!(format!("{:?}", read.turn), format!("{turn:?}"));
    }
}
