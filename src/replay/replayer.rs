//! Replays recordings turn by turn, and counts what came of it.

use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use crate::replay::case::ReplayTotals;
use crate::replay::compare::IdRenaming;
use crate::replay::copied_tools::CopiedTools;
use crate::replay::policy::ReplaySettings;
use crate::replay::reports::ReplayReport;
use crate::replay::update::RecordingEdit;
use redact::Mask;
use toolq_core::check::CallChecker;
use toolq_core::transcript::{InputError, Recording};
use toolq_core::types::{CallRef, EventSink, ToolsConfig};
use toolq_engine::{Engine, RunControl};

/// Why a recording couldn't be replayed to its end.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The recording can't be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A report can't be written.
    #[error("the report can't be written: {0}")]
    Report(#[from] std::io::Error),
    /// The copy can't be made.
    #[error("the copy of `root` can't be used: {0}")]
    Copy(std::io::Error),
    /// The copy can't be kept or removed.
    #[error("the copy of `root` can't be kept or removed: {0}")]
    EndCopy(std::io::Error),
}

/// Replays one recording after another.
pub struct RecordingReplayer {
    pub(super) settings: ReplaySettings,
    pub(super) tools: Arc<ToolsConfig>,
    pub(super) checker: CallChecker,
    /// The tools that run, if they work on a copy.
    pub(super) copied_tools: Option<CopiedTools>,
    control: RunControl,
    pub(super) mask: Arc<Mask>,
    pub(super) totals: ReplayTotals,
    /// Number of turns in the earlier recordings.
    pub(super) previous_turns: usize,
    pub(super) incomplete: bool,
    /// A call didn't run, or didn't finish, because the run was stopped.
    pub(super) halted: bool,
}

/// The state of replaying one recording.
pub(crate) struct RecordingContext<'f> {
    pub(super) name: &'f str,
    pub(super) recording: &'f Recording,
    /// The last turn with calls. Its calls need no recorded results.
    pub(super) last_turn: usize,
    pub(super) renaming: IdRenaming,
    pub(super) edits: Vec<RecordingEdit>,
    /// The latest call that would have changed something, but didn't run.
    pub(super) unapplied: Option<CallRef>,
}

impl RecordingReplayer {
    /// Creates a replayer. With `copied_tools`, it runs those, which work on a copy. `control` is that of the engine that runs the calls.
    pub fn new(
        settings: ReplaySettings,
        tools: Arc<ToolsConfig>,
        copied_tools: Option<CopiedTools>,
        control: RunControl,
        mask: Arc<Mask>,
    ) -> Self {
        Self {
            settings,
            checker: CallChecker::new(Arc::clone(&tools)),
            tools,
            copied_tools,
            control,
            mask,
            totals: ReplayTotals::default(),
            previous_turns: 0,
            incomplete: false,
            halted: false,
        }
    }

    /// Returns the directory that the tools work on.
    pub fn root(&self) -> &Path {
        &self.tools.root
    }

    /// Returns the totals so far.
    pub fn totals(&self) -> ReplayTotals {
        self.totals
    }

    /// Counts results that were written into their recording.
    pub fn count_updated(&mut self, results: usize) {
        self.totals.updated += results;
    }

    /// Returns whether a call needs attention: it didn't run or finish because the run was stopped, as by a budget, or
    /// it is in doubt.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Returns whether a signal or a budget stopped the replay, so that not everything was compared.
    pub fn was_halted(&self) -> bool {
        self.halted || self.is_halted()
    }

    fn is_halted(&self) -> bool {
        self.control.halt_cause().is_some()
    }

    /// Returns whether to replay nothing more, because the replay was stopped or `--fail-fast` found a difference.
    pub fn is_over(&self) -> bool {
        let found_difference = self.settings.fail_fast && self.totals.differing > 0;
        found_difference || self.is_halted()
    }

    /// Replays a recording. Returns the edits that would update its results, if updating is enabled.
    ///
    /// # Errors
    /// The recording can't be read, or the report can't be written.
    pub async fn replay_recording(
        &mut self,
        name: &str,
        recording: &Recording,
        engine: &mut Engine,
        sink: &mut dyn EventSink,
        report: &mut dyn ReplayReport,
    ) -> Result<Vec<RecordingEdit>, ReplayError> {
        self.totals.files += 1;
        let has_calls = |turn: &usize| recording.call_count(*turn) > 0;
        let mut file = RecordingContext {
            name,
            recording,
            last_turn: (0..recording.len())
                .rev()
                .find(has_calls)
                .unwrap_or_default(),
            renaming: IdRenaming::default(),
            edits: Vec::new(),
            unapplied: None,
        };
        for turn in 0..recording.len() {
            self.replay_turn(turn, &mut file, engine, sink, report)
                .await?;
            self.totals.turns += 1;
            if self.is_over() {
                break;
            }
        }
        self.previous_turns += recording.len();
        Ok(file.edits)
    }
}
