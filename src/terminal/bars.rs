//! Progress bars on a terminal.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressDrawTarget;

use crate::terminal::bar_options::BarOptions;
use crate::terminal::call_pace::CallPace;
use crate::terminal::labels::{CallLabels, PartialCallLabels, batch_label};
use crate::terminal::outcome_label;
use crate::terminal::repeat_command::{RepeatCommand, is_repeatable};
use crate::terminal::screen::ProgressScreen;
use crate::terminal::{
    RowKey, call_path, failure_line, is_agent_batch, mask_and_escape, row_key, short_input,
    short_subject,
};
use redact::Mask;
use toolq_core::answer::failure_cause;
use toolq_core::schedule::StartWait;
use toolq_core::text::truncate_to_columns;
use toolq_core::transcript::complete_partial_json;
use toolq_core::types::{CallRef, CheckedCall, EmitError, Event, EventSink, Outcome, Tool};

/// Maximum frame rate of the progress bars.
pub const MAX_FRAMES_PER_SECOND: u8 = 20;
/// Maximum width of a tool's name in a row, to leave room for its status.
const MAX_NAME_COLUMNS: usize = 24;

/// Maximum number of rows of calls that wait for their turn. More wouldn't fit on a screen.
const MAX_WAITING_ROWS: usize = 50;

/// Shows a row per running call, above a bar for all calls.
pub struct ProgressBars {
    screen: ProgressScreen,
    options: BarOptions,
    mask: Arc<Mask>,
    /// Repeats calls that failed, if that is possible.
    repeat: Option<RepeatCommand>,
    /// The captions of unfinished calls.
    calls: HashMap<RowKey, CallCaption>,
    /// The rows of calls whose input is still arriving, or which haven't started since, for example because they wait for
    /// their turn.
    arriving: HashSet<RowKey>,
}

/// The text of a call's row, escaped and masked.
struct CallCaption {
    name: String,
    /// The name after those of its parent agents, for a line that isn't below their rows.
    path: String,
    /// What tells it from others, for such a line.
    subject: String,
    /// The beginning of its input, for its row.
    input: Option<String>,
    /// The command line that repeats it.
    repeat: Option<String>,
    /// How long it may be expected to take.
    pace: Option<CallPace>,
    /// The progress of an agent: `turn 1 of at most 3`.
    turn: Option<String>,
    /// The latest tip, initially the tool's `status.doing`.
    tip: Option<String>,
    /// From 0 to 1.
    progress: Option<f64>,
}

impl ProgressBars {
    /// Creates bars that are drawn on `target`.
    pub fn new(target: ProgressDrawTarget, options: BarOptions, mask: Arc<Mask>) -> Self {
        Self {
            screen: ProgressScreen::new(target, options),
            options,
            mask,
            repeat: None,
            calls: HashMap::new(),
            arriving: HashSet::new(),
        }
    }

    /// Adds the command line that repeats a call to each failure.
    pub fn with_repeat_command(mut self, repeat: RepeatCommand) -> Self {
        self.repeat = Some(repeat);
        self
    }

    /// Returns the screen, for others that write to the terminal.
    pub fn screen(&self) -> ProgressScreen {
        self.screen.clone()
    }

