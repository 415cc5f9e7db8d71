//! The queue of a turn: its calls from the first undelivered one on, each with its state.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::attempt::CallJob;
use crate::reach::StopCause;
use toolq_core::types::{CallAnswer, CallRef};

/// A call in the queue.
#[derive(Debug)]
pub(super) struct QueueEntry {
    pub(super) call: Arc<CallRef>,
    pub(super) state: CallState,
}

/// The state of a call in the queue. Most calls of a long turn wait, so the others are in boxes.
#[derive(Debug)]
pub(super) enum CallState {
    /// It waits at the gate.
    Waiting(Arc<CallJob>),
    /// It has its place in the order, and runs until it has its outcome.
    Running(CallStop),
    /// Its answer is being built. No call stays in this state.
    Finishing,
    /// It has its answer, which can't be delivered before those of earlier calls, nor before it is durable.
    Answered(Box<CallAnswer>, Durability),
    /// It repeats the call at this position, and has its answer, too.
    Repeats(usize),
}

/// Stops a call that runs, once.
#[derive(Debug)]
pub(super) struct CallStop(Option<oneshot::Sender<StopCause>>);

impl CallStop {
    pub(super) fn new(stop: oneshot::Sender<StopCause>) -> Self {
        Self(Some(stop))
    }

    /// Only the first cause counts. A call that has already ended keeps its own outcome.
    pub(super) fn send(&mut self, cause: &StopCause) {
        if let Some(stop) = self.0.take() {
            let _ = stop.send(cause.clone());
        }
    }
}

/// What an answer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// Nothing: losing it costs no more than the time to repeat the call.
    Unneeded,
    /// It must be durable before anybody reads it, and that wasn't requested yet.
    Unrequested,
    /// It is durable once this request is done.
    Requested(u64),
}

impl CallState {
    fn is_finished(&self) -> bool {
        matches!(
            self,
            Self::Finishing | Self::Answered(..) | Self::Repeats(_)
        )
    }
}

/// The calls of a turn by number, counted from 0 in call order.
#[derive(Debug, Default)]
pub(super) struct CallQueue {
    delivered_count: usize,
    entries: VecDeque<QueueEntry>,
    /// Answers that later calls may have, too, by position. `None` if no later call can repeat one.
    kept: Option<HashMap<usize, CallAnswer>>,
    /// How often results were to be made durable.
    sync_requests: u64,
    /// The latest of these requests that is done.
    synced: u64,
    pub(super) has_unrequested: bool,
}

impl CallQueue {
    /// Keeps answers from now on, because a later call may repeat one.
    pub(super) fn keep_answers(&mut self) {
        self.kept.get_or_insert_default();
    }

