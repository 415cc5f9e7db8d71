//! Progress bars on a terminal.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressDrawTarget;

use crate::terminal::bar_styles::BarOptions;
use crate::terminal::call_caption::{
    self, CallCaption, PartialCallLabels, RowKey, WRAPPED_LINE_INDENT, agent_turn_label,
    batch_label, failure_line, is_agent_batch, mask_and_escape, row_key, short_name,
};
use crate::terminal::repeat_command::RepeatCommand;
use crate::terminal::screen::ProgressScreen;
use redact::Mask;
use toolq_core::answer::failure_cause;
use toolq_core::schedule::StartWait;
use toolq_core::text::{truncate_to_columns, wrap_words};
use toolq_core::transcript::complete_partial_json;
use toolq_core::types::{CallRef, CheckedCall, Event, EventSink, Outcome, Tool};

/// Shows a row per running call, above a bar for all calls.
pub struct ProgressBars {
    screen: ProgressScreen,
    options: BarOptions,
    mask: Arc<Mask>,
    /// The command line that repeats a call, for its failure.
    pub repeat: Option<RepeatCommand>,
    /// The captions of unfinished calls.
    calls: HashMap<RowKey, CallCaption>,
    /// The rows of calls whose input is still arriving, or which haven't started since, for example because they wait for
    /// their turn.
    arriving: HashSet<RowKey>,
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

    /// Returns the screen, for others that write to the terminal.
    pub fn screen(&self) -> ProgressScreen {
        self.screen.clone()
    }

    /// Handles the search for the definitions of tools, at their programs and servers.
    fn handle_definition_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Describing { tool } => {
                let key = RowKey::Describe(tool.name.clone());
                self.add_named_row(key, &tool.name, call_caption::DESCRIBING_LABEL);
            }
            Event::Described { tool, .. } => {
                self.screen.remove_row(&RowKey::Describe(tool.name.clone()));
            }
            Event::ListingTools { server } => {
                let name = &server.server.name;
                let key = RowKey::Server(name.clone());
                self.add_named_row(key, name, call_caption::LISTING_LABEL);
            }
            Event::ToolsListed { server, .. } => {
                let key = RowKey::Server(server.server.name.clone());
                self.screen.remove_row(&key);
            }
            _ => {}
        }
    }

    /// Adds a row about something that isn't a call, such as a server.
    fn add_named_row(&self, key: RowKey, name: &str, label: &str) {
        let name = short_name(name, &self.mask);
        self.screen.add_row(key, None, &format!("{name}: {label}"));
    }
}

impl EventSink for ProgressBars {
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
                let label = label.map_or_else(String::new, |label| format!("now {label}"));
                self.screen.set_batch_label(label);
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
                let label = call_caption::retry_label(event);
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
                let turn = agent_turn_label(call, agent, *turn, *max_turns);
                self.on_agent_progress(call, &turn);
            }
            Event::Describing { .. }
            | Event::Described { .. }
            | Event::ListingTools { .. }
            | Event::ToolsListed { .. } => self.handle_definition_event(event),
            // These change no row.
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
}

impl Drop for ProgressBars {
    fn drop(&mut self) {
        self.screen.clear();
    }
}

// The row of a call, from the arrival of its input to its end.

/// Maximum number of rows of calls that wait for their turn. More wouldn't fit on a screen.
const MAX_WAITING_ROWS: usize = 50;

/// How much is shown of an input that is still arriving.
const MAX_ARRIVING_COLUMNS: usize = 48;

impl ProgressBars {
    pub(super) fn on_queued(&mut self, checked: &CheckedCall) {
        let call_ref = CallRef::new(&checked.call, None);
        let repeat = self.repeat.as_ref();
        let call = CallCaption::new(checked, repeat, self.options, &self.mask);
        self.calls.insert(row_key(&call_ref), call);
        if call_ref.parent.is_none() {
            self.screen.total_bar().inc_length(1);
        }
    }

    /// Shows a call whose input is still arriving. The end of the input is held back as long as it could be the start of
    /// a secret.
    pub(super) fn on_partial_input(&mut self, call: &CallRef, tool: Option<&Tool>, input: &str) {
        if call.parent.is_some() {
            return;
        }
        let safe_input = &input[..self.mask.safe_prefix_len(input)];
        let known = complete_partial_json(safe_input).unwrap_or_default();
        let labels = PartialCallLabels::new(call, tool, &known);
        let name = short_name(&labels.name, &self.mask);
        let tip = labels.wait.map_or_else(
            || arriving_label(safe_input, &self.mask),
            |wait| mask_and_escape(&wait, &self.mask),
        );
        let text = format!("{name}: {tip}");
        let key = row_key(call);
        if self.arriving.insert(key.clone()) {
            self.screen.add_row(key, None, &text);
        } else {
            self.screen.set_text(&key, &text);
        }
    }

