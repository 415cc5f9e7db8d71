//! What a worker is given: a turn to answer, or a recording to replay.

use async_nats::HeaderMap;
use bytes::Bytes;

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

/// What a worker must be like to do it.
pub(super) struct WorkRequirements {
    /// The digest of the tools.
    pub tools_sha256: String,
    /// Only a newer toolq knows the message.
    pub needs_newer: bool,
}

impl TurnWork {
    /// Reads the first message of a turn.
    ///
    /// # Errors
    /// Another program has written it.
    pub(super) fn parse(
        headers: Option<&HeaderMap>,
        payload: &Bytes,
    ) -> Result<(Self, WorkRequirements), String> {
        if headers.is_some_and(|headers| headers.get(IS_RECORDING).is_some()) {
            let (message, bytes) = RecordingMessage::parse(payload)?;
            let requirements = WorkRequirements {
                tools_sha256: message.tools_sha256.clone(),
                needs_newer: message.version > RECORDING_VERSION,
            };
            let files = headers.map(named_files).unwrap_or_default();
            let recording = TakenRecording {
                message,
                bytes,
                files,
            };
            return Ok((Self::Recording(recording), requirements));
        }
        let message: TurnMessage =
            serde_json::from_slice(payload).map_err(|error| error.to_string())?;
        let requirements = WorkRequirements {
            tools_sha256: message.tools_sha256.clone(),
            needs_newer: message.version > MESSAGE_VERSION,
        };
        Ok((Self::Turn(message.into_turn()), requirements))
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
        HaltCause::ClientCancelled => "it was canceled",
        _ => "it isn't replayed anymore, as `toolq queue dead` says",
    };
    let name = &recording.message.name;
    let report = RecordingReport::of_unreadable(format!("{name} wasn't replayed: {why}"));
    Answer::without_doubts(expect_json(serde_json::to_string(&report)))
}
