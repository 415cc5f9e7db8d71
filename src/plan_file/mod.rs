//! Plans as files: `toolq plan --out` writes what would run, a person reviews it, and `toolq run --plan` approves exactly
//! that. The file isn't trusted: it counts only where it matches what would run now.

mod planned_calls;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::input::stdin;
use crate::output::{CommandError, replace_file};
use redact::Mask;
use toolq_core::json::{Input, JsonText, meaning_digest, to_json_line};
use toolq_core::plan::{TurnPlan, render_plan_json};
use toolq_core::tools_file::select_agent_tools;
use toolq_core::types::{
    AcceptedCall, ApprovalPolicy, ApprovalRequest, Backing, BuiltinTool, CheckedCall, Tool,
    ToolsConfig, Verdict,
};
use toolq_log::records::definition_digests;

pub use planned_calls::PlannedCalls;

// The form of a plan file. Its id is a digest of everything else in it, so a plan can't be changed under its id.

/// The version of the form.
const PLAN_FORMAT: u32 = 1;
/// Number of hexadecimal digits of an id.
const ID_DIGITS: usize = 40;
/// How far the clocks of two machines may differ.
const CLOCK_TOLERANCE: Duration = Duration::from_mins(5);
/// The largest plan file that is read, in bytes.
const MAX_PLAN_BYTES: u64 = 1 << 30;

/// A plan that `toolq plan --out` wrote for review, and that `toolq run --plan` applies.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// Digest of `plan`. The session log has it where the plan was applied.
    pub id: String,
    /// What would run.
    pub plan: PlanBody,
}

/// What would run, and digests of all that decides it, except for the values of variables.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanBody {
    /// The version of this form.
    pub format: u32,
    /// The version of toolq that wrote the plan; only this version applies it.
    pub toolq: String,
    /// When the plan was made.
    #[schemars(with = "String")]
    pub created: Timestamp,
    /// When it can no longer be applied.
    #[schemars(with = "String")]
    pub valid_until: Timestamp,
    /// The directory in which commands run.
    pub root: String,
    /// The calls, in order.
    pub calls: Vec<CallEntry>,
    /// The tools of these calls, and those that agents among them may call: digests of their definitions, by aspect.
    pub tools: BTreeMap<String, BTreeMap<String, String>>,
    /// For reading: the lines of `toolq plan --format json`.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub turns: Vec<Box<RawValue>>,
}

/// A call of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallEntry {
    /// The number of its turn.
    pub turn: usize,
    /// Its position in the turn.
    pub position: usize,
    /// Its id.
    pub tool_use_id: String,
    /// Its tool.
    pub tool_name: String,
    /// Digest of the call as it came.
    pub input: String,
    /// Digest of what becomes of it: what would run, or why nothing would.
    pub verdict: String,
}

impl PlanFile {
    /// Names a plan.
    ///
    /// # Errors
    /// It can't be serialized.
    pub fn new(plan: PlanBody) -> serde_json::Result<Self> {
        Ok(Self {
            id: plan.id()?,
            plan,
        })
    }

    /// Reads a plan. Whether it is still what would run is a question of its own.
    ///
    /// # Errors
    /// The file can't be read, isn't a plan, or was changed.
    pub fn read(path: &Path) -> Result<Self, CommandError> {
        let unusable = |why: String| {
            CommandError::usage(format!("the plan {} {why}; nothing ran", path.display()))
                .with_hint("`toolq plan --out FILE` writes a plan")
        };
        let bytes = if path == Path::new("-") {
            stdin::read_to_end()?
        } else {
            read_limited(path).map_err(|error| unusable(format!("can't be read: {error}")))?
        };
        let mut file: Self = serde_json::from_slice(&bytes)
            .map_err(|error| unusable(format!("isn't a plan, or not a whole one: {error}")))?;
        for turn in &mut file.plan.turns {
            // Another layout is no change.
            let line = to_json_line(turn.get()).into_owned();
            *turn = RawValue::from_string(line).map_err(|error| unusable(error.to_string()))?;
        }
        if file.plan.format != PLAN_FORMAT {
            let format = file.plan.format;
            return Err(unusable(format!(
                "has a form that this toolq doesn't know ({format})"
            )));
        }
        let id = file
            .plan
            .id()
            .map_err(|error| unusable(error.to_string()))?;
        if id != file.id {
            let message = "was changed after it was written: its id doesn't fit its content";
            return Err(unusable(message.to_owned()));
        }
        Ok(file)
    }

