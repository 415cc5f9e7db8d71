//! Which calls wait for which, as a graph. Many calls may wait for the same many others, so sets of calls are vertices,
//! too: the number of edges stays proportional to the number of calls.

use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::types::{AcceptedCall, CallLock, CallLocks, LockMode};

/// A call, or a set of calls. Later ones have higher numbers.
pub(crate) type VertexId = usize;

/// A graph of the calls that haven't finished. Each edge leads from a vertex to one that waits for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct DependencyGraph {
    vertices: NumberMap<Vertex>,
    next_id: VertexId,
}

#[derive(Debug, Clone)]
struct Vertex {
    /// Whether it is a call, and not a set.
    is_call: bool,
    /// The latest call in it.
    newest: VertexId,
    /// The number of vertices that it still waits for.
    open: usize,
    waits_for: Vec<VertexId>,
    dependents: Vec<VertexId>,
}

impl DependencyGraph {
    /// Adds a call that waits for these vertices.
    pub(crate) fn add_call(&mut self, waits_for: Vec<VertexId>) -> VertexId {
        let newest = self.next_id;
        self.add(true, newest, waits_for)
    }

    /// Adds a set, which finishes when all these vertices have.
    pub(crate) fn add_set(&mut self, members: Vec<VertexId>) -> VertexId {
        let newest = members.iter().map(|id| self.newest(*id)).max();
        self.add(false, newest.unwrap_or_default(), members)
    }

    fn add(&mut self, is_call: bool, newest: VertexId, mut waits_for: Vec<VertexId>) -> VertexId {
        let id = self.next_id;
        self.next_id += 1;
        waits_for.sort_unstable();
        waits_for.dedup();
        waits_for.retain(|dependency| self.is_open(*dependency));
        for dependency in &waits_for {
            if let Some(vertex) = self.vertices.get_mut(dependency) {
                vertex.dependents.push(id);
            }
        }
        let vertex = Vertex {
            is_call,
            newest,
            open: waits_for.len(),
            waits_for,
            dependents: Vec::new(),
        };
        self.vertices.insert(id, vertex);
        id
    }

    /// Lets a call wait for one more, unless that waits for it already.
    pub(crate) fn add_edge(&mut self, from: VertexId, to: VertexId) {
        if !self.is_open(from) || self.reaches(to, from) {
            return;
        }
        if let Some(vertex) = self.vertices.get_mut(&to)
            && !vertex.waits_for.contains(&from)
        {
            vertex.waits_for.push(from);
            vertex.open += 1;
            if let Some(vertex) = self.vertices.get_mut(&from) {
                vertex.dependents.push(to);
            }
        }
    }

    /// Whether a vertex hasn't finished.
    pub(crate) fn is_open(&self, id: VertexId) -> bool {
        self.vertices.contains_key(&id)
    }

    /// Whether a call waits for nothing.
    pub(crate) fn is_ready(&self, id: VertexId) -> bool {
        self.vertices
            .get(&id)
            .is_some_and(|vertex| vertex.open == 0)
    }

    /// Removes a call. Returns the calls that wait for nothing now.
    pub(crate) fn finish(&mut self, id: VertexId) -> Vec<VertexId> {
        let mut ready = Vec::new();
        let mut finished = vec![id];
        while let Some(id) = finished.pop() {
            let Some(vertex) = self.vertices.remove(&id) else {
                continue;
            };
            for dependent in vertex.dependents {
                let Some(waiting) = self.vertices.get_mut(&dependent) else {
                    continue;
                };
                waiting.open -= 1;
                match (waiting.open, waiting.is_call) {
                    (0, true) => ready.push(dependent),
                    (0, false) => finished.push(dependent),
                    _ => {}
                }
            }
        }
        ready
    }

    /// Returns the calls that a call waits for, latest first, without those that it waits for only because another of
    /// them does. `is_barrier` says for which calls all before them have to finish.
    pub(crate) fn calls_before(
        &self,
        id: VertexId,
        is_barrier: impl Fn(VertexId) -> bool,
    ) -> Vec<VertexId> {
        let mut search = CallSearch {
            graph: self,
            pending: BinaryHeap::new(),
            implied: HashMap::new(),
            open: 0,
        };
        search.push_all(id, false);
        let mut calls = Vec::new();
        let mut barrier = 0;
        while let Some(FoundVertex {
            id,
            latest_call,
            is_implied,
        }) = search.pop()
        {
            if latest_call < barrier {
                break;
            }
            let is_call = self.vertices.get(&id).is_some_and(|vertex| vertex.is_call);
            if is_call && !is_implied {
                calls.push(id);
                if is_barrier(id) {
                    barrier = id;
                }
            }
            search.push_all(id, is_call || is_implied);
        }
        calls
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }

    fn newest(&self, id: VertexId) -> VertexId {
        self.vertices.get(&id).map_or(0, |vertex| vertex.newest)
    }

    fn waits_for(&self, id: VertexId) -> &[VertexId] {
        self.vertices
            .get(&id)
            .map_or(&[], |vertex| &vertex.waits_for)
    }

    /// Whether `to` waits for `from`, possibly because of others.
    fn reaches(&self, from: VertexId, to: VertexId) -> bool {
        let mut seen = HashSet::new();
        let mut pending = vec![from];
        while let Some(id) = pending.pop() {
            if id == to {
                return true;
            }
            if let Some(vertex) = self.vertices.get(&id).filter(|_| seen.insert(id)) {
                pending.extend(&vertex.dependents);
            }
        }
        false
    }
}

