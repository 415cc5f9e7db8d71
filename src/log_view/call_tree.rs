//! Calls on their way to the page: those of the input in their order, and below each the calls of the agent that works on
//! it. A call leaves as soon as it and all before it have ended, so that only what is open, and what waits behind it, is held.

use std::collections::{HashMap, VecDeque};

use uuid::Uuid;

use crate::log_view::call_view::{CallView, Ended};
use toolq_log::Start;

/// A call deeper than this stands beside the one that it is of: no agent of toolq goes as deep, but a log may be forged.
const DEEPEST: usize = 20;

/// The calls that are not shown yet.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: HashMap<Uuid, Node>,
    roots: VecDeque<Uuid>,
    /// The agents' turns by their records, each with its agent's call: of those that are open, or may go on.
    turns: HashMap<Uuid, Uuid>,
}

#[derive(Debug)]
struct Node {
    view: CallView,
    /// Calls of its agent that are not shown yet.
    below: VecDeque<Uuid>,
    /// Whether its first lines are shown, and of which of its agent's turns calls are.
    open: bool,
    turn: Option<usize>,
}

/// What is to be shown next.
pub(crate) enum Step {
    /// The first lines of a call whose agent is at work.
    Opens,
    /// The head of a turn of its agent.
    Turn(usize),
    /// A call that has ended, or is not waited for; whether its first lines are shown.
    Leaves { is_open: bool },
}

impl Tree {
    /// A turn of an agent began, below its call.
    pub(super) fn turn(&mut self, record: Uuid, call: Uuid) {
        if let Some(node) = self.nodes.get_mut(&call) {
            node.view.turns.push(record);
            self.turns.insert(record, call);
        }
    }

    /// The agent's call that a turn is of.
    pub(super) fn agent_of(&self, turn: Option<Uuid>) -> Option<Uuid> {
        self.turns.get(&turn?).copied()
    }

    /// The call that calls of this agent stand below, where it is here.
    pub(super) fn above(&self, agent: Option<Uuid>) -> Option<&CallView> {
        let view = &self.nodes.get(&agent?)?.view;
        if view.depth() < DEEPEST {
            return Some(view);
        }
        self.above(view.agent)
    }

    /// A call; below the one that it stands below, where that is here.
    pub(super) fn add(&mut self, view: CallView) {
        let record = view.record;
        if self.nodes.contains_key(&record) {
            return;
        }
        let above = view.agent;
        let node = Node {
            view,
            below: VecDeque::new(),
            open: false,
            turn: None,
        };
        self.nodes.insert(record, node);
        match above.and_then(|above| self.nodes.get_mut(&above)) {
            Some(above) => above.below.push_back(record),
            None => self.roots.push_back(record),
        }
    }

    pub(super) fn start(&mut self, record: Option<Uuid>, start: &Start<'_>) {
        if let Some(node) = record.and_then(|record| self.nodes.get_mut(&record)) {
            node.view.start(start);
        }
    }

    pub(super) fn end(&mut self, record: Option<Uuid>, ended: Ended) {
        if let Some(node) = record.and_then(|record| self.nodes.get_mut(&record)) {
            node.view.end(ended);
        }
    }

    /// Lets calls leave that have ended, from the first on, or all; `show` is told each step. Returns those that left.
    pub(super) fn flush(
        &mut self,
        all: bool,
        show: &mut impl FnMut(&CallView, Step),
    ) -> Vec<CallView> {
        let mut left = Vec::new();
        while let Some(root) = self.roots.front().copied() {
            if !self.leaves(root, all, show, &mut left) {
                break;
            }
            self.roots.pop_front();
        }
        left
    }

    /// Whether the call leaves, behind those below it.
    fn leaves(
        &mut self,
        record: Uuid,
        all: bool,
        show: &mut impl FnMut(&CallView, Step),
        left: &mut Vec<CallView>,
    ) -> bool {
        let Some(node) = self.nodes.get(&record) else {
            return true;
        };
        let goes = all || node.view.has_ended();
        while let Some(first) = self.first_below(record) {
            self.open(record, first, show);
            if !self.leaves(first, goes, show, left) {
                return false;
            }
            if let Some(node) = self.nodes.get_mut(&record) {
                node.below.pop_front();
            }
        }
        if !goes {
            return false;
        }
        if let Some(node) = self.nodes.remove(&record) {
            show(&node.view, Step::Leaves { is_open: node.open });
            left.push(node.view);
        }
        true
    }

    /// Shows what stands above a call: the first lines of its agent's, and the head of its turn.
    fn open(&mut self, agent: Uuid, call: Uuid, show: &mut impl FnMut(&CallView, Step)) {
        let turn = self.nodes.get(&call).map(|node| node.view.turn);
        let (Some(turn), Some(node)) = (turn, self.nodes.get_mut(&agent)) else {
            return;
        };
        if !node.open {
            node.open = true;
            show(&node.view, Step::Opens);
        }
        if node.turn.replace(turn) != Some(turn) {
            show(&node.view, Step::Turn(turn));
        }
    }

    fn first_below(&self, record: Uuid) -> Option<Uuid> {
        self.nodes.get(&record)?.below.front().copied()
    }

    /// No later session goes on with this call: its agent's turns are forgotten.
    pub(super) fn forget(&mut self, call: &CallView) {
        for turn in &call.turns {
            self.turns.remove(turn);
        }
    }
}
