//! Puts calls in display order: the calls of the input in call order, and below an agent's call the calls of that
//! agent. A call is released as soon as it and all before it have ended, so only unfinished calls and those after them
//! are held in memory.

use std::collections::{HashMap, VecDeque};

use uuid::Uuid;

use crate::log_view::call_view::CallView;
use crate::log_view::preview::OutputPreview;
use toolq_log::CallEvent;

/// Maximum depth of the tree; deeper calls are shown at this depth. toolq's agents don't nest as deep, but a log may be
/// forged.
const MAX_DEPTH: usize = 20;

/// The calls that haven't been shown yet.
#[derive(Debug, Default)]
pub(crate) struct CallTree {
    nodes: HashMap<Uuid, CallNode>,
    roots: VecDeque<Uuid>,
    /// Maps the record of an agent's turn to the agent's call, as long as the call could still continue.
    agent_calls: HashMap<Uuid, Uuid>,
}

#[derive(Debug)]
struct CallNode {
    view: CallView,
    /// The agent's calls that haven't been shown yet.
    children: VecDeque<Uuid>,
    /// Whether the first lines of the call were shown.
    head_shown: bool,
    /// The agent's turn whose heading was shown last.
    shown_turn: Option<usize>,
}

/// The next part to show.
pub(crate) enum TreeStep {
    /// The first lines of an agent's call, above the agent's calls.
    Open,
    /// The heading of a turn of the agent.
    Turn(usize),
    /// The rest of a call that has ended or is no longer waited for. `head_shown` is whether its first lines were
    /// shown.
    Close { head_shown: bool },
}

impl CallTree {
    /// Adds a turn of the agent that works on `call`.
    pub(super) fn add_agent_turn(&mut self, turn_id: Uuid, call: Uuid) {
        if let Some(node) = self.nodes.get_mut(&call) {
            node.view.agent_turns.push(turn_id);
            self.agent_calls.insert(turn_id, call);
        }
    }

    /// Returns the agent's call that a turn belongs to.
    pub(super) fn agent_call_of(&self, turn: Option<Uuid>) -> Option<Uuid> {
        self.agent_calls.get(&turn?).copied()
    }

    /// Returns the call below which to show the calls of this agent, if it is in the tree.
    pub(super) fn parent_view(&self, agent_call: Option<Uuid>) -> Option<&CallView> {
        let view = &self.nodes.get(&agent_call?)?.view;
        if view.depth() < MAX_DEPTH {
            return Some(view);
        }
        self.parent_view(view.parent)
    }

    /// Adds a call, below its parent if that is in the tree.
    pub(super) fn add_call(&mut self, view: CallView) {
        let record_id = view.record_id;
        if self.nodes.contains_key(&record_id) {
            return;
        }
        let parent_id = view.parent;
        let node = CallNode {
            view,
            children: VecDeque::new(),
            head_shown: false,
            shown_turn: None,
        };
        self.nodes.insert(record_id, node);
        match parent_id.and_then(|parent_id| self.nodes.get_mut(&parent_id)) {
            Some(parent) => parent.children.push_back(record_id),
            None => self.roots.push_back(record_id),
        }
    }

    /// Applies a record of a call, with its content if that is shown.
    pub(super) fn apply(
        &mut self,
        record: Option<Uuid>,
        event: &CallEvent<'_>,
        output: Option<OutputPreview>,
    ) {
        if let Some(node) = record.and_then(|record| self.nodes.get_mut(&record)) {
            node.view.apply(event, output);
        }
    }

    /// Removes calls from the front that have ended, or all calls, and passes each step to `show`. Returns the removed
    /// calls.
    pub(super) fn flush(
        &mut self,
        all: bool,
        show: &mut impl FnMut(&CallView, TreeStep),
    ) -> Vec<CallView> {
        let mut closed = Vec::new();
        while let Some(root) = self.roots.front().copied() {
            if !self.close_call(root, all, show, &mut closed) {
                break;
            }
            self.roots.pop_front();
        }
        closed
    }

    /// Removes a call after its descendants. Returns whether it was removed.
    fn close_call(
        &mut self,
        record: Uuid,
        all: bool,
        show: &mut impl FnMut(&CallView, TreeStep),
        closed: &mut Vec<CallView>,
    ) -> bool {
        let Some(node) = self.nodes.get(&record) else {
            return true;
        };
        let closes = all || node.view.has_ended();
        while let Some(child) = self.first_child(record) {
            self.show_context(record, child, show);
            if !self.close_call(child, closes, show, closed) {
                return false;
            }
            if let Some(node) = self.nodes.get_mut(&record) {
                node.children.pop_front();
            }
        }
        if !closes {
            return false;
        }
        if let Some(node) = self.nodes.remove(&record) {
            show(
                &node.view,
                TreeStep::Close {
                    head_shown: node.head_shown,
                },
            );
            closed.push(node.view);
        }
        true
    }

    /// Shows what belongs above an agent's call: the first lines of the agent and the heading of the turn.
    fn show_context(
        &mut self,
        agent: Uuid,
        call: Uuid,
        show: &mut impl FnMut(&CallView, TreeStep),
    ) {
        let turn = self.nodes.get(&call).map(|node| node.view.turn);
        let (Some(turn), Some(node)) = (turn, self.nodes.get_mut(&agent)) else {
            return;
        };
        if !node.head_shown {
            node.head_shown = true;
            show(&node.view, TreeStep::Open);
        }
        if node.shown_turn.replace(turn) != Some(turn) {
            show(&node.view, TreeStep::Turn(turn));
        }
    }

    fn first_child(&self, record: Uuid) -> Option<Uuid> {
        self.nodes.get(&record)?.children.front().copied()
    }

    /// Forgets the turns of a call that no later session can continue.
    pub(super) fn remove_agent_turns(&mut self, call: &CallView) {
        for turn in &call.agent_turns {
            self.agent_calls.remove(turn);
        }
    }
}
