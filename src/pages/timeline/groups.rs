//! How calls are grouped on the page: by turn, with each agent's calls below the agent.

use std::collections::{BTreeMap, HashMap};

use crate::log_view::timeline::{LogTimeline, TimelineCall};
use crate::pages::visible_text;
use crate::terminal::calls_label;
use toolq_core::types::OutcomeKind;

/// The deepest indentation of an agent's calls.
const MAX_DEPTH: usize = 6;

/// The calls below one heading.
#[derive(Debug, Default)]
pub(super) struct CallGroup {
    pub(super) title: String,
    /// How many of its calls didn't go well, in words.
    pub(super) troubles: String,
    /// In display order, as indexes into the calls of the log.
    pub(super) calls: Vec<usize>,
    placements: HashMap<usize, RowPlacement>,
    /// The batch of the last call of each turn, whether of the input or of an agent. Calls of other agents can come between
    /// two calls of a turn.
    last_batches: HashMap<TurnKey, Option<usize>>,
    /// The last call begins a batch.
    begins_batch: bool,
    /// The depth of the last call.
    last_depth: usize,
}

/// The placement of a row.
#[derive(Debug, Clone, Default)]
pub(super) struct RowPlacement {
    /// How far it is indented.
    pub(super) depth: usize,
    /// Whether another batch or turn begins with it.
    pub(super) begins: bool,
    /// What begins with this call, if that has to be said: `batch 1: 3 in parallel`.
    pub(super) heading: Option<String>,
}

/// A turn: its run, the agent's call that it belongs to, unless it is one of the input, and its number.
type TurnKey = (usize, Option<usize>, usize);

fn turn_key(call: &TimelineCall) -> TurnKey {
    (call.run, call.parent, call.turn)
}

/// A turn of the input, with the calls that the input has in it.
struct TurnCalls {
    run: usize,
    turn: usize,
    roots: Vec<usize>,
}

impl TurnCalls {
    /// Returns whether both have a single call, so that they can share a group.
    fn is_single_beside(&self, next: &Self) -> bool {
        self.run == next.run && self.roots.len() == 1 && next.roots.len() == 1
    }
}

/// The numbers of calls of each batch of each turn. Calls that weren't going to run are in no batch.
type BatchSizes = HashMap<TurnKey, BTreeMap<Option<usize>, usize>>;

impl CallGroup {
    /// Returns what begins with the next call.
    fn next_heading(&mut self, call: &TimelineCall, log: &GroupedLog<'_>) -> Option<String> {
        let batches = &log.batch_sizes[&turn_key(call)];
        let before = self.last_batches.insert(turn_key(call), call.batch);
        let has_batches = batches.len() > 1 && before != Some(call.batch);
        self.begins_batch = has_batches;
        // Where each call is a batch, its line says it.
        let all_alone = batches.values().all(|calls| *calls == 1);
        let batch = match (call.batch, batches[&call.batch]) {
            _ if !has_batches => None,
            (None, _) => Some("in no batch".to_owned()),
            (Some(_), 1) if all_alone => None,
            (Some(batch), 1) => Some(format!("batch {batch}: 1 call")),
            (Some(batch), calls) => Some(format!("batch {batch}: {calls} in parallel")),
        };
        let agent = call.parent.filter(|_| before.is_none());
        let agent = agent.map(|agent| {
            let agent = visible_text(&log.calls[agent].tool_name);
            format!("turn {} of {agent}", call.turn + 1)
        });
        let parts: Vec<String> = agent.into_iter().chain(batch).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns the placement of the row of a call in this group.
    pub(super) fn placement(&self, call: usize) -> RowPlacement {
        self.placements.get(&call).cloned().unwrap_or_default()
    }
}

/// The calls of a log, and what of them belongs together.
struct GroupedLog<'t> {
    calls: &'t [TimelineCall],
    /// The calls that an agent made.
    children: HashMap<usize, Vec<usize>>,
    batch_sizes: BatchSizes,
}

