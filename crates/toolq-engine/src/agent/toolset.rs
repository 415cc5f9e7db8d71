//! What an agent works with: its part of the tools, their declarations, and who checks its calls. Made once for each
//! agent of the file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;

use crate::agent::scope::Around;
use toolq_core::answer::{Declare, declare};
use toolq_core::check::{Arriving, Checker};
use toolq_core::tools_file::tools_of;
use toolq_core::types::{
    AgentBacking, Api, Checked, Detail, Invocation, Reason, Rejection, Tool, Tools, Turn, Verdict,
};

/// The kits of all agents that were called so far.
pub(crate) struct Kits {
    tools: Arc<Tools>,
    made: Mutex<HashMap<String, Arc<Kit>>>,
}

/// The kit of one agent.
pub(crate) struct Kit {
    /// The tools that it may call, and the whole file's settings.
    pub(crate) tools: Arc<Tools>,
    /// Their declarations as its API wants them; none where it has no tools.
    pub(crate) declared: Option<Box<RawValue>>,
    checker: Checker,
}

impl Kits {
    pub(crate) fn new(tools: Arc<Tools>) -> Self {
        Self {
            tools,
            made: Mutex::default(),
        }
    }

    pub(crate) fn of(&self, agent: &Tool, backing: &AgentBacking) -> Arc<Kit> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let kit = made.entry(agent.name.clone());
        Arc::clone(kit.or_insert_with(|| Arc::new(Kit::new(&self.tools, agent, backing))))
    }
}

impl Kit {
    fn new(all: &Tools, agent: &Tool, backing: &AgentBacking) -> Self {
        let tools = Arc::new(Tools {
            tools: tools_of(all, agent, backing),
            ..all.clone()
        });
        let how = match backing.api {
            Api::Anthropic => Declare::Anthropic,
            Api::OpenAiChat => Declare::OpenAiChat,
        };
        let declared = (!tools.tools.is_empty()).then(|| declare(&tools, how));
        Self {
            declared: declared.and_then(|json| RawValue::from_string(json).ok()),
            checker: Checker::new(Arc::clone(&tools)),
            tools,
        }
    }

    /// The calls of a turn with their verdicts: what may not run where the agent stands is rejected here.
    pub(crate) fn check(&self, turn: Turn, around: &Around) -> Vec<Checked> {
        let mut calls = self.checker.turn(turn);
        for checked in &mut calls {
            bounded(checked, around);
        }
        calls
    }

    /// The same for the calls of an answer that is still being spoken, but for what may not run where the agent stands.
    pub(crate) fn arriving(&self) -> Arriving<'_> {
        Arriving::new(&self.checker).timid()
    }
}

/// Rejects a call that may not run where the agent stands.
pub(crate) fn bounded(checked: &mut Checked, around: &Around) {
    let Verdict::Accepted(accepted) = &checked.verdict else {
        return;
    };
    let name = &checked.call.name;
    let is_agent = matches!(accepted.invocation, Some(Invocation::Agent(_)));
    let ends = matches!(accepted.invocation, Some(Invocation::Completion(_)));
    let (reason, message) = if is_agent && around.depth >= around.deepest {
        let message = format!("agents call each other at most {} deep", around.deepest);
        (Reason::TooDeep, message)
    } else if around.safe && !accepted.safe && !ends {
        let message = format!(
            "{name} must run alone with this input, and this agent runs beside other calls"
        );
        (Reason::NotConcurrencySafe, message)
    } else {
        return;
    };
    let details = vec![Detail {
        path: String::new(),
        message,
    }];
    checked.verdict = Verdict::Rejected(Rejection { reason, details });
}
