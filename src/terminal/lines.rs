//! Progress as lines of text.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crate::output::with_ascii_symbols;
use crate::terminal::call_caption::{
    self, CallLabels, MAX_PIPED_SUBJECT_COLUMNS, MAX_SUBJECT_COLUMNS, PartialCallLabels, RowKey,
    WRAPPED_LINE_INDENT, agent_turn, batch_label, call_path, failure_line, is_agent_batch,
    mask_and_escape, row_key, short_input, short_subject,
};
use crate::terminal::repeat_command::{CallRepeat, RepeatCommand};
use redact::Mask;
use toolq_core::answer::failure_cause;
use toolq_core::os::Clock;
use toolq_core::text::wrap_words;
use toolq_core::types::{CallRef, CheckedCall, Event, EventSink, Outcome, Tool};

/// Maximum width of the input of a call that succeeded.
const MAX_REMARK_COLUMNS: usize = 48;

/// Minimum time between two tips of a call, in milliseconds.
const TIP_INTERVAL_MS: u64 = 10_000;

/// Prints a line per event, for output that isn't redrawn, such as a CI log.
pub struct ProgressLines {
    out: Box<dyn Write + Send>,
    jobs: NonZeroUsize,
    mask: Arc<Mask>,
    clock: Clock,
    /// The command line that repeats a call, for its failure.
    pub repeat: Option<RepeatCommand>,
    /// Characters beyond ASCII are used. Otherwise, only in what models and tools wrote.
    pub is_unicode: bool,
    /// The width of the terminal that lines are broken to fit, if there is one.
    pub columns: Option<usize>,
    /// Unfinished calls.
    calls: HashMap<RowKey, CallLineState>,
    /// Calls whose input is still arriving.
    arriving: HashSet<RowKey>,
}

struct CallLineState {
    /// `#3 Read` or `turn 1 #3 Read`: its position in the turn, as in a plan, and its name. Calls of one tool may run in parallel.
    name: String,
    /// What tells it from others, for a line about its failure.
    subject: String,
    /// The command line that repeats it.
    repeat: Option<CallRepeat>,
    /// What a line about its success says of it: the tool's `status.doing` in parentheses, or the beginning of its input.
    remark: String,
    /// When its last tip was printed.
    last_tip_ms: Option<u64>,
}

impl ProgressLines {
    /// Creates a sink that writes to `out` and ignores write errors. `jobs` is the maximum number of calls that run at
    /// once.
    pub fn new(
        out: Box<dyn Write + Send>,
        jobs: NonZeroUsize,
        mask: Arc<Mask>,
        clock: Clock,
    ) -> Self {
        Self {
            out,
            jobs,
            mask,
            clock,
            repeat: None,
            is_unicode: true,
            columns: None,
            calls: HashMap::new(),
            arriving: HashSet::new(),
        }
    }

    /// Names a call with the first piece of it.
    fn on_partial_input(&mut self, call: &CallRef, tool: Option<&Tool>) {
        if call.parent.is_none() && self.arriving.insert(row_key(call)) {
            let name = PartialCallLabels::new(call, tool, "{}").name;
            let name = mask_and_escape(&name, &self.mask);
            let number = call_number(call);
            self.write_line(&format!(
                "{number} {name}: {}",
                call_caption::ARRIVING_LABEL
            ));
        }
    }

    fn on_queued(&mut self, checked: &CheckedCall) {
        let labels = CallLabels::new(checked.request());
        let call = CallRef::new(&checked.call, None);
        self.arriving.remove(&row_key(&call));
        let number = call_number(&call);
        let subject_columns = self
            .columns
            .map_or(MAX_PIPED_SUBJECT_COLUMNS, |_| MAX_SUBJECT_COLUMNS);
        let (key, name) = (row_key(&call), call_path(&call, &labels.name));
        let call = CallLineState {
            name: format!("{number} {}", mask_and_escape(&name, &self.mask)),
            subject: short_subject(&labels, &self.mask, subject_columns),
            repeat: self
                .repeat
                .as_ref()
                .and_then(|repeat| repeat.repeat_of(checked.request(), &self.mask)),
            remark: match &labels.doing {
                Some(doing) => format!("({})", mask_and_escape(doing, &self.mask)),
                None => short_input(checked, &self.mask, MAX_REMARK_COLUMNS),
            },
            last_tip_ms: None,
        };
        self.calls.insert(key, call);
    }

