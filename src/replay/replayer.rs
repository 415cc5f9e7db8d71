//! Replays recordings turn by turn, and counts what came of it.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::events::Observed;
use crate::replay::case::{ReplayCase, ReplayTotals, find_unapplied};
use crate::replay::compare::IdRenaming;
use crate::replay::policy::{self, ExecutePolicy, ReplaySettings};
use crate::replay::reports::OpenReport;
use crate::replay::root_copy::CopiedTools;
use crate::replay::update::RecordingEdit;
use redact::Mask;
use toolq_core::check::{CallChecker, undescribed_tools};
use toolq_core::json::Input;
use toolq_core::transcript::{InputError, Recording};
use toolq_core::types::{
    Call, CallAnswer, CallRef, CheckedCall, Event, EventSink, NotExecutedCause, Outcome, Tool,
    ToolsConfig, Verdict,
};
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
        reports: &mut [OpenReport],
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
            self.replay_turn(turn, &mut file, engine, sink, reports)
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

// Replays one turn: checks its calls, runs those that should run, and reports each of them.

/// How much of an input is masked to show its beginning in a report, in bytes.
const MAX_MASKED_INPUT_BYTES: usize = 64 << 10;

impl RecordingReplayer {
    /// Replays a turn of a recording. `number` is counted within the recording.
    pub(super) async fn replay_turn(
        &mut self,
        number: usize,
        file: &mut RecordingContext<'_>,
        engine: &mut Engine,
        sink: &mut dyn EventSink,
        reports: &mut [OpenReport],
    ) -> Result<(), ReplayError> {
        let turn = file.recording.turn(number, true)?;
        if turn.calls.is_empty() {
            return Ok(());
        }
        // With `--execute none`, `describe` programs don't run either, and their tools accept any object.
        if self.settings.execute != ExecutePolicy::None {
            let undescribed = self.tools_to_describe(&turn.calls);
            engine.schema_discovery().discover(&undescribed, sink).await;
        }
        let checked = self
            .checker
            .check_turn(turn.with_number(self.previous_turns + number));
        let mut results = HashMap::new();
        let mut sink = Observed {
            sink,
            observe: |event: &Event<'_>| results.extend(ActualResult::of_event(event)),
        };
        let to_run = self.calls_to_run(number, file.recording, &checked)?;
        if !to_run.is_empty() {
            let number = self.previous_turns + number;
            // The results are collected from events. For the log, being compared counts as being printed.
            let mut delivery = |call: &Arc<CallRef>, _: CallAnswer, sink: &mut dyn EventSink| {
                let _ = sink.emit(&[Event::ResultWritten { call }]);
            };
            engine
                .run_turn(number, to_run, &mut sink, &mut delivery)
                .await;
        }
        for checked in &checked {
            let position = checked.repeats.unwrap_or(checked.call.position);
            let mut actual = results.get(&position).cloned();
            if let (Some(copied_tools), Some(actual)) = (&self.copied_tools, &mut actual) {
                copied_tools.restore_paths(&mut actual.answer);
            }
            self.halted |= actual.as_ref().is_some_and(|actual| actual.halted);
            self.incomplete |= self.halted || actual.as_ref().is_some_and(|actual| actual.in_doubt);
            let call = self.masked_call_ref(&checked.call, number);
            let input = self.masked_input_beginning(&checked.call);
            let case = ReplayCase {
                input: &input,
                file: file.name,
                executed: checked.repeats.is_none()
                    && actual.as_ref().is_some_and(|actual| !actual.halted),
                duration: actual
                    .as_ref()
                    .map_or(Duration::ZERO, |actual| actual.duration),
                result: self.classify_call(checked, actual, number, file)?,
                call: &call,
            };
            self.totals.count_case(&case);
            for open in &mut *reports {
                open.report.add_case(&case)?;
            }
            let was_skipped = file.recording.is_skipped(number, checked.call.position);
            if let Some(latest) = find_unapplied(checked, &case, was_skipped, &self.tools) {
                file.unapplied = Some(latest);
            }
        }
        Ok(())
    }

