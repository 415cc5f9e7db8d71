//! The calls of a turn from the first undelivered one on, each in its state.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::scheduler::circuit_breaker::Place;
use crate::scheduler::permits::Slot;
use crate::scheduler::timeout::Limit;
use toolq_core::types::{
    Accepted, AgentUse, Answer, Begun, Call, CallRef, Invocation, Outcome, Timeout,
};

/// A call that may run, shared with the task that runs it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) call: Call,
    pub(crate) accepted: Accepted,
    pub(crate) place: Option<Place>,
    /// What earlier runs started of it.
    pub(crate) begun: Option<Begun>,
    /// Whether its tool's probe is asked before it starts.
    pub(crate) unsure: bool,
}

impl Job {
    /// Whether an agent works on it.
    pub(crate) fn is_agent(&self) -> bool {
        matches!(self.accepted.invocation, Some(Invocation::Agent(_)))
    }
}

/// A call in the queue.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) call: CallRef,
    pub(crate) state: State,
}

/// Where a call stands.
#[derive(Debug)]
pub(crate) enum State {
    /// Behind the gate.
    Waiting(Arc<Job>),
    /// Inside, from its first start record to its end.
    Running(Run),
    /// Being answered: a state of an instant.
    Ended,
    /// Answered; those before it are not.
    Answered(Answer),
}

impl State {
    fn is_over(&self) -> bool {
        matches!(self, Self::Ended | Self::Answered(_))
    }

    /// Whether it isn't known what an earlier run made of the call, since its tool's probe has not answered, or its agent
    /// has not gone on.
    pub(crate) fn is_unsure(&self) -> bool {
        match self {
            Self::Waiting(job) => {
                job.unsure || job.begun.as_ref().is_some_and(|begun| begun.doubtful)
            }
            Self::Running(run) => run.probing,
            Self::Ended | Self::Answered(_) => false,
        }
    }
}

/// A call that was started.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) job: Arc<Job>,
    pub(crate) key: Arc<str>,
    /// In the time of the run.
    pub(crate) since: Duration,
    /// Counted from 1 over all runs.
    pub(crate) attempt: u32,
    /// Attempts of earlier runs.
    pub(crate) before: u32,
    /// Its tool's probe is being asked; nothing of this run has started.
    pub(crate) probing: bool,
    /// Ends the attempt or the wait before the next one.
    pub(crate) cancel: Option<oneshot::Sender<()>>,
    /// The tool whose failure ended it.
    pub(crate) cancelled_by: Option<String>,
    /// How the last attempt ended, while the next one is waited for.
    pub(crate) last: Option<Outcome>,
    /// What it has used, where an agent works on it.
    pub(crate) agent: Option<Box<AgentUse>>,
    /// Its place among those that run at once; an agent has none.
    _slot: Option<Slot>,
}

impl Run {
    /// A call at its first start.
    pub(crate) fn new(job: Arc<Job>, key: String, now: Duration, slot: Option<Slot>) -> Self {
        let agent = job.is_agent().then(|| job.accepted.tool.name.as_str());
        let before = job.begun.as_ref().map_or(0, |begun| begun.attempts);
        Self {
            agent: agent.map(AgentUse::of).map(Box::new),
            _slot: slot,
            key: key.into(),
            since: now,
            attempt: before + 1,
            before,
            probing: job.unsure,
            job,
            cancel: None,
            cancelled_by: None,
            last: None,
        }
    }

    /// What is left of `timeout.total`; none where it has none.
    pub(crate) fn left(&self, now: Duration) -> Option<Duration> {
        let total = self.timeout().total?;
        Some(total.saturating_sub(now.saturating_sub(self.since)))
    }

    /// How long the next attempt may take, and which limit that is.
    pub(crate) fn limit(&self, now: Duration) -> Limit {
        let Timeout { after, total, .. } = *self.timeout();
        match (self.left(now), total) {
            (Some(left), Some(total)) if left < after => Limit {
                after: left,
                named: total,
            },
            _ => Limit {
                after,
                named: after,
            },
        }
    }

