//! Which calls stand together on the page: those of one turn, each agent's calls below the agent.

use std::collections::HashMap;

use crate::timeline::{LogTimeline, LoggedCall};
use toolq_core::text::format_count;

/// The deepest indentation of an agent's calls.
const MAX_DEPTH: usize = 6;

/// The calls below one heading.
#[derive(Debug, Default)]
pub(super) struct CallGroup {
    pub(super) title: String,
    /// In display order, as indexes into the calls of the log.
    pub(super) calls: Vec<usize>,
    placements: HashMap<usize, RowPlacement>,
    /// The batch of the call before, by the agent that made it and its turn. Calls that are rejected, and those of other agents, can
    /// stand between calls of two batches.
    batches: HashMap<(Option<usize>, usize), usize>,
}

/// Where a row stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowPlacement {
    /// How far it is indented.
    pub(super) depth: usize,
    /// Whether the call before it belongs to another batch.
    pub(super) begins_batch: bool,
}

impl CallGroup {
    /// Returns whether the next call is the first of its batch, and another batch stands before it.
    fn begins_batch(&mut self, call: &LoggedCall) -> bool {
        let Some(batch) = call.batch else {
            return false;
        };
        let before = self.batches.insert((call.parent, call.turn), batch);
        before.is_some_and(|before| before != batch)
    }

    /// Returns where the row of a call of this group stands.
    pub(super) fn placement(&self, call: usize) -> RowPlacement {
        let first = RowPlacement {
            depth: 0,
            begins_batch: false,
        };
        self.placements.get(&call).copied().unwrap_or(first)
    }
}

/// Groups calls by turn. Turns of a single call that follow each other, as `serve` has them, share a group.
pub(super) fn group_calls(timeline: &LogTimeline) -> Vec<CallGroup> {
    let calls = &timeline.calls;
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut turns: Vec<(usize, Vec<usize>)> = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        match (call.parent, turns.last_mut()) {
            (Some(parent), _) => children.entry(parent).or_default().push(index),
            (None, Some((turn, roots))) if *turn == call.turn => roots.push(index),
            (None, _) => turns.push((call.turn, vec![index])),
        }
    }
    let mut groups = Vec::new();
    for turns in turns.chunk_by(|(_, one), (_, other)| one.len() == 1 && other.len() == 1) {
        let mut group = CallGroup {
            title: group_title(turns, calls),
            ..CallGroup::default()
        };
        for (_, roots) in turns {
            for root in roots {
                add_call(*root, calls, &children, &mut group);
            }
        }
        groups.push(group);
    }
    groups
}

fn group_title(turns: &[(usize, Vec<usize>)], calls: &[LoggedCall]) -> String {
    let [(turn, roots)] = turns else {
        let (first, last) = (
            turns.first().map_or(0, |turn| turn.0),
            turns.last().map_or(0, |turn| turn.0),
        );
        return format!("Turns {first} to {last}: {}, one call each", turns.len());
    };
    let mut batches: Vec<usize> = roots
        .iter()
        .filter_map(|index| calls[*index].batch)
        .collect();
    batches.sort_unstable();
    batches.dedup();
    let batches = match batches.len() {
        0 => "none of them runs".to_owned(),
        1 => "1 batch".to_owned(),
        count => format!("{count} batches"),
    };
    format!(
        "Turn {turn}: {} in {batches}",
        format_count(roots.len() as u64, "call")
    )
}

/// Adds a call and, below it, the calls that it made if it is an agent's. A stack of its own, since a forged log may nest
/// them very deeply.
fn add_call(
    root: usize,
    calls: &[LoggedCall],
    children: &HashMap<usize, Vec<usize>>,
    group: &mut CallGroup,
) {
    let mut pending = vec![(root, 0)];
    while let Some((index, depth)) = pending.pop() {
        let begins_batch = group.begins_batch(&calls[index]);
        let depth_shown = depth.min(MAX_DEPTH);
        group.calls.push(index);
        group.placements.insert(
            index,
            RowPlacement {
                depth: depth_shown,
                begins_batch,
            },
        );
        let below = children.get(&index).into_iter().flatten().rev();
        pending.extend(below.map(|child| (*child, depth + 1)));
    }
}
