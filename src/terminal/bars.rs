use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressDrawTarget;

use crate::terminal::bar_options::Look;
use crate::terminal::labels::{Words, batch_words};
use crate::terminal::outcome_label;
use crate::terminal::screen::Screen;
use crate::terminal::{Key, is_of_agent, key, shown, within};
use redact::Mask;
use toolq_core::text::cut;
use toolq_core::types::{CallRef, Checked, Event, Outcome, Refused, Sink};

/// The widest name of a tool in a row; what the tool says needs room beside it.
const WIDEST_NAME: usize = 24;

/// Rows of running calls above a bar of all calls, on a terminal.
pub struct Bars {
    screen: Screen,
    look: Look,
    mask: Arc<Mask>,
    /// What is shown of calls without a result.
    calls: HashMap<Key, Call>,
}

/// What a call's tool says of itself, escaped and masked.
struct Call {
    name: String,
    /// The name behind those of the agents that it stands below, for a line of its own.
    path: String,
    /// Where it is, if it is an agent: `turn 2 of 3`.
    turn: Option<String>,
    /// Its latest tip; before the first, what its tool is said to be doing.
    tip: Option<String>,
    /// From 0 to 1.
    progress: Option<f64>,
}

impl Bars {
    /// Draws on `target`: standard error, but in tests.
    pub fn new(target: ProgressDrawTarget, look: Look, mask: Arc<Mask>) -> Self {
        Self {
            screen: Screen::new(target, look),
            look,
            mask,
            calls: HashMap::new(),
        }
    }

    /// The terminal.
    pub fn screen(&self) -> Screen {
        self.screen.clone()
    }

    fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::Queued { checked, .. } => self.queued(checked),
            Event::BatchStarted { calls, .. } if is_of_agent(calls) => {}
            Event::BatchStarted { calls, .. } => {
                let words = batch_words(calls.len(), self.look.jobs);
                self.screen.all().set_message(words.unwrap_or_default());
            }
            Event::Started { call, .. } => self.started(call),
            Event::Status {
                call,
                tip,
                progress,
            } => self.status(call, *tip, *progress),
            Event::Retrying { call, .. } => {
                let words = outcome_label::retry_words(event);
                self.status(call, words.as_deref(), None);
            }
            Event::Finished {
                call,
                outcome,
                duration,
                ..
            } => self.finished(call, outcome, *duration),
            Event::AgentProgress {
                call,
                agent,
                turn,
                max_turns,
            } => {
                // Where `new_task` was called, the row has another name.
                let name = if *agent == call.tool_name {
                    String::new()
                } else {
                    format!("{agent}, ")
                };
                self.asks(call, &format!("{name}turn {turn} of {max_turns}"));
            }
            Event::Describing { tool } => {
                let name = shown(&tool.name, &self.mask);
                let text = format!("{}: {}", cut(&name, WIDEST_NAME), outcome_label::DESCRIBING);
                self.screen
                    .start(Key::Describe(tool.name.clone()), None, &text);
            }
            Event::Described { tool, .. } => self.screen.end(&Key::Describe(tool.name.clone())),
            Event::TurnStarted { .. }
            | Event::AgentStarted { .. }
            | Event::AgentMessage { .. }
            | Event::AgentCompleted { .. }
            | Event::Part { .. }
            | Event::ResultWritten { .. }
            | Event::Probing { .. }
            | Event::Probed { .. }
            | Event::QueueDrained { .. } => {}
        }
    }

    fn queued(&mut self, checked: &Checked) {
        let words = Words::of(checked);
        let reference = CallRef::new(&checked.call, None);
        let short = |name: &str| cut(&shown(name, &self.mask), WIDEST_NAME).into_owned();
        let call = Call {
            name: short(&words.name),
            path: short(&within(&reference, &words.name)),
            turn: None,
            tip: words.doing.map(|doing| shown(&doing, &self.mask)),
            progress: None,
        };
        self.calls.insert(key(&reference), call);
        if reference.within.is_none() {
            self.screen.all().inc_length(1);
        }
    }

    fn started(&mut self, call: &CallRef) {
        if let Some(known) = self.calls.get(&key(call)) {
            let agent = call.within.as_deref().map(key);
            self.screen.start(key(call), agent.as_ref(), &known.text());
        }
    }

    /// An agent asks its model; what was said before is over.
    fn asks(&mut self, call: &CallRef, turn: &str) {
        if let Some(known) = self.calls.get_mut(&key(call)) {
            known.turn = Some(shown(turn, &self.mask));
            known.tip = None;
            self.screen.show(&key(call), &known.text());
        }
    }

    /// What is not said anew stays as it was said before.
    fn status(&mut self, call: &CallRef, tip: Option<&str>, progress: Option<f64>) {
        if let Some(known) = self.calls.get_mut(&key(call)) {
            let tip = tip.map(|tip| shown(tip, &self.mask));
            known.tip = tip.or(known.tip.take());
            known.progress = progress.or(known.progress);
            self.screen.show(&key(call), &known.text());
        }
    }

    /// Failures leave a line above the rows; successes only their place in the bar.
    fn finished(&mut self, call: &CallRef, outcome: &Outcome, duration: Duration) {
        let known = self.calls.remove(&key(call));
        if let Some(Call { path, .. }) = known.filter(|_| outcome.is_error()) {
            let ended = outcome_label::timed_words(outcome, duration);
            self.screen
                .line(&format!("{path}: {}", self.look.red(&ended)));
        }
        self.screen.end(&key(call));
        if call.within.is_none() {
            self.screen.all().inc(1);
        }
    }
}

impl Call {
    /// `bash: half way, 50 %`.
    fn text(&self) -> String {
        let percent = self
            .progress
            .map(|progress| format!("{:.0} %", progress * 100.0));
        let said = self.turn.iter().chain(&self.tip).cloned();
        let said: Vec<_> = said.chain(percent).collect();
        match said.as_slice() {
            [] => self.name.clone(),
            said => format!("{}: {}", self.name, said.join(", ")),
        }
    }
}

impl Sink for Bars {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        for event in events {
            self.hear(event);
        }
        Ok(())
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.screen.clear();
    }
}
