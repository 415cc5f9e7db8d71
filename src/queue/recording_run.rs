//! Replays one recording with the ordinary engine. Unlike a turn, it begins anew with each worker: only calls that change nothing
//! run.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::input::files::verify_session_log_at;
use crate::output::{CommandError, Exit};
use crate::queue::recording_message::{RecordingMessage, RecordingReport, UnreadableRecording};
use crate::queue::turn_failure::TurnFailure;
use crate::queue::turn_queue::TurnQueue;
use crate::queue::turn_run::TurnSettings;
use crate::queue::turn_session::{TakenTurn, TurnEnd, TurnSession};
use crate::replay::{RecordingReplayer, ReplayError};
use crate::session::DescribeWarningSink;
use toolq_core::json::expect_json;
use toolq_core::transcript::{InputSource, Recording};
use toolq_core::types::Dialect;
use toolq_log::BeginMode;

/// A recording as a worker has it.
pub(super) struct TakenRecording {
    pub message: RecordingMessage,
    pub bytes: Bytes,
    /// The names of the files beside it, if it is a session log that has some.
    pub files: Vec<String>,
}

/// Replays a recording. `forced` stops it in the middle.
pub(super) async fn replay_recording(
    settings: &TurnSettings<'_>,
    queue: &TurnQueue,
    taken: TakenTurn,
    recording: &TakenRecording,
    forced: impl Future<Output = u8> + Send + 'static,
) -> TurnEnd {
    let begun = TurnSession::begin(settings, queue, taken, BeginMode::ForceNewTask, forced).await;
    let mut session = match begun {
        Ok(session) => session,
        Err(end) => return end,
    };
    let path = session.file.dir().join("recording.jsonl");
    let answered = match write_recording(queue, recording, &path).await {
        Ok(()) => replay(settings, &mut session, recording, &path).await,
        Err(why) => Err(why),
    };
    let answered = answered.map(|report| expect_json(serde_json::to_string(&report)));
    session.end(answered)
}

/// Writes a recording, and the files that it refers to, so that only this user can read them.
async fn write_recording(
    queue: &TurnQueue,
    recording: &TakenRecording,
    path: &Path,
) -> Result<(), TurnFailure> {
    // The directory is this user's alone.
    fs::write(path, &recording.bytes)?;
    let dir = toolq_log::blob_dir_for(path);
    for name in &recording.files {
        let body = queue.read_file(name).await;
        let body = body.map_err(TurnFailure::Passing)?.ok_or_else(|| {
            TurnFailure::Permanent(format!("the file {name} of the recording is gone"))
        })?;
        fs::create_dir_all(&dir)?;
        fs::write(dir.join(name), body)?;
    }
    Ok(())
}

async fn replay(
    settings: &TurnSettings<'_>,
    session: &mut TurnSession,
    taken: &TakenRecording,
    path: &Path,
) -> Result<RecordingReport, TurnFailure> {
    let message = &taken.message;
    let mut report = RecordingReport::default();
    let recording = match open_recording(message, path) {
        Ok(recording) => recording,
        Err(failure) => {
            report.unreadable = Some(UnreadableRecording::from(failure));
            return Ok(report);
        }
    };
    let TurnSession { engine, sink, .. } = session;
    let replay_settings = message.settings.to_replay_settings();
    let mut replayer = RecordingReplayer::new(
        replay_settings.map_err(TurnFailure::Permanent)?,
        Arc::clone(&settings.setup.tools),
        engine.control(),
        Arc::clone(&settings.setup.mask),
    );
    let mut sink = DescribeWarningSink::new(sink, &settings.context.stderr, None);
    let name = &message.name;
    let replayed = replayer.replay_recording(name, &recording, engine, &mut sink, &mut report);
    match replayed.await {
        Ok(_) => {}
        Err(ReplayError::Input(error)) => {
            report.unreadable = Some(UnreadableRecording::from(CommandError::from(error)));
        }
        Err(error) => return Err(TurnFailure::Passing(error.to_string())),
    }
    let totals = replayer.totals();
    (report.files, report.turns) = (totals.files, totals.turns);
    report.is_incomplete = replayer.is_incomplete();
    Ok(report)
}

fn open_recording(message: &RecordingMessage, path: &Path) -> Result<Recording, CommandError> {
    let name = &message.name;
    let file = File::open(path)
        .map_err(|error| CommandError::usage(format!("{name} can't be read: {error}")))?;
    let source = InputSource::from_file(name, file)?;
    let settings = &message.settings;
    let recording = Recording::read(source, settings.dialect(), settings.max_document())?;
    match recording.dialect() {
        Dialect::Toolq => Ok(verify_session_log_at(recording, Path::new(name), path)?.0),
        _ => Ok(recording),
    }
}

impl From<CommandError> for UnreadableRecording {
    fn from(failure: CommandError) -> Self {
        Self {
            is_log: failure.exit == Exit::Log,
            message: failure.message,
            hint: failure.hint,
        }
    }
}
