//! What a row of progress says about a call.

use unicode_width::UnicodeWidthStr;

use crate::terminal::bar_options::BarOptions;
use crate::terminal::call_pace::CallPace;
use crate::terminal::labels::CallLabels;
use crate::terminal::repeat_command::{CallRepeat, RepeatCommand};
use crate::terminal::{
    MAX_SUBJECT_COLUMNS, call_path, mask_and_escape, short_input, short_subject, truncate_closed,
};
use redact::Mask;
use toolq_core::text::truncate_to_columns;
use toolq_core::types::{CallRef, CheckedCall};

/// Maximum width of a name in a row, to leave room for its status.
const MAX_NAME_COLUMNS: usize = 24;
/// Maximum width of an input in a row.
const MAX_INPUT_COLUMNS: usize = 40;

/// The text of a call's row, escaped and masked.
pub(super) struct CallCaption {
    name: String,
    /// The name after those of its parent agents, for a line that isn't below their rows.
    pub(super) path: String,
    /// What tells it from others, for such a line.
    pub(super) subject: String,
    /// The beginning of its input, for its row.
    input: Option<String>,
    options: BarOptions,
    /// The command line that repeats it.
    pub(super) repeat: Option<CallRepeat>,
    /// How long it may be expected to take.
    pub(super) pace: Option<CallPace>,
    /// The progress of an agent: `turn 1 of at most 3`.
    pub(super) turn: Option<String>,
    /// The latest tip, initially the tool's `status.doing`.
    pub(super) tip: Option<String>,
    /// From 0 to 1.
    pub(super) progress: Option<f64>,
}

impl CallCaption {
    /// Returns what is known when a call is queued.
    pub(super) fn new(
        checked: &CheckedCall,
        repeat: Option<&RepeatCommand>,
        options: BarOptions,
        mask: &Mask,
    ) -> Self {
        let labels = CallLabels::new(checked.request());
        let call = CallRef::new(&checked.call, None);
        let tip = labels.doing.as_deref();
        let tip = tip.map(|doing| mask_and_escape(doing, mask));
        Self {
            name: short_name(&labels.name, mask),
            path: short_name(&call_path(&call, &labels.name), mask),
            subject: short_subject(&labels, mask, MAX_SUBJECT_COLUMNS),
            input: (tip.is_none()).then(|| short_input(checked, mask, MAX_INPUT_COLUMNS)),
            options,
            repeat: repeat.and_then(|repeat| repeat.repeat_of(checked.request(), mask)),
            pace: CallPace::of(checked),
            turn: None,
            tip,
            progress: None,
        }
    }

    /// Begins a row that isn't about an attempt: `fetch: waits for its turn`.
    pub(super) fn with_label(&self, label: &str) -> String {
        format!("{}: {label}", self.name)
    }

    /// Formats the row: `bash {"command":"make"}: halfway, 50 %`. The input leaves room for what follows it, and is left out if the
    /// terminal is too narrow for both.
    pub(super) fn text(&self) -> String {
        let percent = self
            .progress
            .map(|progress| format!("{:.0} %", progress * 100.0));
        let details = self.turn.iter().chain(&self.tip).cloned();
        let details: Vec<_> = details.chain(percent).collect();
        let details = match details.as_slice() {
            [] => String::new(),
            details => format!(": {}", details.join(", ")),
        };
        let short = format!("{}{details}", self.name);
        let Some(input) = self.input.as_deref().filter(|input| !input.is_empty()) else {
            return short;
        };
        let room = self.options.text_columns(self.pace.is_some());
        let input_room = if details.is_empty() {
            MAX_INPUT_COLUMNS
        } else {
            self.options.input_columns()
        };
        let input = truncate_closed(input, input_room);
        let long = format!("{} {input}{details}", self.name);
        if !details.is_empty() && long.width() > room {
            return short;
        }
        long
    }
}

/// Makes a name safe to show, and short.
pub(super) fn short_name(name: &str, mask: &Mask) -> String {
    truncate_to_columns(&mask_and_escape(name, mask), MAX_NAME_COLUMNS).into_owned()
}

/// Formats the progress of an agent: `turn 1 of at most 3`. For people, turns of an agent count from 1.
pub(super) fn agent_turn(turn: u64, max_turns: u64) -> String {
    format!("turn {} of at most {max_turns}", turn.saturating_add(1))
}

/// Formats the progress of an agent in the row of its call.
pub(super) fn agent_turn_label(call: &CallRef, agent: &str, turn: u64, max_turns: u64) -> String {
    let label = agent_turn(turn, max_turns);
    // If the agent was called through `new_task`, that is the name of the row.
    if *agent == *call.tool_name {
        label
    } else {
        format!("{agent}, {label}")
    }
}
