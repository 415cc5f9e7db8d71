//! The order of calls. Without locks, concurrency-safe calls run alongside each other, and any other call runs alone.
//! Calls with locks wait only for earlier calls whose locks conflict with theirs, and for earlier calls that aren't
//! concurrency-safe and have no locks.
//!
//! A pure state machine: it knows neither time nor the concurrency limit, and knows calls only by the numbers that its
//! user gave them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::schedule::call_access::CallAccess;
use crate::schedule::call_set::CallSet;
use crate::schedule::dependency_graph::{DependencyGraph, VertexId};
use crate::schedule::lock_index::LockIndex;
use crate::schedule::number_map::NumberMap;
use crate::types::CallLocks;

/// Admits calls in their order: each as soon as the calls that it waits for have finished.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    /// Calls at the end of the queue that aren't in the graph yet, which saves memory. They enter it once every call before
    /// them has.
    backlog: VecDeque<(usize, CallAccess)>,
    /// The number of calls in the graph that are alone.
    alone_count: usize,
    graph: DependencyGraph,
    calls: BTreeMap<VertexId, GatedCall>,
    ids: NumberMap<VertexId>,
    waiting: BTreeSet<VertexId>,
    ready: BTreeSet<VertexId>,
    all: CallSet,
    /// The calls without locks that aren't safe, which all others wait for.
    alone: CallSet,
    /// The calls with locks that aren't safe, which safe calls without locks wait for.
    locked_unsafe: CallSet,
    locks: LockIndex,
}

#[derive(Debug, Clone)]
struct GatedCall {
    number: usize,
    access: CallAccess,
}

impl Gate {
    /// Adds a call to the end of the queue.
    pub fn push(&mut self, call: usize, access: CallAccess) {
        self.backlog.push_back((call, access));
        self.look_ahead();
    }

    /// Returns whether another call would matter: none that waits may enter, and none runs alone before them.
    pub(crate) fn is_starved(&self) -> bool {
        self.ready.is_empty() && self.alone_count == 0
    }

    /// Takes calls out of the backlog until one may enter. No call may enter before a call that runs alone has
    /// finished.
    fn look_ahead(&mut self) {
        while self.is_starved()
            && let Some((call, access)) = self.backlog.pop_front()
        {
            self.take_up(call, access);
        }
    }

    /// Takes calls out of the backlog up to this one.
    fn look_ahead_to(&mut self, call: usize) {
        while !self.ids.contains_key(&call)
            && let Some((next, access)) = self.backlog.pop_front()
        {
            self.take_up(next, access);
        }
    }

    fn take_up(&mut self, call: usize, access: CallAccess) {
        let before = self.vertices_before(&access);
        let id = self.graph.add_call(before);
        if self.graph.is_ready(id) {
            self.ready.insert(id);
        }
        self.waiting.insert(id);
        self.all.add(id, &self.graph);
        match &access.locks {
            None if access.safe => {}
            None => {
                self.alone_count += 1;
                self.alone.add(id, &self.graph);
            }
            Some(locks) => {
                if !access.safe {
                    self.locked_unsafe.add(id, &self.graph);
                }
                for lock in locks.iter() {
                    self.locks.add(lock, id, &self.graph);
                }
            }
        }
        self.ids.insert(call, id);
        let number = call;
        self.calls.insert(id, GatedCall { number, access });
    }

    fn vertices_before(&mut self, access: &CallAccess) -> Vec<VertexId> {
        let graph = &mut self.graph;
        let mut before = Vec::new();
        match &access.locks {
            None if access.safe => {
                before.extend(self.alone.close_vertex(graph));
                before.extend(self.locked_unsafe.close_vertex(graph));
            }
            None => before.extend(self.all.close_vertex(graph)),
            Some(locks) => {
                before.extend(self.alone.close_vertex(graph));
                for lock in locks.iter() {
                    self.locks.find_conflicts(lock, graph, &mut before);
                }
            }
        }
        before
    }

    /// Returns the first waiting call that may enter.
    pub fn peek(&self) -> Option<usize> {
        self.ready.first().and_then(|id| self.number(*id))
    }

    /// Whether a waiting call may enter.
    pub fn is_ready(&mut self, call: usize) -> bool {
        self.look_ahead_to(call);
        self.ids
            .get(&call)
            .is_some_and(|id| self.ready.contains(id))
    }

    /// Returns whether an admitted call hasn't left yet.
    pub fn has_admitted(&self) -> bool {
        self.calls.len() > self.waiting.len()
    }

