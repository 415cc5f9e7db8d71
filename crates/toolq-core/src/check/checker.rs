//! Calls → verdicts. Every rule that a call can break before it runs is applied here; nothing runs.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::check::coerce;
use crate::check::fill::dispatch;
use crate::check::paths;
use crate::check::rejection;
use crate::check::safety;
use crate::json::Input;
use crate::json_schema::{Schema, SchemaFault};
use crate::types::{
    Accepted, Backing, Builtin, Call, Checked, DecidedBy, Past, Rejection, Safety, Said, Tool,
    Tools, Turn, Verdict,
};

/// Decides about calls of the tools that it holds. Schemas are compiled at their first use, and only then.
#[derive(Debug)]
pub struct Checker {
    tools: Arc<Tools>,
    by_name: HashMap<String, usize>,
    compiled: Vec<Compiled>,
}

/// The validators of one tool.
#[derive(Debug, Default)]
struct Compiled {
    input: OnceLock<Result<Schema, Vec<SchemaFault>>>,
    when: OnceLock<Option<Schema>>,
}

impl Checker {
    /// A checker over `tools`.
    pub fn new(tools: Arc<Tools>) -> Self {
        let names = tools.tools.iter().enumerate();
        Self {
            by_name: names
                .map(|(index, tool)| (tool.name.clone(), index))
                .collect(),
            compiled: tools.tools.iter().map(|_| Compiled::default()).collect(),
            tools,
        }
    }

    /// The tool of this exact name.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name
            .get(name)
            .map(|index| &self.tools.tools[*index])
    }

    /// Every call of a turn with its verdict, in order: calls that share an id are rejected, and so is the last one of a
    /// turn that was cut off.
    pub fn turn(&self, turn: Turn) -> Vec<Checked> {
        let mut ids: HashMap<&str, usize> = HashMap::new();
        for call in &turn.calls {
            *ids.entry(&call.id).or_default() += 1;
        }
        let shared: Vec<bool> = turn
            .calls
            .iter()
            .map(|call| ids[call.id.as_str()] > 1)
            .collect();
        let last = turn.calls.len() + turn.answered;
        let check = |(call, shared): (Call, bool)| {
            if shared {
                rejected(call, rejection::duplicate())
            } else if turn.cut_off && call.position + 1 == last {
                rejected(call, rejection::truncated())
            } else {
                self.call(call)
            }
        };
        turn.calls.into_iter().zip(shared).map(check).collect()
    }

    /// One call with its verdict, whatever stands beside it in its turn.
    pub fn call(&self, call: Call) -> Checked {
        let verdict = match self.verdict(&call) {
            Ok(accepted) => Verdict::Accepted(Box::new(accepted)),
            Err(rejection) => Verdict::Rejected(rejection),
        };
        Checked {
            call,
            verdict,
            past: Past::None,
        }
    }

    fn verdict(&self, call: &Call) -> Result<Accepted, Rejection> {
        let index = *self
            .by_name
            .get(&call.name)
            .ok_or_else(|| rejection::unknown(&call.name, &self.tools))?;
        let tool = &self.tools.tools[index];
        let compiled = &self.compiled[index];
        let input = call.input.as_ref().map_err(rejection::unreadable)?;
        let checked = self.validated(tool, compiled, input)?;
        let outside = paths::outside(tool, &checked.input, &self.tools.root);
        if !outside.is_empty() {
            return Err(rejection::outside(outside));
        }
        let invocation = dispatch::invocation(tool, &checked.input).map_err(rejection::invalid)?;
        let probe = dispatch::probe(tool, &checked.input).map_err(rejection::invalid)?;
        let matches = || compiled.matches(&tool.safety, &checked.value, &self.tools.dir);
        let (tool, (safe, decided_by)) = match agent_of(tool, &checked.value) {
            Some(agent) => (agent, of_task(agent)),
            None => (tool, safety::decided(&tool.safety, matches)),
        };
        Ok(Accepted {
            tool: Arc::clone(tool),
            input: checked.input,
            before_coercion: checked.before,
            safe,
            decided_by,
            invocation,
            probe,
        })
    }

    /// The input that is executed: as it came where it is valid, mended where that makes it so.
    fn validated(
        &self,
        tool: &Tool,
        compiled: &Compiled,
        input: &Input,
    ) -> Result<Valid, Rejection> {
        if let Some(Said::Nothing(why)) = tool.said() {
            return Err(rejection::undescribed(why));
        }
        // Any object is one for now; what holds once it was asked must not find a schema here that was compiled before.
        if tool.is_unasked() {
            return Ok(Valid {
                input: input.clone(),
                value: input.value(),
                before: None,
            });
        }
        let schema = compiled
            .input
            .get_or_init(|| Schema::compile(tool.input_schema(), &self.tools.dir))
            .as_ref()
            .map_err(|faults| rejection::unusable(faults))?;
        let value = input.value();
        if schema.accepts(&value) {
            return Ok(Valid {
                input: input.clone(),
                value,
                before: None,
            });
        }
        let mended = tool
            .coerce
            .then(|| coerce::coerced(input, &value, schema))
            .flatten();
        match mended {
            Some((mended, value)) => Ok(Valid {
                input: mended,
                value,
                before: Some(input.clone()),
            }),
            None => Err(rejection::invalid(schema.details(&value))),
        }
    }
}

impl Compiled {
    /// Whether `value` matches the schema of `concurrency_safe.when`; one that can't be compiled matches nothing.
    fn matches(&self, safety: &Safety, value: &Value, dir: &Path) -> bool {
        let Safety::When(schema) = safety else {
            return false;
        };
        let when = self.when.get_or_init(|| Schema::compile(schema, dir).ok());
        when.as_ref().is_some_and(|when| when.accepts(value))
    }
}

/// The agent that a call of `new_task` hands its task to: its limits hold for the call.
fn agent_of<'t>(tool: &'t Tool, input: &Value) -> Option<&'t Arc<Tool>> {
    let Some(Backing::Builtin(Builtin::NewTask(agents))) = &tool.backing else {
        return None;
    };
    let name = input.get("agent")?.as_str()?;
    agents.iter().find(|agent| agent.name == name)
}

/// The safety of a task for `agent`. A schema over its input says nothing of a task.
fn of_task(agent: &Tool) -> (bool, DecidedBy) {
    safety::decided(&agent.safety, || false)
}

/// An input that its schema accepts.
struct Valid {
    input: Input,
    value: Value,
    before: Option<Input>,
}

/// A call that may not run.
pub(crate) fn rejected(call: Call, rejection: Rejection) -> Checked {
    Checked {
        call,
        verdict: Verdict::Rejected(rejection),
        past: Past::None,
    }
}
