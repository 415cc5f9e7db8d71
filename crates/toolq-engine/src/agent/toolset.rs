//! What an agent works with: its subset of the tools, their declarations, and the checker for its calls. This is built once for
//! each agent in the file.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::agent_scope::AgentScope;
use toolq_core::answer::{DeclarationFormat, render_declarations};
use toolq_core::check::CallChecker;
use toolq_core::tools_file::select_agent_tools;
use toolq_core::types::{
    AgentBacking, Api, CheckedCall, Invocation, ProblemDetail, Rejection, RejectionReason, Tool,
    ToolsConfig, Turn, Verdict,
};

/// The toolset of one agent.
pub(crate) struct AgentToolset {
    /// The tools that it may call, with the settings of the whole file.
    pub(crate) tools: Arc<ToolsConfig>,
    /// Their declarations in the format of its API. `None` if it has no tools.
    pub(crate) declarations: Option<Box<RawValue>>,
    checker: CallChecker,
}

impl AgentToolset {
    pub(crate) fn new(all: &ToolsConfig, agent: &Tool, backing: &AgentBacking) -> Self {
        let tools = Arc::new(ToolsConfig {
            tools: select_agent_tools(all, agent, backing),
            // Its list says which tools of servers it has.
            unlocked: Vec::new(),
            ..all.clone()
        });
        let format = match backing.api {
            Api::Anthropic => DeclarationFormat::Anthropic,
            Api::OpenAiChat => DeclarationFormat::OpenAiChat,
        };
        let declarations = (!tools.tools.is_empty()).then(|| render_declarations(&tools, format));
        Self {
            declarations: declarations.and_then(|json| RawValue::from_string(json).ok()),
            checker: CallChecker::new(Arc::clone(&tools)),
            tools,
        }
    }

    /// Checks the calls of a turn. Calls that may not run in this scope are rejected.
    pub(crate) fn check_turn(&self, turn: Turn, scope: &AgentScope) -> Vec<CheckedCall> {
        let mut calls = self.checker.check_turn(turn);
        for checked in &mut calls {
            reject_out_of_scope(checked, scope);
        }
        calls
    }
}

/// Rejects a call that may not run in this scope.
fn reject_out_of_scope(checked: &mut CheckedCall, scope: &AgentScope) {
    let Verdict::Accepted(accepted) = &checked.verdict else {
        return;
    };
    let name = &checked.call.name;
    let is_agent = matches!(accepted.invocation, Some(Invocation::Agent(_)));
    let is_completion = matches!(accepted.invocation, Some(Invocation::Completion(_)));
    let (reason, message) = if is_agent && scope.depth >= scope.max_depth {
        let message = format!("agents can be nested at most {} deep", scope.max_depth);
        (RejectionReason::TooDeep, message)
    } else if scope.requires_safe_calls && !accepted.safe && !is_completion {
        let message = format!(
            "{name} must run alone with this input, but this agent runs in parallel with other calls"
        );
        (RejectionReason::NotConcurrencySafe, message)
    } else {
        return;
    };
    let details = vec![ProblemDetail::new("", message)];
    checked.verdict = Verdict::rejected(Rejection { reason, details });
}
