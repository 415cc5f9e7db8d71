//! Sets of calls that others wait for as a whole.

use crate::schedule::dependency_graph::{DependencyGraph, VertexId};

/// A growing set of calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallSet {
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
    pub(crate) fn close_vertex(&mut self, graph: &mut DependencyGraph) -> Option<VertexId> {
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

#[cfg(test)]
mod tests {
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
