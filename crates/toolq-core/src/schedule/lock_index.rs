//! Finds the calls whose locks conflict with that of another, without looking at all calls.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Component;

use crate::schedule::call_set::CallSet;
use crate::schedule::dependency_graph::{DependencyGraph, VertexId};
use crate::types::{CallLock, LockMode, LockedResource};

/// The calls that hold or wait for locks, by what these are on: a tree of the components of paths. A text is a path of one
/// component, in a tree of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct LockIndex {
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
    pub(crate) fn find_conflicts(
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
mod tests {
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