    /// Returns the first waiting call, whether it may enter or not.
    pub fn next_waiting(&self) -> Option<usize> {
        let waiting = self.waiting.first().and_then(|id| self.number(*id));
        waiting.or_else(|| self.backlog.front().map(|(call, _)| *call))
    }

    /// Returns whether all calls have left.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.backlog.is_empty()
    }

    /// Admits the first waiting call that may enter.
    pub fn enter(&mut self) -> Option<usize> {
        let id = self.ready.pop_first()?;
        self.waiting.remove(&id);
        self.look_ahead();
        self.number(id)
    }

    /// Releases the gate for an admitted call.
    pub fn leave(&mut self, call: usize) {
        if let Some(id) = self
            .ids
            .get(&call)
            .copied()
            .filter(|id| !self.waiting.contains(id))
        {
            self.finish(id);
        }
    }

    /// Replaces the locks of an admitted call that hasn't started. Returns whether it may start; if not, it waits again.
    pub fn change_locks(&mut self, call: usize, locks: CallLocks) -> bool {
        let Some(id) = self.ids.get(&call).copied() else {
            return true;
        };
        let Some(changed) = self.calls.get_mut(&id) else {
            return true;
        };
        for lock in changed.access.locks.iter().flat_map(|locks| locks.iter()) {
            self.locks.remove(lock);
        }
        for lock in locks.iter() {
            self.locks.add(lock, id, &self.graph);
        }
        self.alone_count -= usize::from(changed.access.is_barrier());
        changed.access.locks = Some(locks);
        let access = changed.access.clone();
        for (other_id, other) in &self.calls {
            let is_first = *other_id < id || !self.waiting.contains(other_id);
            if *other_id == id {
            } else if is_first && access.waits_for(&other.access).is_some() {
                self.graph.add_edge(*other_id, id);
            } else if !is_first && other.access.waits_for(&access).is_some() {
                self.graph.add_edge(id, *other_id);
                self.ready.remove(other_id);
            }
        }
        let is_ready = self.graph.is_ready(id);
        if !is_ready {
            self.waiting.insert(id);
        }
        self.look_ahead();
        is_ready
    }

    /// Removes a waiting call, wherever it is in the queue. Returns whether it was waiting.
    pub fn remove(&mut self, call: usize) -> bool {
        let id = self.ids.get(&call).copied();
        if id.is_none()
            && let Some(index) = self.backlog.iter().position(|(other, _)| *other == call)
        {
            self.backlog.remove(index);
            return true;
        }
        let id = id.filter(|id| self.waiting.contains(id));
        if let Some(id) = id {
            self.finish(id);
        }
        id.is_some()
    }

    /// Removes the waiting calls for which `predicate` holds, and returns them in their order.
    pub fn withdraw(&mut self, predicate: impl Fn(usize) -> bool) -> Vec<usize> {
        let waiting = self.waiting.iter().copied();
        let is_withdrawn = |id: &VertexId| self.number(*id).is_some_and(&predicate);
        let waiting: Vec<VertexId> = waiting.filter(is_withdrawn).collect();
        let mut withdrawn: Vec<usize> = waiting.iter().filter_map(|id| self.number(*id)).collect();
        self.backlog.retain(|(call, _)| {
            let stays = !predicate(*call);
            if !stays {
                withdrawn.push(*call);
            }
            stays
        });
        for id in waiting {
            self.finish(id);
        }
        withdrawn
    }

    /// Returns the calls that a waiting call waits for, in their order, without those that it waits for only because
    /// another of them does.
    pub fn calls_before(&mut self, call: usize) -> Vec<usize> {
        self.look_ahead_to(call);
        let Some(id) = self.ids.get(&call) else {
            return Vec::new();
        };
        let is_barrier = |id| {
            self.calls
                .get(&id)
                .is_some_and(|call| call.access.is_barrier())
        };
        let mut before = self.graph.calls_before(*id, is_barrier);
        before.reverse();
        before
            .into_iter()
            .filter_map(|id| self.number(id))
            .collect()
    }

    fn finish(&mut self, id: VertexId) {
        self.waiting.remove(&id);
        self.ready.remove(&id);
        if let Some(GatedCall { number, access }) = self.calls.remove(&id) {
            self.ids.remove(&number);
            self.alone_count -= usize::from(access.is_barrier());
            for lock in access.locks.iter().flat_map(|locks| locks.iter()) {
                self.locks.remove(lock);
            }
        }
        let ready = self.graph.finish(id);
        self.ready
            .extend(ready.into_iter().filter(|id| self.waiting.contains(id)));
        self.look_ahead();
    }

    fn number(&self, id: VertexId) -> Option<usize> {
        self.calls.get(&id).map(|call| call.number)
    }
}

#[cfg(test)]
mod tests;
