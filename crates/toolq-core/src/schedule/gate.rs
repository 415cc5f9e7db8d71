//! The order of calls. Without locks, concurrency-safe calls run alongside each other, and any other call runs alone.
//! Calls with locks wait only for earlier calls whose locks conflict with theirs, and for earlier calls that aren't
//! concurrency-safe and have no locks.
//!
//! A pure state machine: it knows neither time nor the concurrency limit, and knows calls only by the numbers that its
//! user gave them.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ffi::OsString;
use std::path::Component;

use crate::schedule::dependency_graph::{CallAccess, DependencyGraph, NumberMap, VertexId};
use crate::types::{CallLock, CallLocks, LockMode, LockedResource};

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

// Sets of calls that others wait for as a whole.

/// A growing set of calls.
#[derive(Debug, Clone, Default)]
struct CallSet {
    /// The vertex of those that were waited for.
    vertex: Option<VertexId>,
    added: Vec<VertexId>,
    compact_at: usize,
}

impl CallSet {
    pub(crate) fn add(&mut self, call: VertexId, graph: &DependencyGraph) {
        self.added.push(call);
        if self.added.len() > self.compact_at {
            self.added.retain(|call| graph.is_open(*call));
            self.compact_at = 2 * self.added.len() + 16;
        }
    }

    /// Returns the vertex of all calls in the set that haven't finished, if there are any.
    fn close_vertex(&mut self, graph: &mut DependencyGraph) -> Option<VertexId> {
        self.vertex = self.vertex.filter(|vertex| graph.is_open(*vertex));
        self.added.retain(|call| graph.is_open(*call));
        self.vertex = match (self.vertex, self.added.as_slice()) {
            (vertex, []) => vertex,
            (None, [call]) => Some(*call),
            (vertex, added) => {
                let members = added.iter().copied().chain(vertex);
                Some(graph.add_set(members.collect()))
            }
        };
        self.added.clear();
        self.vertex
    }
}

// Finds the calls whose locks conflict with that of another, without looking at all calls.

/// The calls that hold or wait for locks, by what these are on: a tree of the components of paths. A text is a path of one
/// component, in a tree of its own.
#[derive(Debug, Clone, Default)]
struct LockIndex {
    files: LockNode,
    texts: LockNode,
}

#[derive(Debug, Clone, Default)]
struct LockNode {
    children: HashMap<OsString, LockNode>,
    /// The number of locks here and below.
    locks: usize,
    /// The locks on exactly this.
    here: LockHolders,
    /// The locks on this and everything below it.
    here_and_below: LockHolders,
}

#[derive(Debug, Clone, Default)]
struct LockHolders {
    readers: CallSet,
    writers: CallSet,
}

impl LockIndex {
    /// Returns the vertices that a call with this lock has to wait for.
    fn find_conflicts(
        &mut self,
        lock: &CallLock,
        graph: &mut DependencyGraph,
        found: &mut Vec<VertexId>,
    ) {
        let (mut node, components) = self.locate(&lock.resource);
        for component in components {
            node.here.find_conflicts(lock.mode, graph, found);
            let Some(child) = node.children.get_mut(&component) else {
                return;
            };
            node = child;
        }
        node.here_and_below.find_conflicts(lock.mode, graph, found);
    }

    /// Adds a lock of a call.
    pub(crate) fn add(&mut self, lock: &CallLock, call: VertexId, graph: &DependencyGraph) {
        let (mut node, components) = self.locate(&lock.resource);
        node.add_below(lock.mode, call, graph);
        for component in components {
            node = node.children.entry(component).or_default();
            node.add_below(lock.mode, call, graph);
        }
        node.here.add(lock.mode, call, graph);
    }

    /// Removes a lock of a call, which has finished.
    pub(crate) fn remove(&mut self, lock: &CallLock) {
        let (mut node, components) = self.locate(&lock.resource);
        node.locks = node.locks.saturating_sub(1);
        for component in components {
            let Some(child) = node.children.get_mut(&component) else {
                return;
            };
            if child.locks <= 1 {
                node.children.remove(&component);
                return;
            }
            child.locks -= 1;
            let Some(child) = node.children.get_mut(&component) else {
                return;
            };
            node = child;
        }
    }

    fn locate(&mut self, resource: &LockedResource) -> (&mut LockNode, Vec<OsString>) {
        match resource {
            LockedResource::Path(path) => {
                let names = path.components().filter_map(|component| match component {
                    Component::Normal(name) => Some(name.to_owned()),
                    _ => None,
                });
                (&mut self.files, names.collect())
            }
            LockedResource::Text(text) => (&mut self.texts, vec![text.into()]),
        }
    }
}

impl LockNode {
    fn add_below(&mut self, mode: LockMode, call: VertexId, graph: &DependencyGraph) {
        self.locks += 1;
        self.here_and_below.add(mode, call, graph);
    }
}

impl LockHolders {
    fn find_conflicts(
        &mut self,
        mode: LockMode,
        graph: &mut DependencyGraph,
        found: &mut Vec<VertexId>,
    ) {
        found.extend(self.writers.close_vertex(graph));
        if mode == LockMode::Write {
            found.extend(self.readers.close_vertex(graph));
        }
    }

    fn add(&mut self, mode: LockMode, call: VertexId, graph: &DependencyGraph) {
        match mode {
            LockMode::Read => self.readers.add(call, graph),
            LockMode::Write => self.writers.add(call, graph),
        }
    }
}

#[cfg(test)]
mod call_set_tests {
    use super::*;

    /// Calls that no other call waits for don't pile up.
    #[test]
    fn a_set_forgets_calls_that_have_finished() {
        let (mut graph, mut set) = (DependencyGraph::default(), CallSet::default());
        for _ in 0..1_000 {
            let call = graph.add_call(Vec::new());
            set.add(call, &graph);
            graph.finish(call);
        }
        assert!(set.added.len() < 100, "{}", set.added.len());
        assert_eq!(set.close_vertex(&mut graph), None);
    }
}

#[cfg(test)]
mod lock_index_tests {
    use super::*;

    fn lock(path: &str) -> CallLock {
        CallLock {
            name: path.to_owned(),
            mode: LockMode::Write,
            resource: LockedResource::Path(path.into()),
        }
    }

    /// A long run locks many files, one after the other.
    #[test]
    fn locks_of_calls_that_have_finished_leave_nothing() {
        let (mut index, mut graph) = (LockIndex::default(), DependencyGraph::default());
        let calls: Vec<_> = (0..3).map(|_| graph.add_call(Vec::new())).collect();
        let paths = ["/a/b", "/a/b", "/a/c"];
        for (call, path) in calls.iter().zip(paths) {
            index.add(&lock(path), *call, &graph);
        }
        index.remove(&lock("/a/b"));
        let below = &index.files.children[&OsString::from("a")];
        assert_eq!(
            (index.files.locks, below.locks, below.children.len()),
            (2, 2, 2)
        );
        index.remove(&lock("/a/b"));
        let below = &index.files.children[&OsString::from("a")];
        assert_eq!(
            (index.files.locks, below.locks, below.children.len()),
            (1, 1, 1)
        );
        index.remove(&lock("/a/c"));
        assert_eq!((index.files.locks, index.files.children.len()), (0, 0));
    }
}
