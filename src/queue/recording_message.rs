//! A recording as a message, and the report that a worker answers it with.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::replay::{
    CaseResult, ExecutePolicy, ReplayCase, ReplayReport, ReplaySettings, ReplayTotals,
};
use toolq_core::json::expect_json;
use toolq_core::types::{CallRef, Dialect, IgnorePattern, TextNormalizer};

/// The header of a turn that is a recording to replay.
pub(super) const IS_RECORDING: &str = "Toolq-Recording";
/// The version of the message. A worker that knows only older ones hands the turn back.
pub(super) const RECORDING_VERSION: u32 = 1;

/// What all recordings of a replay are replayed with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RecordingSettings {
    /// Whether calls of read-only tools run. Others never do: a recording may be handed out twice.
    runs_reads: bool,
    is_strict: bool,
    ignored: Vec<String>,
    /// Regular expressions.
    ignored_text: Vec<String>,
    renames_ids: bool,
    /// In digits, so that it stays what it is.
    tolerance: Option<String>,
    dialect: Option<String>,
    max_document: u64,
}

impl RecordingSettings {
    pub(crate) fn new(
        settings: &ReplaySettings,
        dialect: Option<Dialect>,
        max_document: u64,
    ) -> Self {
        let ignored_text = settings.normalizers.iter();
        Self {
            runs_reads: settings.execute == ExecutePolicy::Read,
            is_strict: settings.strict,
            ignored: settings.ignored.iter().map(ToString::to_string).collect(),
            ignored_text: ignored_text
                .map(|normalizer| normalizer.pattern().to_owned())
                .collect(),
            renames_ids: settings.rename_ids,
            tolerance: settings.tolerance.map(|tolerance| tolerance.to_string()),
            dialect: dialect.map(|dialect| dialect.name().to_owned()),
            max_document,
        }
    }

    /// Returns the settings of the replayer.
    ///
    /// # Errors
    /// They are invalid, so this version of toolq didn't write them.
    pub(super) fn to_replay_settings(&self) -> Result<ReplaySettings, String> {
        let ignored = self.ignored.iter().map(|part| IgnorePattern::parse(part));
        let normalizers = self
            .ignored_text
            .iter()
            .map(|pattern| TextNormalizer::removing(pattern));
        let tolerance = self.tolerance.as_deref().map(str::parse).transpose();
        Ok(ReplaySettings {
            execute: if self.runs_reads {
                ExecutePolicy::Read
            } else {
                ExecutePolicy::None
            },
            ignored: ignored.collect::<Result<_, _>>()?,
            normalizers: normalizers.collect::<Result<_, _>>()?,
            tolerance: tolerance.map_err(|_| "the tolerance isn't a number".to_owned())?,
            rename_ids: self.renames_ids,
            update_recordings: false,
            strict: self.is_strict,
            fail_fast: false,
        })
    }

    pub(super) fn dialect(&self) -> Option<Dialect> {
        let name = self.dialect.as_deref()?;
        Dialect::ALL
            .into_iter()
            .find(|dialect| dialect.name() == name)
    }

    pub(super) fn max_document(&self) -> u64 {
        self.max_document
    }

    /// Returns a text that is the same for the same settings alone.
    pub(crate) fn to_text(&self) -> String {
        expect_json(serde_json::to_string(self))
    }
}

/// What a worker needs to replay a recording. In the message, the recording itself follows in the next line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordingMessage {
    pub version: u32,
    /// The digest of the tools that it is to be replayed with.
    pub tools_sha256: String,
    /// Its path, as it was given.
    pub name: String,
    pub settings: RecordingSettings,
}

impl RecordingMessage {
    /// Returns the payload with the recording.
    pub(super) fn to_payload(&self, recording: &[u8]) -> Bytes {
        let mut payload = expect_json(serde_json::to_vec(self));
        payload.push(b'\n');
        payload.extend_from_slice(recording);
        payload.into()
    }

    /// Returns the message and the recording.
    pub(super) fn parse(payload: &Bytes) -> Result<(Self, Bytes), String> {
        let end = payload.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| "it has no recording".to_owned())?;
        let message = serde_json::from_slice(&payload[..end]);
        let message = message.map_err(|error| error.to_string())?;
        Ok((message, payload.slice(end + 1..)))
    }
}

/// What a worker found out about a recording.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct RecordingReport {
    /// 1 if the recording could be read.
    pub files: usize,
    pub turns: usize,
    cases: Vec<CaseReport>,
    /// Why it couldn't be read to its end, if so.
    pub unreadable: Option<UnreadableRecording>,
    /// Whether a call needs attention.
    pub is_incomplete: bool,
}

/// Why a recording couldn't be read to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UnreadableRecording {
    pub message: String,
    pub hint: Option<String>,
    /// It is a session log that can't be used.
    pub is_log: bool,
}

/// A [`ReplayCase`] without the name of its recording.
#[derive(Debug, Serialize, Deserialize)]
struct CaseReport {
    turn: usize,
    position: usize,
    tool_use_id: String,
    tool_name: String,
    input: String,
    result: CaseResult,
    duration: Duration,
    executed: bool,
}

impl RecordingReport {
    /// The report of a recording that wasn't replayed.
    pub(super) fn of_unreadable(message: String) -> Self {
        Self {
            unreadable: Some(UnreadableRecording {
                message,
                hint: None,
                is_log: false,
            }),
            ..Self::default()
        }
    }

    /// Adds its calls to a report, and counts them.
    ///
    /// # Errors
    /// The report can't be written.
    pub(crate) fn add_to(
        self,
        file: &str,
        report: &mut dyn ReplayReport,
        totals: &mut ReplayTotals,
    ) -> io::Result<()> {
        totals.files += self.files;
        totals.turns += self.turns;
        for case in self.cases {
            let call = CallRef {
                turn: case.turn,
                position: case.position,
                tool_use_id: case.tool_use_id,
                tool_name: case.tool_name.into(),
                batch: None,
                parent: None,
            };
            let case = ReplayCase {
                file,
                call: &call,
                input: &case.input,
                result: case.result,
                duration: case.duration,
                executed: case.executed,
            };
            totals.count_case(&case);
            report.add_case(&case)?;
        }
        match &self.unreadable {
            Some(unreadable) => report.add_unreadable(file, &unreadable.message),
            None => Ok(()),
        }
    }
}

/// Keeps the calls for the answer.
impl ReplayReport for RecordingReport {
    fn add_case(&mut self, case: &ReplayCase<'_>) -> io::Result<()> {
        self.cases.push(CaseReport {
            turn: case.call.turn,
            position: case.call.position,
            tool_use_id: case.call.tool_use_id.clone(),
            tool_name: case.call.tool_name.to_string(),
            input: case.input.to_owned(),
            result: case.result.clone(),
            duration: case.duration,
            executed: case.executed,
        });
        Ok(())
    }

    fn add_unreadable(&mut self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &ReplayTotals) -> io::Result<()> {
        Ok(())
    }
}