    /// Returns the tools of these calls whose `describe` hasn't run yet. On a copy, servers aren't asked: they aren't confined to
    /// it, and their tools don't run.
    fn tools_to_describe(&self, calls: &[Call]) -> Vec<Arc<Tool>> {
        let Some(copied_tools) = &self.copied_tools else {
            return undescribed_tools(&self.tools, calls);
        };
        let mut undescribed = undescribed_tools(copied_tools.tools(), calls);
        undescribed.retain(|tool| !tool.awaits_list);
        undescribed
    }

    /// Returns the beginning of a call's input for reports.
    fn masked_input_beginning(&self, call: &Call) -> String {
        let input = call.input.as_ref().map_or("", Input::text);
        let beginning = &input[..input.floor_char_boundary(MAX_MASKED_INPUT_BYTES)];
        self.mask.apply(beginning).into_owned()
    }

    /// Returns a reference to a call for reports, with masked names and the turn number within its recording.
    fn masked_call_ref(&self, call: &Call, turn: usize) -> CallRef {
        CallRef {
            turn,
            position: call.position,
            tool_use_id: self.mask.apply(&call.id).into_owned(),
            tool_name: self.mask.apply(&call.name).into(),
            batch: None,
            parent: None,
        }
    }

    /// Returns the calls of a turn that will run.
    fn calls_to_run(
        &self,
        turn: usize,
        recording: &Recording,
        checked: &[CheckedCall],
    ) -> Result<Vec<CheckedCall>, InputError> {
        let is_run = |checked: &&CheckedCall| match &checked.verdict {
            Verdict::Accepted(accepted) => {
                let position = checked.call.position;
                let skipped = recording.is_skipped(turn, position)
                    || recording.is_abandoned(turn, position)
                    || checked.repeats.is_some();
                policy::should_run(accepted, skipped, self.settings.execute)
            }
            Verdict::Rejected(_) => false,
        };
        let mut to_run: Vec<CheckedCall> = checked.iter().filter(is_run).cloned().collect();
        if let Some(copied_tools) = &self.copied_tools {
            let wanted: HashSet<usize> =
                to_run.iter().map(|checked| checked.call.position).collect();
            let turn_again = recording.turn(turn, true)?;
            to_run = copied_tools.check_turn(turn_again.with_number(self.previous_turns + turn));
            to_run.retain(|copied| wanted.contains(&copied.call.position));
        }
        for checked in &mut to_run {
            // What the recording says about them doesn't count.
            checked.known = None;
        }
        Ok(to_run)
    }
}

// Collects the results of a turn by position until they are compared.

/// The current result of a call.
#[derive(Debug, Clone)]
pub(crate) struct ActualResult {
    pub(super) answer: CallAnswer,
    pub(super) duration: Duration,
    /// The call ended because the run was stopped, not because of the tool.
    pub(super) halted: bool,
    /// Whether the call had its effect is unknown.
    pub(super) in_doubt: bool,
}

impl ActualResult {
    /// Returns the result of a call that has ended, with its position in the turn.
    fn of_event(event: &Event<'_>) -> Option<(usize, Self)> {
        let Event::Finished {
            call,
            outcome,
            answer,
            duration,
            ..
        } = event
        else {
            return None;
        };
        let actual = Self {
            answer: (*answer).clone(),
            duration: *duration,
            halted: is_halted(outcome),
            in_doubt: outcome.is_in_doubt(),
        };
        Some((call.position, actual))
    }
}

/// Returns whether a call ended because the run was stopped.
fn is_halted(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Interrupted { .. }
            | Outcome::NotExecuted(NotExecutedCause::Halted(_))
            | Outcome::LogRefused(_)
    )
}
