//! The agent loop: request a response from the model, run the calls in it, send back their results, and repeat.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::agent::endpoint::{ModelEndpoint, user_message};
use crate::agent::error::{AgentError, in_doubt_outcome};
use crate::agent::model_client::{ModelChoice, ModelClient};
use crate::agent_requests::{SubTurnAnswers, TurnHandle};
use crate::agent_scope::AgentScope;
use crate::attempt::{CallJob, ProgressSender};
use crate::environment::{resolve_optional, resolve_template, resolve_text};
use crate::settings::EngineSettings;
use redact::Mask;
use toolq_core::answer::{DeclarationFormat, max_turns_text, render_answers, render_declarations};
use toolq_core::check::CallChecker;
use toolq_core::json::indent_json;
use toolq_core::text::{truncate, truncate_to_columns};
use toolq_core::tools_file::select_agent_tools;
use toolq_core::types::{
    AgentBacking, AgentFailure, AgentInvocation, AnswerForm, Api, CallAnswer, CallEnding,
    CheckedCall, EmitError, Invocation, NotExecutedCause, ProblemDetail, Rejection,
    RejectionReason, ResultContent, StopReason, Tool, ToolsConfig, Turn, TurnArrival, TurnOrigin,
    Verdict,
};

/// The maximum length of an unknown stop reason in a progress message.
const MAX_STOP_REASON_CHARS: usize = 60;

/// An agent at work on one call.
pub(crate) struct AgentConversation<'a> {
    pub(crate) settings: &'a EngineSettings,
    pub(crate) model: ModelClient<'a>,
    pub(crate) job: &'a CallJob,
    pub(crate) backing: &'a AgentBacking,
    pub(crate) toolset: Arc<AgentToolset>,
    pub(crate) scope: Arc<AgentScope>,
    pub(crate) handle: TurnHandle,
    pub(crate) progress: ProgressSender,
    /// The conversation so far, in the API's format.
    pub(crate) messages: Vec<Box<RawValue>>,
}

/// A response that continues the conversation.
struct NextResponse {
    turn: Turn,
    stop: StopReason,
}

impl AgentConversation<'_> {
    /// Works on `task` until there is an answer. `text_so_far` always holds the last text of the model, so that the
    /// caller has it even if this future is dropped.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(crate) async fn run(
        mut self,
        task: &AgentInvocation,
        text_so_far: &mut String,
    ) -> Result<(String, CallEnding), AgentError> {
        let environment = &self.settings.environment;
        let endpoint = ModelEndpoint::from_backing(self.backing, environment)?;
        let model = resolve_template(&self.backing.model, environment)?;
        let fallback = resolve_optional(self.backing.fallback_model.as_ref(), environment)?;
        let prompt = match &task.prompt {
            Some(prompt) => resolve_text(prompt, environment)?,
            None => indent_json(self.job.accepted.input.text()),
        };
        self.push_message(0, user_message(&prompt)).await?;
        for turn_number in 0.. {
            let is_last = self.is_last_turn(turn_number);
            let models = ModelChoice {
                first: &model,
                fallback: fallback.as_deref(),
            };
            let NextResponse { turn, stop } = self
                .next_response(&endpoint, models, turn_number, text_so_far)
                .await?;
            match stop {
                StopReason::Complete | StopReason::Paused if turn.calls.is_empty() || is_last => {}
                StopReason::Complete | StopReason::Paused => {
                    self.scope.budget_meter.check_limits()?;
                }
                StopReason::Refused => return Err(AgentFailure::Refused.into()),
                StopReason::MaxTokens => return Err(AgentFailure::MaxTokens.into()),
                StopReason::ContextFull => return Err(AgentFailure::ContextFull.into()),
            }
            match stop {
                StopReason::Complete if turn.calls.is_empty() => {
                    let answer = match text_so_far.as_str() {
                        "" => "(The agent finished with an empty answer.)",
                        text => text,
                    };
                    return Ok((answer.to_owned(), CallEnding::Answered));
                }
                _ if turn.calls.is_empty() && !is_last => continue,
                _ => {}
            }
            if let Some(result) = self.run_calls(turn).await? {
                return Ok((result, CallEnding::Answered));
            }
            if is_last {
                break;
            }
        }
        let tool = &self.job.accepted.tool;
        let partial_answer = max_turns_text(tool, self.backing.max_turns, text_so_far);
        Ok((partial_answer, CallEnding::Unfinished))
    }

    /// Requests the next response and records it.
    async fn next_response(
        &mut self,
        endpoint: &ModelEndpoint,
        models: ModelChoice<'_>,
        turn_number: usize,
        text_so_far: &mut String,
    ) -> Result<NextResponse, AgentError> {
        self.scope.budget_meter.check_limits()?;
        let max_turns = u64::from(self.backing.max_turns);
        self.handle
            .report_progress(turn_number as u64, max_turns)
            .await?;
        let body = |model: &str| {
            endpoint.build_body(model, &self.messages, self.toolset.declarations.as_deref())
        };
        let (mut response, mut turn) = self
            .model
            .request_with_retries(endpoint, models, turn_number, body)
            .await?;
        if let Some(unknown_stop) = &response.unknown_stop_reason {
            self.progress.send_message(format!(
                "unknown stop reason {}: treating the response as complete",
                truncate(unknown_stop, MAX_STOP_REASON_CHARS)
            ));
        }
        let mask = &self.settings.mask;
        response.model = response
            .model
            .take()
            .map(|name| mask_model_name(&name, mask));
        turn.origin = TurnOrigin {
            message_id: response.message_id.clone(),
            model: response.model.clone(),
            ..TurnOrigin::default()
        };
        let model = response.model.as_deref().unwrap_or(models.first);
        let price = self.toolset.tools.prices.for_model(model);
        self.scope
            .budget_meter
            .record_response(model, response.usage, price);
        text_so_far.clone_from(&response.text);
        let (message, stop) = (response.message.clone(), response.stop_reason);
        self.messages.push(message.clone());
        self.handle
            .record_message(turn_number, message, Some(Box::new(response)))
            .await?;
        Ok(NextResponse { turn, stop })
    }

    /// Appends one of the agent's own messages to the conversation and records it.
    async fn push_message(&mut self, turn: usize, message: Box<RawValue>) -> Result<(), EmitError> {
        self.messages.push(message.clone());
        self.handle.record_message(turn, message, None).await
    }

    /// Runs the calls of a turn, and appends their results to the conversation. Returns the agent's final answer if one of the calls gave it; in the last turn no other call runs.
    ///
    /// # Errors
    /// One of the calls is in doubt.
    async fn run_calls(&mut self, turn: Turn) -> Result<Option<String>, AgentError> {
        let (turn_number, form) = (turn.number, turn.answer_form);
        let AgentTurnResult {
            answers: SubTurnAnswers { answers, doubt },
            completion_positions,
        } = self.run_complete_turn(turn).await;
        if let Some(doubt) = doubt {
            return Err(in_doubt_outcome(doubt).into());
        }
        let mut completions = completion_positions
            .iter()
            .filter_map(|position| answers.get(*position));
        if let Some(answer) = completions.find(|answer| !answer.is_error) {
            return Ok(Some(answer_text(answer)));
        }
        if self.is_last_turn(turn_number) {
            return Ok(None);
        }
        for message in result_messages(self.backing.api, form, &answers) {
            self.push_message(turn_number, message).await?;
        }
        Ok(None)
    }
}