    /// Ends the attempt, or the wait before the next one. One that is over already doesn't listen any more, and keeps
    /// its own end.
    pub(crate) fn end(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            let _ = cancel.send(());
        }
    }

    /// A number of the call's own, the same on every run.
    pub(crate) fn seed(&self) -> u64 {
        let digits = self.key.get(..16).unwrap_or_default();
        u64::from_str_radix(digits, 16).unwrap_or_default()
    }

    fn timeout(&self) -> &Timeout {
        &self.job.accepted.tool.timeout
    }
}

/// The calls by number, counted from 0 in call order within the turn.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    delivered: usize,
    entries: VecDeque<Entry>,
}

impl Queue {
    /// Puts a call last and returns its number.
    pub(crate) fn push(&mut self, call: CallRef, state: State) -> usize {
        self.entries.push_back(Entry { call, state });
        self.delivered + self.entries.len() - 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn get(&self, number: usize) -> Option<&Entry> {
        self.entries.get(number.checked_sub(self.delivered)?)
    }

    fn get_mut(&mut self, number: usize) -> Option<&mut Entry> {
        self.entries.get_mut(number.checked_sub(self.delivered)?)
    }

    /// The number of the call at this position of the turn, unless it was delivered.
    pub(crate) fn number_of(&self, position: usize) -> Option<usize> {
        let at = |entry: &Entry| entry.call.position == position;
        Some(self.delivered + self.entries.iter().position(at)?)
    }

    /// The call of this number, if it has not started.
    pub(crate) fn waiting(&self, number: usize) -> Option<Arc<Job>> {
        match &self.get(number)?.state {
            State::Waiting(job) => Some(Arc::clone(job)),
            _ => None,
        }
    }

    /// Notes that a call has started.
    pub(crate) fn set_running(&mut self, number: usize, run: Run) {
        if let Some(entry) = self.get_mut(number) {
            entry.state = State::Running(run);
        }
    }

    /// The running calls, each with its batch.
    pub(crate) fn running(&mut self) -> impl Iterator<Item = (Option<usize>, &mut Run)> {
        // Calls start in order: no running one stands behind a waiting one.
        self.entries
            .iter_mut()
            .take_while(|entry| !matches!(entry.state, State::Waiting(_)))
            .filter_map(move |entry| match &mut entry.state {
                State::Running(run) => Some((entry.call.batch, run)),
                _ => None,
            })
    }

    /// The started call of this number.
    pub(crate) fn run(&mut self, number: usize) -> Option<(&CallRef, &mut Run)> {
        match self.get_mut(number)? {
            Entry {
                call,
                state: State::Running(run),
            } => Some((call, run)),
            _ => None,
        }
    }

    /// Takes the state of a call that is about to be answered.
    pub(crate) fn end(&mut self, number: usize) -> Option<(CallRef, State)> {
        let entry = self.get_mut(number)?;
        let state = mem::replace(&mut entry.state, State::Ended);
        Some((entry.call.clone(), state))
    }

    /// Notes the answer of a call.
    pub(crate) fn answer(&mut self, number: usize, answer: Answer) {
        if let Some(entry) = self.get_mut(number) {
            entry.state = State::Answered(answer);
        }
    }

    /// The next call in call order, if it is answered.
    pub(crate) fn pop_answered(&mut self) -> Option<(CallRef, Answer)> {
        if !matches!(self.entries.front()?.state, State::Answered(_)) {
            return None;
        }
        let Entry {
            call,
            state: State::Answered(answer),
        } = self.entries.pop_front()?
        else {
            return None;
        };
        self.delivered += 1;
        Some((call, answer))
    }

    /// The calls of the batch of which `number` is the first to run.
    pub(crate) fn batch_from(&self, number: usize) -> Vec<CallRef> {
        let Some(batch) = self.get(number).and_then(|entry| entry.call.batch) else {
            return Vec::new();
        };
        self.entries
            .range(number - self.delivered..)
            .take_while(|entry| entry.call.batch.is_none_or(|other| other == batch))
            .filter(|entry| entry.call.batch.is_some() && !entry.state.is_over())
            .map(|entry| entry.call.clone())
            .collect()
    }
}