    /// Writes the plan atomically, so that no reader sees half of it.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        // The plan has no secrets, so anybody may read it.
        replace_file(path, |file| {
            serde_json::to_writer_pretty(&mut *file, self)?;
            file.write_all(b"\n")
        })
    }

    /// Checks that the plan is neither too old nor from the future.
    ///
    /// # Errors
    /// It is.
    pub fn check_time(&self, now: Timestamp) -> Result<(), CommandError> {
        let PlanBody {
            created,
            valid_until,
            ..
        } = self.plan;
        if now > valid_until {
            return Err(CommandError::usage(format!(
                "the plan {} was valid until {valid_until}; nothing ran",
                self.id
            ))
            .with_hint("make a new one with `toolq plan --out FILE`"));
        }
        if now + CLOCK_TOLERANCE < created {
            return Err(CommandError::usage(format!(
                "the plan {} was made at {created}, which is in the future; nothing ran",
                self.id
            ))
            .with_hint("is the clock right?"));
        }
        Ok(())
    }
}

impl PlanBody {
    fn id(&self) -> serde_json::Result<String> {
        let mut id = HEXLOWER.encode(&Sha256::digest(serde_json::to_vec(self)?));
        id.truncate(ID_DIGITS);
        Ok(id)
    }
}

/// Returns the JSON Schema (2020-12) of a plan file.
pub fn plan_schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12();
    let schema = settings.into_generator().into_root_schema_for::<PlanFile>();
    schema.to_value()
}

fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(MAX_PLAN_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_PLAN_BYTES {
        return Err(io::Error::other("it is larger than 1 GiB"));
    }
    Ok(bytes)
}

// Builds a plan from checked calls: to write it, and again to see whether it is still what would run.

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
            self.calls.push(CallEntry::of_checked(checked, &self.mask));
            // Also one of a server that hasn't been asked yet: how it is started counts.
            if let Some(tool) = self.tools.find(&checked.call.name) {
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
type ReachableTools = BTreeMap<String, Arc<Tool>>;

/// Adds `tool` and the tools that it may call.
fn add_reachable_tools(found: &mut ReachableTools, tools: &ToolsConfig, tool: &Arc<Tool>) {
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

impl CallEntry {
    /// Describes a checked call.
    fn of_checked(checked: &CheckedCall, mask: &Mask) -> Self {
        let call = &checked.call;
        Self {
            turn: call.turn,
            position: call.position,
            tool_use_id: mask.apply(&call.id).into_owned(),
            tool_name: mask.apply(&call.name).into_owned(),
            input: match &call.input {
                Ok(input) => input_digest(input, mask),
                Err(invalid) => text_digest(&format!("{invalid:?}"), mask),
            },
            verdict: match &checked.verdict {
                Verdict::Accepted(accepted) => accepted_digest(accepted, mask),
                Verdict::Rejected(rejection) => {
                    text_digest(&format!("{:?}", rejection.reason), mask)
                }
            },
        }
    }

    /// Describes a call that waits for an approval.
    fn of_request(ApprovalRequest { call, accepted }: &ApprovalRequest, mask: &Mask) -> Self {
        let received = accepted.before_coercion.as_ref();
        Self {
            turn: call.turn,
            position: call.position,
            tool_use_id: mask.apply(&call.tool_use_id).into_owned(),
            tool_name: mask.apply(&call.tool_name).into_owned(),
            input: input_digest(received.unwrap_or(&accepted.input), mask),
            verdict: accepted_digest(accepted, mask),
        }
    }
}

fn text_digest(text: &str, mask: &Mask) -> String {
    HEXLOWER.encode(&Sha256::digest(mask.apply(text).as_bytes()))
}

/// Returns a digest of what an input means with its secrets masked, whatever form it comes in.
fn input_digest(input: &Input, mask: &Mask) -> String {
    let masked = mask.apply_to_json(input.text());
    HEXLOWER.encode(&meaning_digest(JsonText::new(&masked)))
}

/// Returns a digest of what decides what an accepted call does, beside its tool, which has digests of its own.
fn accepted_digest(accepted: &AcceptedCall, mask: &Mask) -> String {
    let AcceptedCall {
        tool,
        input,
        safe,
        needs_approval,
        ..
    } = accepted;
    let (name, input) = (&tool.name, input_digest(input, mask));
    text_digest(&format!("{name:?} {input} {safe} {needs_approval}"), mask)
}