    fn on_tip(&mut self, call: &CallRef, tip: &str) {
        let now = self.clock.now_ms();
        let Some(known) = self.calls.get_mut(&row_key(call)) else {
            return;
        };
        if known
            .last_tip_ms
            .is_none_or(|last| now.saturating_sub(last) >= TIP_INTERVAL_MS)
        {
            known.last_tip_ms = Some(now);
            let line = format!("{}: {}", known.name, mask_and_escape(tip, &self.mask));
            self.write_line(&line);
        }
    }

    fn on_finished(&mut self, call: &CallRef, outcome: &Outcome, duration: Duration) {
        let name = self.call_name(call);
        let remark = match self.calls.remove(&row_key(call)) {
            Some(known) if outcome.is_error() => {
                let label = call_caption::failure_label(outcome, duration);
                let cause = failure_cause(outcome);
                let line =
                    failure_line(&name, &known.subject, &label, cause.as_deref(), &self.mask);
                // Nothing but the word tells it from a call that succeeded: the lines have no color.
                self.write_line(&format!("{}: {line}", outcome.kind().label()));
                let repeat = known.repeat.and_then(|repeat| repeat.line_after(outcome));
                if let Some(repeat) = repeat {
                    self.write_whole_line(&format!("  {repeat}"));
                }
                return;
            }
            Some(CallLineState { remark, .. }) if !remark.is_empty() => format!(" {remark}"),
            _ => String::new(),
        };
        let label = call_caption::timed_outcome_label(outcome, duration);
        self.write_line(&format!("{name}: {label}{remark}"));
    }

    fn call_name(&self, call: &CallRef) -> String {
        let known = self.calls.get(&row_key(call));
        known.map_or_else(
            || mask_and_escape(&call.tool_name, &self.mask),
            |call| call.name.clone(),
        )
    }

    fn write_line(&mut self, line: &str) {
        let columns = self.columns.unwrap_or(usize::MAX);
        self.write_whole_line(&wrap_words(line, columns, WRAPPED_LINE_INDENT));
    }

    /// Writes a line that can be copied.
    fn write_whole_line(&mut self, line: &str) {
        let line = if self.is_unicode {
            Cow::Borrowed(line)
        } else {
            Cow::Owned(with_ascii_symbols(line))
        };
        // Failing to show progress is no reason to stop.
        let _ = writeln!(self.out, "{line}");
    }
}

/// Returns the position of a call in the input: `#3`, or `turn 1 #3`. For one of an agent, it is the position of the agent's call.
fn call_number(call: &CallRef) -> String {
    let root = call.outermost();
    match (root.turn, root.position) {
        (0, position) => format!("#{position}"),
        (turn, position) => format!("turn {turn} #{position}"),
    }
}

impl EventSink for ProgressLines {
    fn handle_event(&mut self, event: &Event<'_>) {
        match event {
            Event::PartialInput { call, tool, .. } => self.on_partial_input(call, *tool),
            Event::Queued { checked, .. } => {
                self.on_queued(checked);
            }
            Event::BatchStarted { calls, .. } if is_agent_batch(calls) => {}
            Event::BatchStarted { calls, .. } => {
                if let Some(label) = batch_label(calls.len(), self.jobs) {
                    self.write_line(&label);
                }
            }
            Event::Status {
                call,
                message: Some(tip),
                ..
            } => self.on_tip(call, tip),
            Event::AgentProgress {
                call,
                turn,
                max_turns,
                ..
            } => {
                let name = self.call_name(call);
                self.write_line(&format!("{name}: {}", agent_turn(*turn, *max_turns)));
            }
            Event::Probing { call } => {
                self.write_line(&format!(
                    "{}: {}",
                    self.call_name(call),
                    call_caption::PROBING_LABEL
                ));
            }
            Event::Throttled { call, wait } => {
                let label = call_caption::throttle_label(wait);
                self.write_line(&format!("{}: {label}", self.call_name(call)));
            }
            Event::Describing { tool } => {
                self.write_line(&format!(
                    "{}: {}",
                    mask_and_escape(&tool.name, &self.mask),
                    call_caption::DESCRIBING_LABEL
                ));
            }
            Event::ListingTools { server } => {
                self.write_line(&format!(
                    "{}: {}",
                    mask_and_escape(&server.server.name, &self.mask),
                    call_caption::LISTING_LABEL
                ));
            }
            Event::Retrying { call, .. } => {
                let label = call_caption::retry_label(event).unwrap_or_default();
                self.write_line(&format!("{}: {label}", self.call_name(call)));
            }
            Event::Finished {
                call,
                outcome,
                duration,
                ..
            } => self.on_finished(call, outcome, *duration),
            _ => {}
        }
    }
}
