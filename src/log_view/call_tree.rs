//! Puts calls in display order: the calls of the input in call order, and below an agent's call the calls of that
//! agent. A call is released as soon as it and all before it have ended, so only unfinished calls and those after them
//! are held in memory.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, VecDeque};

use uuid::Uuid;

use crate::log_view::call_view::CallView;
use crate::log_view::table::OutputPreview;
use toolq_core::text::suggest_name;
use toolq_log::records::{CallContent, CallRecord, ModelResponseRecord, ProbeRecord};
use toolq_log::{CallEvent, Corruption, Record, RecordKind};

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
        if self.nodes.contains_key(&call) {
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

    /// Removes calls from the front that have ended, or all calls, and passes each step to `show`.
    pub(super) fn flush(&mut self, all: bool, show: &mut impl FnMut(&CallView, TreeStep)) {
        while let Some(root) = self.roots.front().copied() {
            if !self.close_call(root, all, show) {
                break;
            }
            self.roots.pop_front();
        }
    }

    /// Removes a call after its descendants. Returns whether it was removed.
    fn close_call(
        &mut self,
        record: Uuid,
        all: bool,
        show: &mut impl FnMut(&CallView, TreeStep),
    ) -> bool {
        let Some(node) = self.nodes.get(&record) else {
            return true;
        };
        let closes = all || node.view.has_ended();
        while let Some(child) = self.first_child(record) {
            self.show_context(record, child, show);
            if !self.close_call(child, closes, show) {
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
            self.agent_calls.retain(|_, agent| *agent != record);
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
}

// The filters of `toolq log show`.

/// Selects the calls to show.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    /// Select only calls that failed, did not run, or have no result.
    pub errors_only: bool,
    /// Select only calls of these tools; empty selects all.
    pub tools: Vec<String>,
}

impl CallFilter {
    /// Returns whether every call is selected.
    pub fn matches_all(&self) -> bool {
        !self.errors_only && self.tools.is_empty()
    }

    pub(super) fn matches_call(&self, tool: &str, is_error: bool) -> bool {
        let named = self.tools.is_empty() || self.tools.iter().any(|name| name == tool);
        named && (is_error || !self.errors_only)
    }

    /// Returns whether the JSON output includes this record. `content` is its content, if available. With
    /// `errors_only`, the earlier records of a call aren't included, because they don't say how it ends.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn matches_record(
        &self,
        record: &Record,
        content: Option<&str>,
    ) -> Result<bool, Corruption> {
        if self.matches_all() {
            return Ok(true);
        }
        let tool = match &record.kind {
            RecordKind::ToolCall => {
                let call = content.and_then(|json| serde_json::from_str(json).ok());
                let is_match = |call: CallContent<'_>| self.matches_call(&call.name, false);
                return Ok(call.is_some_and(is_match));
            }
            RecordKind::ModelResponse => {
                let response: ModelResponseRecord<'_> = record.parse_metadata()?;
                response.tool_name
            }
            RecordKind::ProbeStart => {
                let probe: ProbeRecord<'_> = record.parse_metadata()?;
                probe.tool_name
            }
            _ => {
                let Some(event) = CallEvent::from_record(record)? else {
                    return Ok(false);
                };
                return Ok(self.matches_call(event.tool_name(), event.is_error()));
            }
        };
        Ok(self.matches_call(&tool, false))
    }
}

// Checks that tools named on the command line occur in the logs.

/// Maximum number of names that are kept for suggestions.
const MAX_OTHER_NAMES: usize = 1_000;

/// Finds which of the wanted tools have no calls in the records, and what they might be called instead.
#[derive(Debug)]
pub struct ToolNameFilter {
    missing: BTreeSet<String>,
    other_names: BTreeSet<String>,
}

impl ToolNameFilter {
    /// Creates a filter that looks for `wanted`.
    pub fn new(wanted: &[String]) -> Self {
        Self {
            missing: wanted.iter().cloned().collect(),
            other_names: BTreeSet::new(),
        }
    }

    /// Adds the next record.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn add_record(&mut self, record: &Record) -> Result<(), Corruption> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let tool_name = match &record.kind {
            RecordKind::ToolCall => Some(record.parse_metadata::<CallRecord<'_>>()?.tool_name),
            _ => CallEvent::from_record(record)?
                .map(|event| Cow::Owned(event.tool_name().to_owned())),
        };
        if let Some(name) = tool_name {
            self.missing.remove(&*name);
            if self.other_names.len() < MAX_OTHER_NAMES && !self.other_names.contains(&*name) {
                self.other_names.insert(name.into_owned());
            }
        }
        Ok(())
    }

    /// Returns the wanted tools without a call, each with the name that was probably meant.
    pub fn missing(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let others = || self.other_names.iter().map(String::as_str);
        let missing = self.missing.iter();
        missing.map(move |name| (&**name, suggest_name(name, others())))
    }
}