// Runs the calls of a response that has arrived as a whole.

/// The answers to the calls of a response.
#[derive(Default)]
struct AgentTurnResult {
    answers: SubTurnAnswers,
    /// The positions of the calls that would give the agent's final answer, in call order.
    completion_positions: Vec<usize>,
}

impl AgentConversation<'_> {
    /// Returns whether the model gets no further request after the turn with this number.
    fn is_last_turn(&self, turn_number: usize) -> bool {
        turn_number + 1 == self.backing.max_turns as usize
    }

    /// Runs the calls of a turn that are all known. In the last turn only those that give the agent's final answer run.
    async fn run_complete_turn(&self, turn: Turn) -> AgentTurnResult {
        let (turn_number, origin) = (turn.number, turn.origin.clone());
        let mut calls = self.toolset.check_turn(turn, &self.scope);
        for checked in &mut calls {
            checked.call.parent = Some(Arc::clone(&self.handle.call));
        }
        let accepted = |checked: &CheckedCall| matches!(checked.verdict, Verdict::Accepted(_));
        self.handle
            .any_call_started()
            .fetch_or(calls.iter().any(accepted), Relaxed);
        let completion_calls = calls.iter().filter(|call| call.verdict.is_completion());
        let completion_positions: Vec<usize> = completion_calls
            .map(|checked| checked.call.position)
            .collect();
        let (sender, arrivals) = mpsc::unbounded_channel();
        if self.is_last_turn(turn_number) {
            if completion_positions.is_empty() {
                return AgentTurnResult::default();
            }
            // This function still holds the receiver, so sending can't fail.
            let _ = sender.send(TurnArrival::RestSkipped(NotExecutedCause::LastTurn));
        }
        for call in calls {
            let _ = sender.send(TurnArrival::Call(Box::new(call)));
        }
        drop(sender);
        let tools = Arc::clone(&self.toolset.tools);
        let scope = Arc::clone(&self.scope);
        let answers = self
            .handle
            .run_sub_turn((turn_number, origin), arrivals, tools, scope)
            .await;
        AgentTurnResult {
            answers: answers.unwrap_or_default(),
            completion_positions,
        }
    }
}

// The texts that an agent produces: the results of a turn for its model, and its answer for its caller.

/// Returns the messages that carry the results of a turn: one for all of them, or one for each, depending on the API.
fn result_messages(api: Api, form: AnswerForm, answers: &[CallAnswer]) -> Vec<Box<RawValue>> {
    let rendered = render_answers(form, answers);
    match api {
        Api::Anthropic => RawValue::from_string(rendered).into_iter().collect(),
        Api::OpenAiChat => serde_json::from_str(&rendered).unwrap_or_default(),
    }
}

/// Returns the text of a call's answer.
fn answer_text(answer: &CallAnswer) -> String {
    match &answer.content {
        ResultContent::Text(text) => text.clone(),
        ResultContent::Blocks(_) => String::new(),
    }
}

// Model names as reported by APIs.

/// The maximum width of a model name, in terminal columns.
const MAX_MODEL_NAME_CHARS: usize = 100;

/// Masks and truncates a model name that an API reported, since it could be anything.
fn mask_model_name(model: &str, mask: &Mask) -> String {
    truncate_to_columns(&mask.apply(model), MAX_MODEL_NAME_CHARS).into_owned()
}

// What an agent works with: its subset of the tools, their declarations, and the checker for its calls. This is built once for
// each agent in the file.

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