    fn handle_event(&mut self, event: &Event<'_>) {
        match event {
            Event::PartialInput {
                call,
                tool,
                input_so_far,
            } => self.on_partial_input(call, *tool, input_so_far),
            Event::Queued { checked, .. } => self.on_queued(checked),
            Event::BatchStarted { calls, .. } if is_agent_batch(calls) => {}
            Event::BatchStarted { calls, .. } => {
                let label = batch_label(calls.len(), self.options.jobs);
                self.screen.set_batch_label(label.unwrap_or_default());
            }
            Event::Throttled { call, wait } => self.on_throttled(call, wait),
            Event::Started { call, .. } => self.on_started(call),
            Event::Status {
                call,
                message: tip,
                progress,
                ..
            } => self.on_status(call, *tip, *progress),
            Event::Retrying { call, .. } => {
                let label = outcome_label::retry_label(event);
                self.on_status(call, label.as_deref(), None);
            }
            Event::Finished {
                call,
                outcome,
                duration,
                ..
            } => self.on_finished(call, outcome, *duration),
            Event::AgentProgress {
                call,
                agent,
                turn,
                max_turns,
            } => {
                // If the agent was called through `new_task`, that is the name of the row.
                let name = if *agent == call.tool_name {
                    String::new()
                } else {
                    format!("{agent}, ")
                };
                // People count from 1.
                let turn = turn + 1;
                self.on_agent_progress(call, &format!("{name}turn {turn} of at most {max_turns}"));
            }
            Event::Describing { tool } => {
                let name = mask_and_escape(&tool.name, &self.mask);
                let text = format!(
                    "{}: {}",
                    truncate_to_columns(&name, MAX_NAME_COLUMNS),
                    outcome_label::DESCRIBING_LABEL
                );
                self.screen
                    .add_row(RowKey::Describe(tool.name.clone()), None, &text, None);
            }
            Event::ListingTools { server } => {
                let name = mask_and_escape(&server.server.name, &self.mask);
                let text = format!(
                    "{}: {}",
                    truncate_to_columns(&name, MAX_NAME_COLUMNS),
                    outcome_label::LISTING_LABEL
                );
                self.screen.add_row(
                    RowKey::Server(server.server.name.clone()),
                    None,
                    &text,
                    None,
                );
            }
            Event::ToolsListed { server, .. } => {
                let key = RowKey::Server(server.server.name.clone());
                self.screen.remove_row(&key);
            }
            Event::Described { tool, .. } => {
                self.screen.remove_row(&RowKey::Describe(tool.name.clone()));
            }
            Event::TurnStarted { .. }
            | Event::AgentStarted { .. }
            | Event::AgentMessage { .. }
            | Event::AgentCompleted { .. }
            | Event::ResultWritten { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalDecided { .. }
            | Event::ApproverStopped { .. }
            | Event::Probing { .. }
            | Event::Probed { .. }
            | Event::ServerStarted(_)
            | Event::ServerEnded(_)
            | Event::ToolsChanged(_)
            | Event::QueueDrained { .. } => {}
        }
    }

    fn on_queued(&mut self, checked: &CheckedCall) {
        let labels = CallLabels::new(checked);
        let call_ref = CallRef::new(&checked.call, None);
        let short = |name: &str| {
            truncate_to_columns(&mask_and_escape(name, &self.mask), MAX_NAME_COLUMNS).into_owned()
        };
        let call = CallCaption {
            name: short(&labels.name),
            path: short(&call_path(&call_ref, &labels.name)),
            subject: short_subject(&labels, &self.mask),
            input: labels
                .doing
                .is_none()
                .then(|| short_input(checked, &self.mask, self.options.input_columns())),
            repeat: self
                .repeat
                .as_ref()
                .and_then(|repeat| repeat.line(checked, &self.mask)),
            pace: CallPace::of(checked),
            turn: None,
            tip: labels
                .doing
                .map(|doing| mask_and_escape(&doing, &self.mask)),
            progress: None,
        };
        self.calls.insert(row_key(&call_ref), call);
        if call_ref.parent.is_none() {
            self.screen.total_bar().inc_length(1);
        }
    }

    /// Shows a call whose input is still arriving. The end of the input is held back as long as it could be the start of
    /// a secret.
    fn on_partial_input(&mut self, call: &CallRef, tool: Option<&Tool>, input: &str) {
        if call.parent.is_some() {
            return;
        }
        let safe_input = &input[..self.mask.safe_prefix_len(input)];
        let known = complete_partial_json(safe_input).unwrap_or_default();
        let labels = PartialCallLabels::new(call, tool, &known);
        let name = mask_and_escape(&labels.name, &self.mask);
        let tip = labels
            .wait
            .as_deref()
            .unwrap_or(outcome_label::ARRIVING_LABEL);
        let text = format!(
            "{}: {}",
            truncate_to_columns(&name, MAX_NAME_COLUMNS),
            mask_and_escape(tip, &self.mask)
        );
        let key = row_key(call);
        if self.arriving.insert(key.clone()) {
            self.screen.add_row(key, None, &text, None);
        } else {
            self.screen.set_text(&key, &text);
        }
    }

    /// Shows that a call waits for its turn, in a row of its own unless it already runs and is to be retried.
    fn on_throttled(&mut self, call: &CallRef, wait: &StartWait) {
        let label = outcome_label::throttle_label(wait);
        let key = row_key(call);
        if self.screen.has_row(&key) {
            return self.on_status(call, Some(&label), None);
        }
        if let Some(known) = self.calls.get(&key)
            && self.arriving.len() < MAX_WAITING_ROWS
        {
            let text = format!("{}: {}", known.name, mask_and_escape(&label, &self.mask));
            let parent = call.parent.as_deref().map(row_key);
            self.screen
                .add_row(key.clone(), parent.as_ref(), &text, None);
            self.arriving.insert(key);
        }
    }

    fn on_started(&mut self, call: &CallRef) {
        // The time of a row counts from the start of its call, not from when its input began to arrive.
        if self.arriving.remove(&row_key(call)) {
            self.screen.remove_row(&row_key(call));
        }
        if let Some(known) = self.calls.get(&row_key(call)) {
            let parent = call.parent.as_deref().map(row_key);
            self.screen
                .add_row(row_key(call), parent.as_ref(), &known.text(), known.pace);
        }
    }

    /// Shows the agent's turn, instead of the tip of the previous one.
    fn on_agent_progress(&mut self, call: &CallRef, turn: &str) {
        if let Some(known) = self.calls.get_mut(&row_key(call)) {
            known.turn = Some(mask_and_escape(turn, &self.mask));
            known.tip = None;
            self.screen.set_text(&row_key(call), &known.text());
        }
    }

    /// Updates the tip, the progress, or both. `None` keeps the old value.
    fn on_status(&mut self, call: &CallRef, tip: Option<&str>, progress: Option<f64>) {
        if let Some(known) = self.calls.get_mut(&row_key(call)) {
            let tip = tip.map(|tip| mask_and_escape(tip, &self.mask));
            known.tip = tip.or(known.tip.take());
            known.progress = progress.or(known.progress);
            self.screen.set_text(&row_key(call), &known.text());
        }
    }

    /// Removes the row and advances the bar. A failure also leaves a line above the rows.
    fn on_finished(&mut self, call: &CallRef, outcome: &Outcome, duration: Duration) {
        self.arriving.remove(&row_key(call));
        let known = self.calls.remove(&row_key(call));
        if let Some(known) = known.filter(|_| outcome.is_error()) {
            self.print_failure(&known, outcome, duration);
            self.screen.count_failure();
        }
        self.screen.remove_row(&row_key(call));
        if call.parent.is_none() {
            self.screen.total_bar().inc(1);
        }
    }

    /// Leaves the failure of a call above the rows, with the command line that repeats it.
    fn print_failure(&self, known: &CallCaption, outcome: &Outcome, duration: Duration) {
        let label = outcome_label::timed_outcome_label(outcome, duration);
        let (label, cause) = (self.options.red(&label), failure_cause(outcome));
        let (path, subject) = (&known.path, &known.subject);
        let line = failure_line(path, subject, &label, cause.as_deref(), &self.mask);
        self.screen.print_line(&line);
        if let Some(repeat) = known.repeat.as_ref().filter(|_| is_repeatable(outcome)) {
            self.screen
                .print_line(&self.options.dim(&format!("  {repeat}")));
        }
    }
}

impl CallCaption {
    /// Formats the row: `bash {"command":"make"}: halfway, 50 %`.
    fn text(&self) -> String {
        let percent = self
            .progress
            .map(|progress| format!("{:.0} %", progress * 100.0));
        let details = self.turn.iter().chain(&self.tip).cloned();
        let details: Vec<_> = details.chain(percent).collect();
        let name = match self.input.as_deref() {
            None | Some("") => self.name.clone(),
            Some(input) => format!("{} {input}", self.name),
        };
        match details.as_slice() {
            [] => name,
            details => format!("{name}: {}", details.join(", ")),
        }
    }
}

impl EventSink for ProgressBars {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            self.handle_event(event);
        }
        Ok(())
    }
}

impl Drop for ProgressBars {
    fn drop(&mut self) {
        self.screen.clear();
    }
}
