//! Accepts or rejects calls. Every rule that can be checked before a call runs is applied here; nothing runs.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap, RandomState};
use std::hash::BuildHasher as _;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::check::fill::invocation;
use crate::check::valid_input::{CompiledSchemas, ToolIndex, validate_input};
use crate::check::{locks, path_confinement, rejection};
use crate::json::{Input, InvalidInput};
use crate::types::{
    AcceptedCall, ApprovalPolicy, Backing, BuiltinTool, Call, CallKind, CallLock, CallOutput,
    CheckedCall, DoubtCause, Effect, InputState, LockMode, Outcome, Rejection, RejectionReason,
    ResponseEnding, SafetyPolicy, SafetySource, Tool, ToolsConfig, Turn, Verdict,
};

/// Checks calls against a set of tools. Schemas are compiled on first use.
#[derive(Debug)]
pub struct CallChecker {
    tools: Arc<ToolsConfig>,
    declared: ToolIndex,
    /// For each unlocked server, once it has announced its tools.
    announced: Vec<OnceLock<ToolIndex>>,
}

impl CallChecker {
    /// Creates a checker for `tools`.
    pub fn new(tools: Arc<ToolsConfig>) -> Self {
        Self {
            declared: ToolIndex::new(&tools.tools),
            announced: tools.unlocked.iter().map(|_| OnceLock::new()).collect(),
            tools,
        }
    }