/// Visits the calls before a call, latest first, so that every vertex comes after those that wait for it.
struct CallSearch<'g> {
    graph: &'g DependencyGraph,
    pending: BinaryHeap<(VertexId, VertexId)>,
    /// Whether a vertex was found to be waited for by one of the calls found.
    implied: HashMap<VertexId, bool>,
    /// The number of pending vertices that weren't.
    open: usize,
}

/// A vertex that a call waits for.
struct FoundVertex {
    id: VertexId,
    /// The latest call in it.
    latest_call: VertexId,
    /// One of the calls that were found before waits for it.
    is_implied: bool,
}

impl CallSearch<'_> {
    fn push_all(&mut self, waiting: VertexId, are_implied: bool) {
        for id in self.graph.waits_for(waiting) {
            match self.implied.insert(*id, are_implied) {
                None => {
                    self.pending.push((self.graph.newest(*id), *id));
                    self.open += usize::from(!are_implied);
                }
                Some(true) => {
                    self.implied.insert(*id, true);
                }
                Some(false) => self.open -= usize::from(are_implied),
            }
        }
    }

    /// Returns the next vertex, until only implied ones are left.
    fn pop(&mut self) -> Option<FoundVertex> {
        if self.open == 0 {
            return None;
        }
        let (latest_call, id) = self.pending.pop()?;
        let is_implied = self.implied.get(&id).copied().unwrap_or_default();
        self.open -= usize::from(!is_implied);
        Some(FoundVertex {
            id,
            latest_call,
            is_implied,
        })
    }
}

// What decides about the order of two calls: whether they are concurrency-safe, and their locks.

/// What decides about the order of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallAccess {
    /// Whether it is concurrency-safe. With locks, this is for calls without.
    pub safe: bool,
    /// Its locks, if its tool declares any.
    pub locks: Option<CallLocks>,
}

/// Why a call waits for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderCause<'a> {
    /// One of them isn't concurrency-safe, and has no locks or meets a call without.
    NotSafe,
    /// The other has this lock.
    Lock(&'a CallLock),
}

impl CallAccess {
    /// The access of a call that runs alone.
    pub const ALONE: Self = Self {
        safe: false,
        locks: None,
    };

    /// Returns the access of a call that may run.
    pub fn of(accepted: &AcceptedCall) -> Self {
        Self {
            safe: accepted.safe,
            locks: accepted.locks.clone(),
        }
    }

    /// Returns why this call waits for `earlier`, which came before it. `None` if it doesn't.
    pub fn waits_for<'a>(&self, earlier: &'a Self) -> Option<OrderCause<'a>> {
        let must_wait = match (&earlier.locks, &self.locks) {
            (Some(held), Some(wanted)) => {
                let conflicts =
                    |lock: &&CallLock| wanted.iter().any(|wanted| wanted.conflicts_with(lock));
                return held.iter().find(conflicts).map(OrderCause::Lock);
            }
            (None, Some(_)) => !earlier.safe,
            (_, None) => !(earlier.safe && self.safe),
        };
        must_wait.then_some(OrderCause::NotSafe)
    }

    /// Returns whether a call with this access, which isn't `read`, may change what a call with the access `read` has read.
    /// Only the locks of both can tell that it doesn't.
    pub fn may_change(&self, read: &Self) -> bool {
        let (Some(own), Some(others)) = (&self.locks, &read.locks) else {
            return true;
        };
        let writes = own.iter().filter(|lock| lock.mode == LockMode::Write);
        let mut written = writes.map(|lock| &lock.resource);
        written.any(|resource| others.iter().any(|other| resource.meets(&other.resource)))
    }

    /// Returns whether all calls before it have to finish first, and all calls after it wait for it.
    pub(crate) fn is_barrier(&self) -> bool {
        self.locks.is_none() && !self.safe
    }

    /// Returns whether only barriers, and calls with locks that aren't safe, keep it from running.
    pub(crate) fn is_shared(&self) -> bool {
        self.locks.is_none() && self.safe
    }
}

// Maps whose keys are numbers that toolq gives out itself, one after another.

/// A map keyed by such numbers.
pub(crate) type NumberMap<V> = HashMap<usize, V, BuildHasherDefault<NumberHasher>>;

/// Spreads consecutive numbers. Unlike the standard hasher, which is several times slower, it doesn't protect against chosen keys:
/// no input chooses these.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NumberHasher(u64);

/// 2⁶⁴ divided by the golden ratio (Knuth, "The Art of Computer Programming", 6.4).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, number: usize) {
        self.0 = (self.0 ^ number as u64).wrapping_mul(MULTIPLIER);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher as _;

    use super::*;

    /// A map looks at the upper seven bits, and at as many lower ones as it needs.
    #[test]
    fn consecutive_numbers_are_spread() {
        let hashes: Vec<u64> = (0..1_024_usize)
            .map(|number| BuildHasherDefault::<NumberHasher>::default().hash_one(number))
            .collect();
        let distinct = |part: fn(u64) -> u64| {
            let parts: HashSet<u64> = hashes.iter().map(|hash| part(*hash)).collect();
            parts.len()
        };
        assert_eq!(distinct(|hash| hash % 1_024), 1_024);
        assert_eq!(distinct(|hash| hash >> 57), 128);
    }

    #[test]
    fn a_map_finds_what_was_inserted() {
        let mut map = NumberMap::default();
        for number in 0..1_000 {
            map.insert(number, number * 2);
            if number >= 10 {
                assert_eq!(map.remove(&(number - 10)), Some((number - 10) * 2));
            }
        }
        assert_eq!(map.len(), 10);
        assert_eq!(map.get(&999), Some(&1_998));
    }
}