    /// Appends a call and returns its number.
    pub(super) fn push(&mut self, call: Arc<CallRef>, state: CallState) -> usize {
        self.entries.push_back(QueueEntry { call, state });
        self.delivered_count + self.entries.len() - 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn get(&self, number: usize) -> Option<&QueueEntry> {
        self.entries.get(number.checked_sub(self.delivered_count)?)
    }

    fn get_mut(&mut self, number: usize) -> Option<&mut QueueEntry> {
        self.entries
            .get_mut(number.checked_sub(self.delivered_count)?)
    }

    /// Returns the number of the call at this position of the turn, unless it has been delivered.
    pub(super) fn number_at_position(&self, position: usize) -> Option<usize> {
        let is_at_position = |entry: &QueueEntry| entry.call.position == position;
        Some(self.delivered_count + self.entries.iter().position(is_at_position)?)
    }

    /// Returns the job of the call with this number, if it hasn't started.
    pub(super) fn waiting_job(&self, number: usize) -> Option<Arc<CallJob>> {
        match &self.get(number)?.state {
            CallState::Waiting(job) => Some(Arc::clone(job)),
            _ => None,
        }
    }

    /// Marks a call as running.
    pub(super) fn set_running(&mut self, number: usize, stop: CallStop) {
        if let Some(entry) = self.get_mut(number) {
            entry.state = CallState::Running(stop);
        }
    }

    /// Returns whether a call runs, and nothing has stopped it.
    pub(super) fn is_running(&self, number: usize) -> bool {
        let entry = self.get(number);
        entry.is_some_and(|entry| matches!(entry.state, CallState::Running(CallStop(Some(_)))))
    }

    /// Returns what stops the running calls, each with its batch.
    pub(super) fn running_calls(&mut self) -> impl Iterator<Item = (Option<usize>, &mut CallStop)> {
        self.entries
            .iter_mut()
            .filter_map(|entry| match &mut entry.state {
                CallState::Running(stop) => Some((entry.call.batch, stop)),
                _ => None,
            })
    }

    /// Marks a waiting or running call as about to get its answer, and returns it.
    pub(super) fn begin_answer(&mut self, number: usize) -> Option<Arc<CallRef>> {
        let entry = self.get_mut(number)?;
        if entry.state.is_finished() {
            return None;
        }
        entry.state = CallState::Finishing;
        Some(Arc::clone(&entry.call))
    }

    /// Stores the answer of a call.
    pub(super) fn set_answer(&mut self, number: usize, answer: CallAnswer, durability: Durability) {
        self.has_unrequested |= durability == Durability::Unrequested;
        if let Some(entry) = self.get_mut(number) {
            entry.state = CallState::Answered(Box::new(answer), durability);
        }
    }

    /// Makes all answers wait for a request that the caller makes. Returns its number.
    pub(super) fn request_sync(&mut self) -> u64 {
        self.has_unrequested = false;
        self.sync_requests += 1;
        for entry in &mut self.entries {
            if let CallState::Answered(_, durability @ Durability::Unrequested) = &mut entry.state {
                *durability = Durability::Requested(self.sync_requests);
            }
        }
        self.sync_requests
    }

    /// Notes that the requests up to this one are done.
    pub(super) fn note_synced(&mut self, request: u64) {
        self.synced = self.synced.max(request);
    }

    /// Removes and returns the next call in call order, if it has its answer.
    pub(super) fn pop_answered(&mut self) -> Option<(Arc<CallRef>, CallAnswer)> {
        let answer = match &self.entries.front()?.state {
            CallState::Repeats(position) => Some(self.kept.as_ref()?.get(position)?.clone()),
            CallState::Answered(_, Durability::Unneeded) => None,
            CallState::Answered(_, Durability::Requested(request)) if *request <= self.synced => {
                None
            }
            _ => return None,
        };
        let QueueEntry { call, state } = self.entries.pop_front()?;
        self.delivered_count += 1;
        if let CallState::Answered(answer, _) = state {
            if let Some(kept) = &mut self.kept {
                kept.insert(call.position, (*answer).clone());
            }
            return Some((call, *answer));
        }
        Some((call, answer?))
    }

    /// Returns the numbers from the first to the last undelivered call of the batch of this call. The calls of a batch
    /// are consecutive, except that calls that don't run may be between them.
    pub(super) fn batch_range(&self, number: usize) -> Range<usize> {
        let Some(batch) = self.get(number).and_then(|entry| entry.call.batch) else {
            return number..number;
        };
        let may_belong = |entry: &&QueueEntry| entry.call.batch.is_none_or(|other| other == batch);
        let at = number - self.delivered_count;
        let before = self
            .entries
            .range(..at)
            .rev()
            .take_while(may_belong)
            .count();
        let after = self.entries.range(at..).take_while(may_belong).count();
        number - before..number + after
    }

    /// Returns the unfinished calls of the batch of this call.
    pub(super) fn batch_calls(&self, number: usize) -> Vec<CallRef> {
        let Range { start, end } = self.batch_range(number);
        self.entries
            .range(start - self.delivered_count..end - self.delivered_count)
            .filter(|entry| entry.call.batch.is_some() && !entry.state.is_finished())
            .map(|entry| CallRef::clone(&entry.call))
            .collect()
    }
}