    /// Returns the tool with exactly this name, if it is known.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.look_up(name).map(|(tool, _)| tool)
    }

    fn look_up(&self, name: &str) -> Option<(&Arc<Tool>, &CompiledSchemas)> {
        let unlocked = self.tools.unlocked.iter().zip(&self.announced);
        let mut announced = unlocked.filter_map(|(server, index)| {
            let tools = &server.listing()?.ok()?.tools;
            index
                .get_or_init(|| ToolIndex::new(tools))
                .find(name, tools)
        });
        announced
            .next()
            .or_else(|| self.declared.find(name, &self.tools.tools))
    }

    /// Checks every call of a turn, in order. Rejected are the last call of a turn that was cut off, and all calls of one
    /// that was refused. What is known of them is what the input says.
    pub fn check_turn(&self, mut turn: Turn) -> Vec<CheckedCall> {
        let last = turn.call_count();
        let mut known = KnownCalls::default();
        let repeats: Vec<Option<usize>> = turn.calls.iter().map(|call| known.add(call)).collect();
        let mut calls = VecDeque::from(std::mem::take(&mut turn.calls));
        let mut checked = Vec::with_capacity(calls.len());
        for repeats in repeats {
            let Some(call) = calls.pop_front() else {
                break;
            };
            // A turn may have a million calls, so their memory isn't kept until all have been checked.
            if calls.len() < calls.capacity() / 2 {
                calls.shrink_to_fit();
            }
            let input_state = turn.input_state(call.position);
            let mut call = match turn.ending {
                ResponseEnding::Refused => refuse_call(self.check_call(call)),
                ResponseEnding::CutOff if call.position + 1 == last => {
                    reject_call(call, rejection::truncated())
                }
                ResponseEnding::CutOff | ResponseEnding::Complete => self.check_call(call),
            };
            let is_broken = turn
                .broken_from
                .is_some_and(|first| first <= call.call.position);
            let is_cut_off =
                turn.ending == ResponseEnding::CutOff && call.call.position + 1 == last;
            let repeats = repeats.filter(|_| !is_broken && !is_cut_off);
            if is_broken {
                call = break_call(call);
            }
            if turn.unsure_positions.contains(&call.call.position) {
                call = doubt_call(call);
            }
            call.known = outcome_in_input(&call.verdict, input_state).map(Box::new);
            call.repeats = repeats;
            checked.push(call);
        }
        checked
    }

    /// Checks one call, regardless of the other calls in its turn.
    pub fn check_call(&self, mut call: Call) -> CheckedCall {
        if call.kind == CallKind::Custom {
            self.place_text(&mut call);
        }
        let verdict = match self.accept_call(&call) {
            Ok(accepted) => Verdict::Accepted(Box::new(accepted)),
            Err(rejection) => Verdict::rejected(rejection),
        };
        CheckedCall {
            call,
            verdict,
            known: None,
            approval: None,
            unsettled: None,
            is_renewed: false,
            repeats: None,
        }
    }

    /// Makes the text of a custom tool's call the value of the only text that its tool requires, if there is just one.
    fn place_text(&self, call: &mut Call) {
        let Some((tool, Ok(input))) = self.tool(&call.name).zip(Some(&call.input)) else {
            return;
        };
        let Some(key) = required_text(tool.input_schema()) else {
            return;
        };
        if let Value::Object(members) = input.to_value()
            && let Some(Value::String(text)) = members.values().next()
        {
            call.input = Input::of_text(key, text).map_err(Box::new);
        }
    }

    fn accept_call(&self, call: &Call) -> Result<AcceptedCall, Rejection> {
        let input = call.input.as_ref();
        if let Err(fault) = input
            && let InvalidInput::UnknownKind(_) = **fault
        {
            return Err(rejection::unreadable_input(fault));
        }
        // Nothing is compiled for a tool that is only expected.
        let (expected, no_schemas);
        let (tool, compiled) = if let Some(found) = self.look_up(&call.name) {
            found
        } else {
            let found = self.tools.find(&call.name);
            expected = found.ok_or_else(|| rejection::unknown_tool(call, &self.tools))?;
            no_schemas = CompiledSchemas::default();
            (&expected, &no_schemas)
        };
        let input = input.map_err(|invalid| rejection::unreadable_input(invalid))?;
        let valid = validate_input(tool, compiled, input, &self.tools)?;
        let limits = self.tools.path_limits();
        path_confinement::check_paths(tool, &valid.input, limits)?;
        let invocation =
            invocation::build_invocation(tool, &valid.input).map_err(rejection::invalid_input)?;
        let probe =
            invocation::build_probe(tool, &valid.input).map_err(rejection::invalid_input)?;
        let matches = || compiled.matches_when(&tool.safety, &valid);
        let needs_approval = match task_agent(tool, &valid.value) {
            // A `when` schema covers the agent's own input, so it can't judge a task.
            Some(agent) => agent.approve != ApprovalPolicy::Never,
            None => compiled.needs_approval(&tool.approve, &valid),
        };
        let locks = locks::build_locks(tool, &valid.input, &self.tools.root)
            .map_err(rejection::invalid_input)?;
        let (tool, (safe, decided_by)) = match task_agent(tool, &valid.value) {
            // Nor does its `when` decide whether a task is safe.
            Some(agent) => (agent, decide_safety(&agent.safety, || false)),
            None => (tool, decide_safety(&tool.safety, matches)),
        };
        // Others may read what it changes, so it runs alone, except with calls that declare what they read.
        let writes = |lock: &CallLock| lock.mode == LockMode::Write;
        let is_locked = locks.as_ref().is_some_and(|locks| locks.iter().any(writes));
        let is_decided_by_locks = safe || decided_by == SafetySource::Default;
        let (safe, decided_by) = if is_locked && is_decided_by_locks {
            (false, SafetySource::Locks)
        } else {
            (safe, decided_by)
        };
        Ok(AcceptedCall {
            tool: Arc::clone(tool),
            input: valid.input,
            before_coercion: valid.before_coercion,
            is_coerced: valid.is_coerced,
            safe,
            safety_source: decided_by,
            locks,
            needs_approval,
            invocation,
            probe: probe.map(Box::new),
        })
    }
}

/// Finds calls of a turn that were sent twice.
#[derive(Debug, Default)]
pub(crate) struct KnownCalls {
    /// The first call with an id.
    first: HashMap<String, KnownCall>,
    /// The calls with an id that others have, too: their positions by hashes of what they ask for.
    asked: HashMap<u64, usize>,
    hasher: RandomState,
}

#[derive(Debug)]
struct KnownCall {
    position: usize,
    name: Arc<str>,
    input: Result<Input, Box<InvalidInput>>,
}

impl KnownCalls {
    /// Adds a call. Returns the position of an earlier one with the same id, tool and input, however that is written.
    pub fn add(&mut self, call: &Call) -> Option<usize> {
        let first = match self.first.entry(call.id.clone()) {
            Entry::Occupied(first) => first.into_mut(),
            Entry::Vacant(entry) => {
                entry.insert(KnownCall {
                    position: call.position,
                    name: Arc::clone(&call.name),
                    input: call.input.clone(),
                });
                return None;
            }
        };
        // Only here does it matter what inputs mean, which takes longer to find out than all else.
        let hash = |name: &str, input: &Result<Input, Box<InvalidInput>>| {
            let meaning = input
                .as_ref()
                .map(Input::meaning)
                .map_err(ToString::to_string);
            self.hasher.hash_one((&call.id, name, meaning))
        };
        let asked = hash(&first.name, &first.input);
        self.asked.entry(asked).or_insert(first.position);
        match self.asked.entry(hash(&call.name, &call.input)) {
            Entry::Occupied(earlier) => Some(*earlier.get()),
            Entry::Vacant(entry) => {
                entry.insert(call.position);
                None
            }
        }
    }
}

