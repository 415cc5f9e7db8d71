//! One attempt of a call: a task runs it, and meanwhile its progress is shown and what its agent asks for is done. All events
//! of a turn of the input are emitted by one task, those of the turns of its agents too.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};

use crate::agent;
use crate::agent_requests::{AgentRequest, SubTurnAnswers, SubTurnRequest, TurnHandle};
use crate::attempt::{
    Attempt, AttemptResult, MAX_QUEUED_PROGRESS, Progress, ProgressSender, run_with_drop_deadline,
};
use crate::control::RunControl;
use crate::state::EngineState;
use crate::turn::call::{RunningCall, StopSignal};
use crate::turn::starts::TurnLink;
use crate::turn::{RunningTurn, TurnStats};
use toolq_core::os::failpoint;
use toolq_core::types::{
    CallAnswer, CallRef, DoubtCause, Effect, Event, EventSink, HaltCause, Outcome,
};

impl RunningCall {
    /// Makes one attempt, or runs the probe of the call's tool. The start of it was emitted.
    pub(super) async fn attempt(
        &mut self,
        turn: &TurnLink<'_>,
        stop: &mut StopSignal,
    ) -> AttemptResult {
        let (cancel, canceled) = oneshot::channel();
        let (updates, mut progress) = mpsc::channel(MAX_QUEUED_PROGRESS);
        let (requests, mut agent_requests) = mpsc::unbounded_channel();
        let mut cancel = Some(cancel);
        let mut task = self.begin_attempt(turn, canceled, updates, requests);
        let mut agent = AgentTurns::default();
        let result = loop {
            tokio::select! {
                // A flood of progress must not keep a call from being canceled.
                biased;
                _ = stop.received(), if cancel.is_some() => {
                    let _ = cancel.take().map(|cancel| cancel.send(()));
                }
                Some(request) = agent_requests.recv() => self.serve_agent(request, &mut agent, turn),
                ended = agent.turn_end() => self.note_agent_turn(ended, &mut agent),
                Some(update) = progress.recv() => self.show_progress(&update, turn),
                Some(ended) = task.join_next() => break ended.unwrap_or_else(panicked),
            }
        };
        // What the attempt did before its end comes before it.
        while let Ok(request) = agent_requests.try_recv() {
            self.serve_agent(request, &mut agent, turn);
        }
        for _ in 0..progress.len() {
            if let Ok(update) = progress.try_recv() {
                self.show_progress(&update, turn);
            }
        }
        // Boxed, so that what waits for a result needs little memory.
        Box::pin(agent.end(self)).await.unwrap_or(result)
    }

    /// Spawns the task of an attempt.
    fn begin_attempt(
        &mut self,
        turn: &TurnLink<'_>,
        cancel: oneshot::Receiver<()>,
        updates: mpsc::Sender<Progress>,
        requests: mpsc::UnboundedSender<AgentRequest>,
    ) -> JoinSet<AttemptResult> {
        let (engine, call, accepted) = (turn.engine, &self.call, &self.job.accepted);
        let is_probe = self.is_probing();
        self.has_started = !is_probe;
        let is_agent = self.job.is_agent();
        self.has_effect |= !is_probe && !is_agent && accepted.tool.effect != Effect::Read;
        if is_agent {
            let agent = &accepted.tool.name;
            let _ = turn.sink.emit(&[Event::AgentStarted { call, agent }]);
        }
        let root = &engine.settings.tools.root;
        engine.result_cache.note_change(accepted, root);
        self.cache_ticket = engine.result_cache.ticket(accepted, root);
        let now = engine.control.now();
        if let Some(slot) = &self.slot {
            slot.note_started(now);
        }
        let trace = engine.settings.trace.as_ref();
        let trace = trace.map(|trace| trace.for_call(call));
        let attempt = Box::new(Attempt {
            job: Arc::clone(&self.job),
            is_probe,
            number: self.attempt,
            idempotency_key: Arc::clone(&self.idempotency_key),
            trace,
            timeout: self.attempt_timeout(now),
            cancel,
            progress: ProgressSender {
                updates,
                is_shown: turn.sink.shows_progress(call),
            },
            turn: is_agent.then(|| TurnHandle::new(Arc::clone(call), requests)),
            outputs: engine.outputs.clone(),
            parent_scope: engine.agent_scope.clone(),
            output_counter: engine.run_budget.output_counter(),
            control: engine.control.clone(),
        });
        let _ = failpoint("start.before");
        let runner = Arc::clone(&engine.runner);
        let mut task = JoinSet::new();
        task.spawn(run_with_drop_deadline(runner, attempt));
        let _ = failpoint("start.after");
        task
    }

    fn show_progress(&self, update: &Progress, turn: &TurnLink<'_>) {
        let _ = turn.sink.emit(&[Event::Status {
            call: &self.call,
            message: update.message.as_deref(),
            progress: update.fraction,
            params: update.params.as_deref(),
            result: update.result.as_deref(),
        }]);
    }
}

fn panicked(error: JoinError) -> AttemptResult {
    Outcome::InternalError(failure_text(error)).into()
}

