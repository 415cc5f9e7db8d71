//! What a worker is given: a turn to answer, or a recording to replay.

use std::fmt::Display;

use async_nats::HeaderMap;
use bytes::Bytes;
use serde::Deserialize;

use crate::queue::answers::Answer;
use crate::queue::log_files::named_files;
use crate::queue::recording_message::{
    IS_RECORDING, RECORDING_VERSION, RecordingMessage, RecordingReport,
};
use crate::queue::recording_run::TakenRecording;
use crate::queue::turn_message::{MESSAGE_VERSION, TurnMessage};
use toolq_core::json::expect_json;
use toolq_core::types::{HaltCause, Turn};

pub(super) enum TurnWork {
    Turn(Turn),
    Recording(TakenRecording),
}

/// Why the first message of a turn can't be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnreadableWork {
    /// A newer toolq has written it.
    Newer,
    /// Another program has written it, for this reason.
    Invalid(String),
}

/// What all versions of the message have.
#[derive(Deserialize)]
struct MessageHead {
    version: u32,
}

impl MessageHead {
    /// Checks the version of a message before the rest of it is read: a newer toolq may write values that this one doesn't
    /// know.
    fn check(message: &[u8], known_version: u32) -> Result<(), UnreadableWork> {
        let head: Self = serde_json::from_slice(message).map_err(invalid)?;
        if head.version > known_version {
            return Err(UnreadableWork::Newer);
        }
        Ok(())
    }
}

fn invalid(why: impl Display) -> UnreadableWork {
    UnreadableWork::Invalid(why.to_string())
}

impl TurnWork {
    /// Reads the first message of a turn. Returns it with the digest of the tools that the turn needs.
    ///
    /// # Errors
    /// Another program, or a newer toolq, has written it.
    pub(super) fn parse(
        headers: Option<&HeaderMap>,
        payload: &Bytes,
    ) -> Result<(Self, String), UnreadableWork> {
        if headers.is_some_and(|headers| headers.get(IS_RECORDING).is_some()) {
            // The recording follows in the next line.
            let head = payload.split(|byte| *byte == b'\n').next();
            MessageHead::check(head.unwrap_or_default(), RECORDING_VERSION)?;
            let (message, bytes) = RecordingMessage::parse(payload).map_err(invalid)?;
            let tools_sha256 = message.tools_sha256.clone();
            let files = headers.map(named_files).unwrap_or_default();
            let recording = TakenRecording {
                message,
                bytes,
                files,
            };
            return Ok((Self::Recording(recording), tools_sha256));
        }
        MessageHead::check(payload, MESSAGE_VERSION)?;
        let message: TurnMessage = serde_json::from_slice(payload).map_err(invalid)?;
        let tools_sha256 = message.tools_sha256.clone();
        Ok((Self::Turn(message.into_turn()), tools_sha256))
    }

    pub(super) fn has_no_calls(&self) -> bool {
        matches!(self, Self::Turn(turn) if turn.calls.is_empty())
    }

    /// Returns the path of the input as it was given.
    pub(super) fn input(&self) -> Option<String> {
        match self {
            Self::Turn(turn) => turn.origin.input.clone(),
            Self::Recording(recording) => Some(recording.message.name.clone()),
        }
    }
}

/// Returns the answer of a recording that isn't replayed anymore.
pub(super) fn unreplayed(recording: &TakenRecording, cause: HaltCause) -> Answer {
    let why = match cause {
        HaltCause::ClientCanceled => "it was canceled",
        _ => "it isn't replayed anymore, as `toolq queue dead` says",
    };
    let name = &recording.message.name;
    let report = RecordingReport::of_unreadable(format!("{name} wasn't replayed: {why}"));
    Answer::without_doubts(expect_json(serde_json::to_string(&report)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(headers: Option<&HeaderMap>, payload: &'static str) -> Option<UnreadableWork> {
        TurnWork::parse(headers, &Bytes::from(payload)).err()
    }

    #[test]
    fn a_message_of_a_newer_toolq_is_known_as_such_whatever_it_has() {
        let newer = r#"{"version": 2, "form": "a-new-form", "calls": {}}"#;
        assert_eq!(refusal(None, newer), Some(UnreadableWork::Newer));
        let mut headers = HeaderMap::new();
        headers.insert(IS_RECORDING, "1");
        let newer = "{\"version\": 2}\nwith something else";
        assert_eq!(refusal(Some(&headers), newer), Some(UnreadableWork::Newer));
    }

    #[test]
    fn a_message_of_another_program_cannot_be_read() {
        for payload in ["", "[]", r#"{"version": 1, "form": "a-new-form"}"#] {
            let refusal = refusal(None, payload);
            assert!(matches!(refusal, Some(UnreadableWork::Invalid(_))));
        }
    }
}
