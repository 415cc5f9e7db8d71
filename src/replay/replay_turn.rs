//! Replays one turn: checks its calls, runs those that should run, and reports each of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::replay::case::{ReplayCase, find_unapplied};
use crate::replay::policy::{self, ExecutePolicy};
use crate::replay::replayer::{RecordingContext, RecordingReplayer, ReplayError};
use crate::replay::reports::ReplayReport;
use toolq_core::check::undescribed_tools;
use toolq_core::json::Input;
use toolq_core::transcript::{InputError, Recording};
use toolq_core::types::{
    Call, CallAnswer, CallRef, CheckedCall, EmitError, Event, EventSink, NotExecutedCause, Outcome,
    Tool, Verdict,
};
use toolq_engine::Engine;

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
        report: &mut dyn ReplayReport,
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
        let mut collector = ResultCollector::new(sink);
        let to_run = self.calls_to_run(number, file.recording, &checked)?;
        if !to_run.is_empty() {
            let number = self.previous_turns + number;
            // The results are collected from events. For the log, being compared counts as being printed.
            let mut delivery = |call: &Arc<CallRef>, _: CallAnswer, sink: &mut dyn EventSink| {
                let _ = sink.emit(&[Event::ResultWritten { call }]);
            };
            engine
                .run_turn(number, to_run, &mut collector, &mut delivery)
                .await;
        }
        for checked in &checked {
            let position = checked.repeats.unwrap_or(checked.call.position);
            let mut actual = collector.results.get(&position).cloned();
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
            report.add_case(&case)?;
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

/// Collects the results of a turn, and passes all events on.
struct ResultCollector<'e> {
    next: &'e mut dyn EventSink,
    /// The results by position in the turn.
    results: HashMap<usize, ActualResult>,
}

impl<'e> ResultCollector<'e> {
    pub(super) fn new(next: &'e mut dyn EventSink) -> Self {
        let results = HashMap::new();
        Self { next, results }
    }
}

impl EventSink for ResultCollector<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            if let Event::Finished {
                call,
                outcome,
                answer,
                duration,
                ..
            } = event
            {
                let actual = ActualResult {
                    answer: (*answer).clone(),
                    duration: *duration,
                    halted: is_halted(outcome),
                    in_doubt: outcome.is_in_doubt(),
                };
                self.results.insert(call.position, actual);
            }
        }
        self.next.emit(events)
    }

    fn shows_progress(&self, call: &CallRef) -> bool {
        self.next.shows_progress(call)
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
