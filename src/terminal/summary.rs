use std::collections::BTreeMap;
use std::time::Duration;

use toolq_core::os::Clock;
use toolq_core::text::format_duration;
use toolq_core::types::{Event, PicoUsd, Prices, Refused, Sink, Tokens, dollars};

/// Ends of calls with which a run stops early.
const STOPPING: [&str; 3] = ["paused", "over_budget", "log_refused"];

/// What a run was, in one line.
pub struct Summary {
    clock: Clock,
    prices: Prices,
    calls: usize,
    batches: usize,
    succeeded: usize,
    /// Errors by their word.
    errors: BTreeMap<&'static str, usize>,
    /// Calls of agents, but for those whose end an earlier run saw.
    inner: usize,
    /// How often agents asked their models.
    asked: usize,
    /// What their models' answers cost; none where one of them has no known price.
    cost: Option<PicoUsd>,
    /// Calls whose end an earlier run saw.
    recalled: usize,
    /// Whether this run stopped before its work was done.
    stopped: bool,
    /// All calls one after the other.
    serial: Duration,
    /// Milliseconds of the first and the last event.
    span: Option<(u64, u64)>,
}

impl Summary {
    /// Nothing so far. Tokens cost what `prices` say.
    pub fn new(clock: Clock, prices: Prices) -> Self {
        Self {
            clock,
            prices,
            calls: 0,
            batches: 0,
            succeeded: 0,
            errors: BTreeMap::new(),
            inner: 0,
            asked: 0,
            cost: Some(0),
            recalled: 0,
            stopped: false,
            serial: Duration::ZERO,
            span: None,
        }
    }

    /// How many calls were answered with an error.
    pub fn errors(&self) -> usize {
        self.errors.values().sum()
    }

    /// Whether a call ended in a way after which somebody has to look before the session goes on. One that is in doubt or
    /// over its budget is so in every run that tells it; a log that was full is none of a later run.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// `5 calls in 3 batches: 3 ok, 1 timeout, 1 unknown tool; 8s in series, 4s as run`.
    pub fn text(&self) -> String {
        let count = |number: usize, one: &str, many: &str| {
            format!("{number} {}", if number == 1 { one } else { many })
        };
        if self.calls == 0 {
            return "no calls".to_owned();
        }
        let errors = self.errors.iter();
        let errors = errors.map(|(word, number)| format!("{number} {}", word.replace('_', " ")));
        let succeeded = (self.succeeded > 0).then(|| format!("{} ok", self.succeeded));
        let open = self.calls - self.succeeded - self.errors();
        let open = (open > 0).then(|| format!("{open} without a result"));
        let (from, to) = self.span.unwrap_or_default();
        // What has no result went on until now.
        let to = open.as_ref().map_or(to, |_| self.clock.ms());
        let ends: Vec<_> = succeeded.into_iter().chain(errors).chain(open).collect();
        let recalled = match self.recalled {
            0 => String::new(),
            recalled => format!(" ({recalled} from the log)"),
        };
        let agents = match self.asked {
            0 => String::new(),
            asked => format!(
                "; agents: {}, {}{}",
                count(asked, "turn", "turns"),
                count(self.inner, "call", "calls"),
                self.cost_words()
            ),
        };
        format!(
            "{} in {}: {}{recalled}{agents}; {} in series, {} as run",
            count(self.calls, "call", "calls"),
            count(self.batches, "batch", "batches"),
            ends.join(", "),
            format_duration(self.serial),
            format_duration(Duration::from_millis(to.saturating_sub(from))),
        )
    }

    /// `, $0.0105`; nothing where no prices are known at all.
    fn cost_words(&self) -> String {
        match self.cost {
            _ if self.prices.0.is_empty() => String::new(),
            Some(cost) => format!(", {}", dollars(cost)),
            None => ", cost unknown".to_owned(),
        }
    }

    fn spend(&mut self, model: &str, tokens: &Tokens) {
        let cost = self.prices.cost(model, tokens);
        self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }

    fn hear(&mut self, event: &Event<'_>) {
        if let Event::Finished {
            outcome,
            agent: Some(agent),
            ..
        } = event
            && !outcome.is_recalled()
        {
            for (model, tokens) in &agent.lost {
                self.spend(model, tokens);
            }
        }
        match event {
            Event::Queued { checked, .. } if checked.call.within.is_some() => self.inner += 1,
            Event::Queued { .. } => self.calls += 1,
            Event::BatchStarted { calls, .. } => {
                let of_input = calls.first().is_none_or(|call| call.within.is_none());
                self.batches += usize::from(of_input);
            }
            Event::AgentProgress { .. } => self.asked += 1,
            Event::AgentMessage {
                response: Some((response, _)),
                ..
            } => {
                let model = response.model.as_deref().unwrap_or_default();
                self.spend(model, &response.usage);
            }
            Event::Finished { call, outcome, .. } if call.within.is_some() => {
                self.stopped |= STOPPING.contains(&outcome.status());
                // What an earlier run saw to is no work of this one, as its turns are not.
                self.inner -= usize::from(outcome.is_recalled()).min(self.inner);
            }
            Event::Finished {
                outcome, duration, ..
            } => {
                let again = outcome.is_recalled();
                self.recalled += usize::from(again);
                let stays = outcome.is_in_doubt() || outcome.status() == "over_budget";
                self.stopped |= stays || !again && STOPPING.contains(&outcome.status());
                self.serial += *duration;
                if outcome.is_error() {
                    *self.errors.entry(outcome.status()).or_default() += 1;
                } else {
                    self.succeeded += 1;
                }
            }
            _ => {}
        }
    }
}

impl Sink for Summary {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        let now = self.clock.ms();
        let (from, _) = self.span.unwrap_or((now, now));
        self.span = Some((from, now));
        for event in events {
            self.hear(event);
        }
        Ok(())
    }
}