/// Returns the message of a panic.
pub(super) fn failure_text(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "the task was aborted".to_owned();
    };
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast::<&'static str>().map_or_else(
            |_| "a panic without a message".to_owned(),
            |text| (*text).to_owned(),
        ),
    }
}

// What an agent asks of the turn of its call.

impl RunningCall {
    /// Does what the agent that works on this call asks for.
    pub(super) fn serve_agent<'e>(
        &mut self,
        request: AgentRequest,
        agent: &mut AgentTurns<'e>,
        turn: &TurnLink<'e>,
    ) {
        match request {
            AgentRequest::Progress {
                turn: number,
                max_turns,
                reply,
            } => {
                let _ = reply.send(turn.sink.emit(&[Event::AgentProgress {
                    call: &self.call,
                    agent: self.job.accepted.tool.name.as_str(),
                    turn: number,
                    max_turns,
                }]));
            }
            AgentRequest::Message {
                turn: number,
                message,
                response,
                reply,
            } => {
                if let (Some(response), Some(usage)) = (&response, &mut self.agent_usage) {
                    usage.turns += 1;
                    let model = response.model.as_deref().unwrap_or_default();
                    usage.add_tokens(model, response.usage);
                }
                let _ = reply.send(turn.sink.emit(&[Event::AgentMessage {
                    call: &self.call,
                    message: &message,
                    response: response.as_deref(),
                    turn: number,
                }]));
            }
            AgentRequest::SubTurn(request) => agent.begin(request, &self.call, turn),
        }
    }

    /// Counts what a turn of the agent did, and hands it the answers.
    pub(super) fn note_agent_turn(&mut self, ended: EndedAgentTurn, agent: &mut AgentTurns<'_>) {
        self.has_effect |= ended.stats.has_effect;
        if let Some(usage) = &mut self.agent_usage {
            usage.requested_calls += ended.stats.calls;
            usage.rejected_calls += ended.stats.rejected;
            usage.tools_called.extend(ended.stats.tool_names);
        }
        agent.doubt = ended.stats.first_doubt.map(|(_, doubt)| doubt);
        agent.engine = Some(ended.engine);
        let _ = ended.reply.send(SubTurnAnswers {
            answers: ended.answers,
            doubt: agent.doubt.clone(),
        });
    }
}

/// The turns of an agent, one after another. Each runs like any other turn, with its own queue and gate.
#[derive(Default)]
pub(super) struct AgentTurns<'e> {
    current: Option<AgentTurn<'e>>,
    /// What ran the last turn, and runs the next one.
    engine: Option<Box<EngineState>>,
    /// The first doubt about a call of the last turn.
    doubt: Option<DoubtCause>,
}

struct AgentTurn<'e> {
    control: RunControl,
    run: Pin<Box<dyn Future<Output = EndedAgentTurn> + Send + 'e>>,
}

pub(super) struct EndedAgentTurn {
    engine: Box<EngineState>,
    stats: TurnStats,
    answers: Vec<CallAnswer>,
    reply: oneshot::Sender<SubTurnAnswers>,
}

impl<'e> AgentTurns<'e> {
    fn begin(&mut self, request: SubTurnRequest, call: &Arc<CallRef>, turn: &TurnLink<'e>) {
        let (parent, sink) = (Arc::clone(call), turn.sink);
        let mut engine = self.engine.take().unwrap_or_else(|| {
            let (tools, scope) = (Arc::clone(&request.tools), Arc::clone(&request.scope));
            Box::new(turn.engine.for_agent(tools, scope))
        });
        engine.turn_origin = request.origin;
        self.current = Some(AgentTurn {
            control: engine.control.clone(),
            run: Box::pin(async move {
                let mut answers = Vec::new();
                let mut collector =
                    |_: &Arc<CallRef>, answer: CallAnswer, _: &mut dyn EventSink| {
                        answers.push(answer);
                    };
                let number = request.turn_number;
                let mut turn = RunningTurn::new(&engine, number, sink, &mut collector);
                turn.parent = Some(parent);
                let stats = turn.run(request.arrivals).await;
                EndedAgentTurn {
                    engine,
                    stats,
                    answers,
                    reply: request.reply,
                }
            }),
        });
    }

    /// Runs the current turn. Never resolves if there is none.
    pub(super) async fn turn_end(&mut self) -> EndedAgentTurn {
        let Some(current) = &mut self.current else {
            return pending().await;
        };
        let ended = current.run.as_mut().await;
        self.current = None;
        ended
    }

    /// Ends the turn that still runs although the agent has ended, since the calls of an agent finish before its own call does.
    /// Returns what becomes of that call if one of them is in doubt then.
    pub(super) async fn end(mut self, call: &mut RunningCall) -> Option<AttemptResult> {
        let mut doubt = None;
        if let Some(current) = &self.current {
            current.control.halt_scope(HaltCause::AgentStopped);
            let ended = self.turn_end().await;
            call.note_agent_turn(ended, &mut self);
            doubt = self.doubt.take();
        }
        if let Some(engine) = self.engine {
            engine.control.forget_scope();
        }
        doubt.map(|doubt| agent::in_doubt_outcome(doubt).into())
    }
}