/// Groups calls by turn. Turns of a single call that follow each other, as `serve` has them, share a group. In a turn, calls that
/// weren't going to run come last, so that they don't look like a part of a batch.
pub(super) fn group_calls(timeline: &LogTimeline) -> Vec<CallGroup> {
    let mut log = GroupedLog {
        calls: &timeline.calls,
        children: HashMap::new(),
        batch_sizes: HashMap::new(),
    };
    let mut turns: Vec<TurnCalls> = Vec::new();
    for (index, call) in log.calls.iter().enumerate() {
        let batches = log.batch_sizes.entry(turn_key(call)).or_default();
        *batches.entry(call.batch).or_default() += 1;
        match (call.parent, turns.last_mut()) {
            (Some(parent), _) => log.children.entry(parent).or_default().push(index),
            (None, Some(last)) if (last.run, last.turn) == (call.run, call.turn) => {
                last.roots.push(index);
            }
            (None, _) => turns.push(TurnCalls {
                run: call.run,
                turn: call.turn,
                roots: vec![index],
            }),
        }
    }
    let has_no_batch = |index: &usize| log.calls[*index].batch.is_none();
    for turn in &mut turns {
        turn.roots.sort_by_key(has_no_batch);
    }
    for children in log.children.values_mut() {
        children.sort_by_key(|index| (log.calls[*index].turn, has_no_batch(index)));
    }
    let mut groups = Vec::new();
    for turns in turns.chunk_by(TurnCalls::is_single_beside) {
        let mut group = CallGroup::default();
        let roots: Vec<usize> = turns.iter().flat_map(|turn| &turn.roots).copied().collect();
        for root in &roots {
            add_call(*root, &log, &mut group);
        }
        let title = group_title(turns, group.calls.len() - roots.len(), log.calls);
        group.title = match turns.first() {
            Some(turn) if timeline.runs.len() > 1 => format!("Run {}, {title}", turn.run + 1),
            _ => title,
        };
        group.troubles = count_troubles(&group.calls, timeline);
        groups.push(group);
    }
    groups
}

/// Counts the calls that somebody should look at: `1 failed, 2 in doubt`.
fn count_troubles(group: &[usize], timeline: &LogTimeline) -> String {
    let kinds = [
        OutcomeKind::Failed,
        OutcomeKind::Rejected,
        OutcomeKind::InDoubt,
        OutcomeKind::Unfinished,
    ];
    let counts = kinds.iter().filter_map(|kind| {
        let calls = group.iter().map(|index| &timeline.calls[*index]);
        let of_kind = calls.filter(|call| call.outcome == *kind && !timeline.is_open(call));
        let count = of_kind.count();
        (count > 0).then(|| format!("{count} {}", kind.label()))
    });
    counts.collect::<Vec<_>>().join(", ")
}

/// Returns the title of a group of turns, in which agents made `of_agents` calls.
fn group_title(turns: &[TurnCalls], of_agents: usize, calls: &[TimelineCall]) -> String {
    let [TurnCalls { turn, roots, .. }] = turns else {
        let number = |turn: Option<&TurnCalls>| turn.map_or(0, |turn| turn.turn);
        let (first, last) = (number(turns.first()), number(turns.last()));
        return format!("turns {first} to {last}: {}, one call each", turns.len());
    };
    let mut batches: Vec<usize> = roots
        .iter()
        .filter_map(|index| calls[*index].batch)
        .collect();
    batches.sort_unstable();
    batches.dedup();
    let batches = match batches.len() {
        0 => "none of them in a batch".to_owned(),
        1 => "1 batch".to_owned(),
        count => format!("{count} batches"),
    };
    let calls = calls_label(roots.len(), of_agents);
    format!("turn {turn}: {calls}; {batches}")
}

/// Returns the heading of calls that come below those of an agent, but aren't the agent's.
fn continued_heading(call: &TimelineCall) -> String {
    match call.batch {
        Some(batch) => format!("batch {batch}, continued"),
        None => format!("turn {}, continued", call.turn),
    }
}

/// Adds a call and, below it, the calls that it made if it is an agent's. Uses an explicit stack, since a forged log may
/// nest calls very deeply.
fn add_call(root: usize, log: &GroupedLog<'_>, group: &mut CallGroup) {
    let mut pending = vec![(root, 0)];
    while let Some((index, depth)) = pending.pop() {
        let call = &log.calls[index];
        let heading = group.next_heading(call, log).or_else(|| {
            // Without a heading, these calls look like more of the agent's.
            (depth < group.last_depth).then(|| continued_heading(call))
        });
        group.last_depth = depth;
        let placement = RowPlacement {
            depth: depth.min(MAX_DEPTH),
            begins: group.begins_batch || heading.is_some(),
            heading,
        };
        group.calls.push(index);
        group.placements.insert(index, placement);
        let below = log.children.get(&index).into_iter().flatten().rev();
        pending.extend(below.map(|child| (*child, depth + 1)));
    }
}