    /// Shows that a call waits for its turn, in a row of its own unless it already runs and is to be retried.
    fn on_throttled(&mut self, call: &CallRef, wait: &StartWait) {
        let label = call_caption::throttle_label(wait);
        let key = row_key(call);
        if self.screen.has_row(&key) {
            return self.on_status(call, Some(&label), None);
        }
        if let Some(known) = self.calls.get(&key)
            && self.arriving.len() < MAX_WAITING_ROWS
        {
            let text = known.with_label(&mask_and_escape(&label, &self.mask));
            let parent = call.parent.as_deref().map(row_key);
            self.screen.add_row(key.clone(), parent.as_ref(), &text);
            self.arriving.insert(key);
        }
    }

    pub(super) fn on_started(&mut self, call: &CallRef) {
        // The time of a row counts from the start of its call, not from when its input began to arrive.
        if self.arriving.remove(&row_key(call)) {
            self.screen.remove_row(&row_key(call));
        }
        if let Some(known) = self.calls.get(&row_key(call)) {
            let parent = call.parent.as_deref().map(row_key);
            self.screen
                .add_row(row_key(call), parent.as_ref(), &known.text());
        }
    }

    /// Shows the agent's turn, instead of the tip of the previous one.
    pub(super) fn on_agent_progress(&mut self, call: &CallRef, turn: &str) {
        if let Some(known) = self.calls.get_mut(&row_key(call)) {
            known.turn = Some(mask_and_escape(turn, &self.mask));
            known.tip = None;
            self.screen.set_text(&row_key(call), &known.text());
        }
    }

    /// Updates the tip, the progress, or both. `None` keeps the old value.
    pub(super) fn on_status(&mut self, call: &CallRef, tip: Option<&str>, progress: Option<f64>) {
        if let Some(known) = self.calls.get_mut(&row_key(call)) {
            let tip = tip.map(|tip| mask_and_escape(tip, &self.mask));
            known.tip = tip.or(known.tip.take());
            known.progress = progress.or(known.progress);
            self.screen.set_text(&row_key(call), &known.text());
        }
    }

    /// Removes the row and advances the bar. A failure also leaves a line above the rows.
    pub(super) fn on_finished(&mut self, call: &CallRef, outcome: &Outcome, duration: Duration) {
        self.arriving.remove(&row_key(call));
        let known = self.calls.remove(&row_key(call));
        if let Some(known) = known.filter(|_| outcome.is_error()) {
            self.print_failure(&known, outcome, duration);
            self.screen.count_failure(outcome.kind());
        }
        self.screen.remove_row(&row_key(call));
        if call.parent.is_none() {
            self.screen.total_bar().inc(1);
        }
    }

    /// Leaves the failure of a call above the rows, with the command line that repeats it.
    fn print_failure(&self, known: &CallCaption, outcome: &Outcome, duration: Duration) {
        let label = call_caption::failure_label(outcome, duration);
        let (path, subject, cause) = (&known.path, &known.subject, failure_cause(outcome));
        let line = failure_line(path, subject, &label, cause.as_deref(), &self.mask);
        let line = format!("{}: {line}", self.options.kind_label(outcome.kind()));
        let columns = self.options.columns();
        self.screen
            .print_line(&wrap_words(&line, columns, WRAPPED_LINE_INDENT));
        // The command line stays in one piece, so that it can be copied.
        let repeat = known.repeat.as_ref();
        if let Some(repeat) = repeat.and_then(|repeat| repeat.line_after(outcome)) {
            self.screen
                .print_line(&self.options.dim(&format!("  {repeat}")));
        }
    }
}

/// `receiving {"path":"src/`: what is known of an input that is still arriving.
fn arriving_label(input: &str, mask: &Mask) -> String {
    let known = input.trim();
    if known.len() < 2 {
        return call_caption::ARRIVING_LABEL.to_owned();
    }
    let known = mask_and_escape(known, mask);
    format!(
        "receiving {}",
        truncate_to_columns(&known, MAX_ARRIVING_COLUMNS)
    )
}