/// Returns the name of the only text among the properties that a schema requires.
fn required_text(schema: &Value) -> Option<&str> {
    let names = schema
        .get("required")?
        .as_array()?
        .iter()
        .filter_map(Value::as_str);
    let is_text = |name: &&str| {
        let property = schema.get("properties").and_then(|all| all.get(*name));
        property.and_then(|property| property.get("type")) == Some(&Value::from("string"))
    };
    let mut texts = names.filter(is_text);
    texts.next().filter(|_| texts.next().is_none())
}

/// Returns the agent that a `new_task` call hands its task to. That agent's limits apply to the call.
fn task_agent<'t>(tool: &'t Tool, input: &Value) -> Option<&'t Arc<Tool>> {
    let Some(Backing::Builtin(BuiltinTool::NewTask(agents))) = &tool.backing else {
        return None;
    };
    let name = input.get("agent")?.as_str()?;
    agents.iter().find(|agent| agent.name == name)
}

/// Rejects a call of which it isn't certain what was sent. What is wrong with its input may not be the model's fault.
pub(crate) fn break_call(checked: CheckedCall) -> CheckedCall {
    match &checked.verdict {
        Verdict::Rejected(rejection)
            if rejection.reason == RejectionReason::UnknownTool
                && !checked.call.name.is_empty() =>
        {
            checked
        }
        _ => {
            let fault = checked.call.input.as_ref().err().map(|fault| &**fault);
            let rejection = rejection::not_whole(fault);
            reject_call(checked.call, rejection)
        }
    }
}

/// Rejects a call that may have a result already, unless running it again changes nothing.
fn doubt_call(checked: CheckedCall) -> CheckedCall {
    match &checked.verdict {
        Verdict::Accepted(accepted) if accepted.tool.effect != Effect::Read => {
            reject_call(checked.call, rejection::misplaced_result())
        }
        Verdict::Accepted(_) | Verdict::Rejected(_) => checked,
    }
}

/// Rejects a call of a response that was refused, unless it was already rejected for a reason of its own.
pub(crate) fn refuse_call(checked: CheckedCall) -> CheckedCall {
    match checked.verdict {
        Verdict::Accepted(_) => reject_call(checked.call, rejection::response_refused()),
        Verdict::Rejected(_) => checked,
    }
}

/// Attaches a rejection to a call.
pub(crate) fn reject_call(call: Call, rejection: Rejection) -> CheckedCall {
    CheckedCall {
        call,
        verdict: Verdict::rejected(rejection),
        known: None,
        approval: None,
        unsettled: None,
        is_renewed: false,
        repeats: None,
    }
}

// What the input says about a call, unless the memory knows more.

/// Returns the outcome of a call of which only the input says anything. `None` if it may run.
fn outcome_in_input(verdict: &Verdict, input_state: InputState) -> Option<Outcome> {
    let is_doubtful = match (input_state, verdict) {
        (InputState::Open, _) => false,
        (InputState::Started, Verdict::Accepted(accepted)) => accepted.tool.effect == Effect::Write,
        (InputState::Started, Verdict::Rejected(_)) | (InputState::InDoubt, _) => true,
    };
    is_doubtful.then(|| Outcome::InDoubt {
        cause: DoubtCause::EndNotLogged(None),
        output: CallOutput::default(),
    })
}

// Decides whether a call is concurrency-safe. The first of these that applies decides: the tool's own
// `concurrency_safe`, a matching rule, the tool's `effect`.

/// Returns whether the call is concurrency-safe, and what decided it. `matches` returns whether the executed input
/// matches the `when` schema; it's only called if there is one.
fn decide_safety(safety: &SafetyPolicy, matches: impl FnOnce() -> bool) -> (bool, SafetySource) {
    match safety {
        SafetyPolicy::Declared(safe) => (*safe, SafetySource::Declared),
        SafetyPolicy::When(_) => (matches(), SafetySource::When),
        SafetyPolicy::Rule(rule) => (rule.safe, SafetySource::Rule(Arc::clone(&rule.glob))),
        SafetyPolicy::Effect(safe) => (*safe, SafetySource::Effect),
        SafetyPolicy::Default => (false, SafetySource::Default),
    }
}
