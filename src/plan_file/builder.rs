//! Builds a plan from checked calls: to write it, and again to see whether it is still what would run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use redact::Mask;
use serde_json::value::RawValue;
use toolq_core::plan::{TurnPlan, render_plan_json};
use toolq_core::tools_file::select_agent_tools;
use toolq_core::types::{ApprovalPolicy, Backing, BuiltinTool, CheckedCall, Tool, ToolsConfig};
use toolq_log::records::definition_digests;

use crate::output::CommandError;
use crate::plan_file::call_digests::CallDigests;
use crate::plan_file::file::{CallEntry, PLAN_FORMAT, PlanBody};

/// Collects the turns of a plan.
pub struct PlanBuilder {
    tools: Arc<ToolsConfig>,
    mask: Arc<Mask>,
    reachable: ReachableTools,
    calls: Vec<CallEntry>,
    turns: Vec<Box<RawValue>>,
}

impl PlanBuilder {
    pub fn new(tools: Arc<ToolsConfig>, mask: Arc<Mask>) -> Self {
        Self {
            tools,
            mask,
            reachable: ReachableTools::new(),
            calls: Vec::new(),
            turns: Vec::new(),
        }
    }

    /// Adds the checked calls of a turn.
    ///
    /// # Errors
    /// They have no JSON form.
    pub fn add_turn(&mut self, number: usize, checked: &[CheckedCall]) -> Result<(), CommandError> {
        for checked in checked {
            let call = &checked.call;
            let digests = CallDigests::of_checked(checked, &self.mask);
            self.calls.push(CallEntry {
                turn: call.turn,
                position: call.position,
                tool_use_id: self.mask.apply(&call.id).into_owned(),
                tool_name: self.mask.apply(&call.name).into_owned(),
                input: digests.input,
                verdict: digests.verdict,
            });
            // Also one of a server that hasn't been asked yet: how it is started counts.
            if let Some(tool) = self.tools.find(&call.name) {
                add_reachable_tools(&mut self.reachable, &self.tools, &tool);
            }
        }
        // `-j` changes how long it takes, but not what was approved.
        let plan = TurnPlan::new(number, checked, &self.tools, self.tools.concurrency);
        let line = render_plan_json(&plan, &self.mask);
        let turn = RawValue::from_string(line);
        self.turns.push(turn.map_err(CommandError::usage)?);
        Ok(())
    }

    /// Returns the names of tools whose `describe` decides what their calls mean.
    pub fn described_tools(&self) -> Vec<&str> {
        let described = self.reachable.values();
        let described = described.filter(|tool| tool.describe.is_some());
        described.map(|tool| tool.name.as_str()).collect()
    }

    /// Returns the names of tools with calls that need approvals and that the plan can't know: those that agents make.
    pub fn unplanned_tools(&self) -> Vec<&str> {
        let mut called_by_agents = ReachableTools::new();
        for tool in self.reachable.values() {
            if matches!(tool.backing, Some(Backing::Agent(_) | Backing::Builtin(_))) {
                let mut own = ReachableTools::new();
                add_reachable_tools(&mut own, &self.tools, tool);
                own.remove(&tool.name);
                called_by_agents.extend(own);
            }
        }
        let names: BTreeSet<String> = called_by_agents
            .into_values()
            .filter(|tool| tool.approve != ApprovalPolicy::Never)
            .map(|tool| tool.name.clone())
            .collect();
        let found = self.reachable.keys();
        let found = found.filter(|name| names.contains(*name));
        found.map(String::as_str).collect()
    }

    pub fn call_count(&self) -> usize {
        self.calls.len()
    }

    /// Returns the plan of all turns.
    pub fn finish(self, created: Timestamp, valid_until: Timestamp) -> PlanBody {
        let tools = self.reachable.iter();
        let tools = tools.map(|(name, tool)| (name.clone(), definition_digests(tool)));
        let root = self.tools.root.display().to_string();
        PlanBody {
            format: PLAN_FORMAT,
            toolq: env!("CARGO_PKG_VERSION").to_owned(),
            created,
            valid_until,
            root: self.mask.apply(&root).into_owned(),
            calls: self.calls,
            tools: tools.collect(),
            turns: self.turns,
        }
    }
}

// The tools that a call may use: its own and, if that is an agent, those that the agent may call.

/// Tools by name.
pub type ReachableTools = BTreeMap<String, Arc<Tool>>;

/// Adds `tool` and the tools that it may call.
pub fn add_reachable_tools(found: &mut ReachableTools, tools: &ToolsConfig, tool: &Arc<Tool>) {
    if found.contains_key(&tool.name) {
        return;
    }
    found.insert(tool.name.clone(), Arc::clone(tool));
    match &tool.backing {
        Some(Backing::Agent(agent)) => {
            for own in select_agent_tools(tools, tool, agent) {
                add_reachable_tools(found, tools, &own);
            }
        }
        Some(Backing::Builtin(BuiltinTool::NewTask(agents))) => {
            for agent in agents {
                add_reachable_tools(found, tools, agent);
            }
        }
        _ => {}
    }
}
