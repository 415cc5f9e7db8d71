//! Runs agents. The responses of their models are parsed, their calls checked and run, and the results rendered by the
//! same code as those of the input.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;

use crate::agent::conversation::{AgentConversation, AgentToolset};
use crate::agent::error::AgentError;
use crate::agent::model_client::ModelClient;
use crate::agent_scope::AgentScope;
use crate::attempt::{Attempt, AttemptResult};
use crate::http::HttpClients;
use crate::output::OutputCollector;
use crate::run_budget::OutputCounter;
use crate::scheduler::jitter_seed;
use crate::settings::EngineSettings;
use toolq_core::types::{
    AgentBacking, AgentFailure, AgentInvocation, Backing, CallEnding, Outcome, Tool, ToolsConfig,
};

/// The tools, and the toolsets of all agents that have been called so far.
type CachedToolsets = (Arc<ToolsConfig>, HashMap<String, Arc<AgentToolset>>);

/// Runs the agents of a tools file.
pub(crate) struct AgentRunner {
    clients: HttpClients,
    settings: Arc<EngineSettings>,
    toolsets: Mutex<CachedToolsets>,
}

impl AgentRunner {
    pub(crate) fn new(settings: Arc<EngineSettings>) -> Self {
        Self {
            clients: HttpClients::new(Arc::clone(&settings)),
            toolsets: Mutex::new((Arc::clone(&settings.tools), HashMap::new())),
            settings,
        }
    }

    /// Gives agents that begin from now on their tools from this file. Agents that are running keep theirs.
    pub(crate) fn change_tools(&self, tools: &Arc<ToolsConfig>) {
        *self.toolsets.lock() = (Arc::clone(tools), HashMap::new());
    }

    fn toolset_of(&self, agent: &Tool, backing: &AgentBacking) -> Arc<AgentToolset> {
        let (tools, by_agent) = &mut *self.toolsets.lock();
        let entry = by_agent.entry(agent.name.clone());
        Arc::clone(entry.or_insert_with(|| Arc::new(AgentToolset::new(tools, agent, backing))))
    }

    /// Runs an agent to its end, within its timeout.
    pub(crate) async fn run(&self, task: &AgentInvocation, attempt: Attempt) -> AttemptResult {
        let Attempt {
            job,
            timeout,
            cancel,
            output_counter,
            control,
            progress,
            turn: Some(handle),
            parent_scope,
            idempotency_key,
            ..
        } = attempt
        else {
            return Outcome::InternalError("an agent has no turn".to_owned()).into();
        };
        let tool = &job.accepted.tool;
        let Some(Backing::Agent(backing)) = &tool.backing else {
            return Outcome::NoBacking.into();
        };
        let scope = Arc::new(AgentScope::for_call(
            tool,
            backing,
            job.accepted.safe,
            parent_scope.as_deref(),
        ));
        // The model's last text is kept outside the conversation, so that it survives a cancellation or timeout.
        let mut text_so_far = String::new();
        let any_call_started = handle.any_call_started();
        let conversation = AgentConversation {
            settings: &self.settings,
            model: ModelClient {
                clients: &self.clients,
                tool,
                api: backing.api,
                control: control.clone(),
                deadline: control.now().saturating_add(timeout.duration),
                jitter_seed: jitter_seed(&idempotency_key),
                progress: progress.clone(),
            },
            job: &job,
            backing,
            toolset: self.toolset_of(tool, backing),
            scope,
            handle,
            progress,
            messages: Vec::new(),
        };
        let output = |text: &str| self.capture_text(tool, output_counter.clone(), text);
        let result = tokio::select! {
            result = conversation.run(task, &mut text_so_far) => result,
            Ok(()) = cancel => {
                let partial_output = output(&text_so_far).into_output(String::new());
                return AttemptResult::canceled_while_running(partial_output);
            }
            () = control.sleep(timeout.duration) => {
                let timed_out = Outcome::TimedOut {
                    limit: timeout.configured,
                    no_calls_started: !any_call_started.load(Relaxed),
                    output: output(&text_so_far).into_output(String::new()),
                };
                return timed_out.into();
            }
        };
        match result {
            Ok((text, ending)) => output(&text).into_outcome(ending, String::new).into(),
            Err(error) => self.failure_outcome(error, output(&text_so_far)).into(),
        }
    }

    /// Returns the outcome of an agent that gave no answer. `output` holds the last text of its model.
    fn failure_outcome(&self, error: AgentError, output: OutputCollector) -> Outcome {
        match error {
            AgentError::Outcome(outcome) => outcome,
            AgentError::Failure(fault) => Outcome::AgentFailed {
                failure: self.mask_failure(fault),
                output: output.into_output(String::new()),
            },
        }
    }

    /// Returns the outcome of `attempt_completion`, whose `result` is the final answer.
    pub(crate) fn run_completion(&self, result: &str, attempt: &Attempt) -> Outcome {
        let tool = &attempt.job.accepted.tool;
        let output = self.capture_text(tool, attempt.output_counter.clone(), result);
        output.into_outcome(CallEnding::Answered, String::new)
    }

    /// Captures a text as the output of a tool, truncated like any other.
    fn capture_text(
        &self,
        tool: &Tool,
        output_counter: OutputCounter,
        text: &str,
    ) -> OutputCollector {
        let mut output = OutputCollector::for_response(tool, None, &self.settings, output_counter);
        output.push(text.as_bytes());
        output
    }

    /// Masks secrets in a failure, since an API's errors may repeat what was sent to it.
    fn mask_failure(&self, failure: AgentFailure) -> AgentFailure {
        let mask = |text: String| self.settings.mask.apply(&text).into_owned();
        match failure {
            AgentFailure::ApiError {
                status,
                message,
                retry_after,
            } => AgentFailure::ApiError {
                status,
                message: mask(message),
                retry_after,
            },
            AgentFailure::InvalidEndpoint { declared, resolved } => AgentFailure::InvalidEndpoint {
                declared,
                resolved: mask(resolved),
            },
            AgentFailure::UnreadableResponse(why) => AgentFailure::UnreadableResponse(mask(why)),
            other => other,
        }
    }
}
