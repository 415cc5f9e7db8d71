use std::collections::HashMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crate::terminal::labels::{Words, batch_words};
use crate::terminal::outcome_label;
use crate::terminal::{Key, is_of_agent, key, shown, within};
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::types::{CallRef, Checked, Event, Outcome, Refused, Sink};

/// A tool's tips are written at most so often, in ms for each call.
const TIP_EVERY: u64 = 10_000;

/// One line for each thing that happened, for where lines are kept.
pub struct Lines {
    out: Box<dyn Write + Send>,
    jobs: NonZeroUsize,
    mask: Arc<Mask>,
    clock: Clock,
    /// Calls that have no result yet.
    calls: HashMap<Key, Call>,
}

struct Call {
    /// `#3 Read`: where it stands in its turn, as in a plan, since calls of one tool may run together.
    name: String,
    /// What it does.
    doing: Option<String>,
    /// When its last tip was written.
    tip: Option<u64>,
}

impl Lines {
    /// Writes to `out` what happens to calls of which `jobs` run at once; where that fails, nothing is said.
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
            calls: HashMap::new(),
        }
    }

    fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::Queued { checked, .. } => {
                self.queued(checked);
            }
            Event::BatchStarted { calls, .. } if is_of_agent(calls) => {}
            Event::BatchStarted { calls, .. } => {
                if let Some(words) = batch_words(calls.len(), self.jobs) {
                    self.write(&words);
                }
            }
            Event::Status {
                call,
                tip: Some(tip),
                ..
            } => self.tip(call, tip),
            Event::AgentProgress {
                call,
                turn,
                max_turns,
                ..
            } => {
                let line = format!("{}: turn {turn} of {max_turns}", self.name(call));
                self.write(&line);
            }
            Event::Probing { call } => {
                self.write(&format!("{}: {}", self.name(call), outcome_label::PROBING));
            }
            Event::Describing { tool } => {
                self.write(&format!(
                    "{}: {}",
                    shown(&tool.name, &self.mask),
                    outcome_label::DESCRIBING
                ));
            }
            Event::Retrying { call, .. } => {
                let words = outcome_label::retry_words(event).unwrap_or_default();
                self.write(&format!("{}: {words}", self.name(call)));
            }
            Event::Finished {
                call,
                outcome,
                duration,
                ..
            } => self.finished(call, outcome, *duration),
            _ => {}
        }
    }

    fn queued(&mut self, checked: &Checked) {
        let words = Words::of(checked);
        let call = CallRef::new(&checked.call, None);
        // The number is that of the call of the input: where it stands in its turn, as in a plan.
        let position = call.agents().last().unwrap_or(&call).position;
        let (key, name) = (key(&call), within(&call, &words.name));
        let call = Call {
            name: format!("#{position} {}", shown(&name, &self.mask)),
            doing: words.doing.map(|doing| shown(&doing, &self.mask)),
            tip: None,
        };
        self.calls.insert(key, call);
    }

    fn tip(&mut self, call: &CallRef, tip: &str) {
        let now = self.clock.ms();
        let Some(known) = self.calls.get_mut(&key(call)) else {
            return;
        };
        if known
            .tip
            .is_none_or(|last| now.saturating_sub(last) >= TIP_EVERY)
        {
            known.tip = Some(now);
            let line = format!("{}: {}", known.name, shown(tip, &self.mask));
            self.write(&line);
        }
    }

    fn finished(&mut self, call: &CallRef, outcome: &Outcome, duration: Duration) {
        let ended = outcome_label::timed_words(outcome, duration);
        let line = format!("{}: {ended}", self.name(call));
        let doing = self.calls.remove(&key(call)).and_then(|call| call.doing);
        match doing {
            Some(doing) => self.write(&format!("{line} ({doing})")),
            None => self.write(&line),
        }
    }

    fn name(&self, call: &CallRef) -> String {
        let known = self.calls.get(&key(call));
        known.map_or_else(
            || shown(&call.tool_name, &self.mask),
            |call| call.name.clone(),
        )
    }

    fn write(&mut self, line: &str) {
        // What people see is no reason to stop.
        let _ = writeln!(self.out, "{line}");
    }
}

impl Sink for Lines {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        for event in events {
            self.hear(event);
        }
        Ok(())
    }
}
