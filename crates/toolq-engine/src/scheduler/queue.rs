//! The queue of a turn: its calls from the first undelivered one on, each with its state.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use crate::scheduler::running_call::{CallJob, RunningCall};
use toolq_core::types::{CallAnswer, CallRef};

/// A call in the queue.
#[derive(Debug)]
pub(crate) struct QueueEntry {
    pub(crate) call: Arc<CallRef>,
    pub(crate) state: CallState,
}

/// The state of a call in the queue. Most calls of a long turn wait, so the others are in boxes.
#[derive(Debug)]
pub(crate) enum CallState {
    /// It waits at the gate.
    Waiting(Arc<CallJob>),
    /// It runs: from its first start record to its end.
    Running(Box<RunningCall>),
    /// Its answer is being built. No call stays in this state.
    Finishing,
    /// It has its answer, which can't be delivered before those of earlier calls.
    Answered(Box<CallAnswer>),
    /// It repeats the call at this position, and has its answer, too.
    Repeats(usize),
}

impl CallState {
    fn is_finished(&self) -> bool {
        matches!(self, Self::Finishing | Self::Answered(_) | Self::Repeats(_))
    }

    /// Returns whether the call may have had an effect in an earlier run, because its tool's probe hasn't finished.
    pub(crate) fn may_be_in_doubt(&self) -> bool {
        match self {
            Self::Waiting(job) => job.needs_probe,
            Self::Running(run) => run.is_probing,
            Self::Finishing | Self::Answered(_) | Self::Repeats(_) => false,
        }
    }
}

/// The calls of a turn by number, counted from 0 in call order.
#[derive(Debug, Default)]
pub(crate) struct CallQueue {
    delivered_count: usize,
    entries: VecDeque<QueueEntry>,
    /// Answers that later calls may have, too, by position. `None` if no later call can repeat one.
    kept: Option<HashMap<usize, CallAnswer>>,
}

impl CallQueue {
    /// Keeps answers from now on, because a later call may repeat one.
    pub(crate) fn keep_answers(&mut self) {
        self.kept.get_or_insert_default();
    }

    /// Appends a call and returns its number.
    pub(crate) fn push(&mut self, call: Arc<CallRef>, state: CallState) -> usize {
        self.entries.push_back(QueueEntry { call, state });
        self.delivered_count + self.entries.len() - 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn get(&self, number: usize) -> Option<&QueueEntry> {
        self.entries.get(number.checked_sub(self.delivered_count)?)
    }

    fn get_mut(&mut self, number: usize) -> Option<&mut QueueEntry> {
        self.entries
            .get_mut(number.checked_sub(self.delivered_count)?)
    }

    /// Returns the number of the call at this position of the turn, unless it has been delivered.
    pub(crate) fn number_at_position(&self, position: usize) -> Option<usize> {
        let is_at_position = |entry: &QueueEntry| entry.call.position == position;
        Some(self.delivered_count + self.entries.iter().position(is_at_position)?)
    }

    /// Returns the job of the call with this number, if it hasn't started.
    pub(crate) fn waiting_job(&self, number: usize) -> Option<Arc<CallJob>> {
        match &self.get(number)?.state {
            CallState::Waiting(job) => Some(Arc::clone(job)),
            _ => None,
        }
    }

    /// Marks a call as running.
    pub(crate) fn set_running(&mut self, number: usize, run: RunningCall) {
        if let Some(entry) = self.get_mut(number) {
            entry.state = CallState::Running(Box::new(run));
        }
    }

    /// Returns the running calls, each with its batch.
    pub(crate) fn running_calls(
        &mut self,
    ) -> impl Iterator<Item = (Option<usize>, &mut RunningCall)> {
        self.entries
            .iter_mut()
            .filter_map(move |entry| match &mut entry.state {
                CallState::Running(run) => Some((entry.call.batch, &mut **run)),
                _ => None,
            })
    }

    /// Returns the running call with this number.
    pub(crate) fn running_call(
        &mut self,
        number: usize,
    ) -> Option<(&Arc<CallRef>, &mut RunningCall)> {
        match self.get_mut(number)? {
            QueueEntry {
                call,
                state: CallState::Running(run),
            } => Some((call, run)),
            _ => None,
        }
    }

    /// Takes the state of a call that is about to get its answer.
    pub(crate) fn take_state(&mut self, number: usize) -> Option<(Arc<CallRef>, CallState)> {
        let entry = self.get_mut(number)?;
        let state = mem::replace(&mut entry.state, CallState::Finishing);
        Some((Arc::clone(&entry.call), state))
    }

    /// Stores the answer of a call.
    pub(crate) fn set_answer(&mut self, number: usize, answer: CallAnswer) {
        if let Some(entry) = self.get_mut(number) {
            entry.state = CallState::Answered(Box::new(answer));
        }
    }

    /// Removes and returns the next call in call order, if it has its answer.
    pub(crate) fn pop_answered(&mut self) -> Option<(Arc<CallRef>, CallAnswer)> {
        let answer = match &self.entries.front()?.state {
            CallState::Repeats(position) => Some(self.kept.as_ref()?.get(position)?.clone()),
            CallState::Answered(_) => None,
            _ => return None,
        };
        let QueueEntry { call, state } = self.entries.pop_front()?;
        self.delivered_count += 1;
        if let CallState::Answered(answer) = state {
            if let Some(kept) = &mut self.kept {
                kept.insert(call.position, (*answer).clone());
            }
            return Some((call, *answer));
        }
        Some((call, answer?))
    }

    /// Returns the numbers from the first to the last undelivered call of the batch of this call. The calls of a batch
    /// are consecutive, except that calls that don't run may be between them.
    pub(crate) fn batch_range(&self, number: usize) -> Range<usize> {
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
    pub(crate) fn batch_calls(&self, number: usize) -> Vec<CallRef> {
        let Range { start, end } = self.batch_range(number);
        self.entries
            .range(start - self.delivered_count..end - self.delivered_count)
            .filter(|entry| entry.call.batch.is_some() && !entry.state.is_finished())
            .map(|entry| CallRef::clone(&entry.call))
            .collect()
    }
}
