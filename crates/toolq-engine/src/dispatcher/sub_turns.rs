//! The turns of agents. Each runs like any other turn, with its own queue and gate, but is driven by the dispatcher of
//! the agent's call. So all events of a turn of the input are emitted from one place.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use crate::agent;
use crate::attempt::AttemptResult;
use crate::control::RunControl;
use crate::dispatcher::handle::{SubTurnAnswers, SubTurnRequest};
use crate::dispatcher::shared_sink::SharedSink;
use crate::dispatcher::turn_loop::{Dispatcher, TurnStats};
use crate::settings::AnswerDelivery;
use crate::state::EngineState;
use toolq_core::types::{CallAnswer, CallRef, EventSink, HaltCause};

/// The running turns of agents, and the engines of agents between two turns.
#[derive(Default)]
pub(crate) struct SubTurns<'e> {
    active: Vec<ActiveSubTurn<'e>>,
    idle_engines: HashMap<usize, EngineState>,
    /// The results of attempts that have ended while a turn of theirs is still running.
    deferred_results: HashMap<usize, AttemptResult>,
}

struct ActiveSubTurn<'e> {
    /// The number of the agent's call in the dispatcher's queue.
    call_number: usize,
    control: RunControl,
    future: Pin<Box<dyn Future<Output = FinishedSubTurn> + Send + 'e>>,
}

/// A turn of an agent that has finished.
pub(crate) struct FinishedSubTurn {
    engine: EngineState,
    stats: TurnStats,
    answers: Vec<CallAnswer>,
    reply: tokio::sync::oneshot::Sender<SubTurnAnswers>,
}

impl<'e> SubTurns<'e> {
    /// Starts a turn of the agent that works on the call `parent`, which has this number.
    pub(crate) fn start(
        &mut self,
        call_number: usize,
        mut engine: EngineState,
        parent: Arc<CallRef>,
        request: SubTurnRequest,
        sink: SharedSink<'e>,
    ) {
        let control = engine.control.clone();
        let future = Box::pin(async move {
            let mut collector = AnswerCollector::default();
            let dispatcher =
                Dispatcher::new(&mut engine, request.turn_number, sink, &mut collector);
            let stats = dispatcher.with_parent(parent).run(request.arrivals).await;
            FinishedSubTurn {
                engine,
                stats,
                answers: collector.0,
                reply: request.reply,
            }
        });
        self.active.push(ActiveSubTurn {
            call_number,
            control,
            future,
        });
    }

    /// Drives all running turns until one finishes. Never resolves if no turn is running.
    pub(crate) async fn next_finished(&mut self) -> (usize, FinishedSubTurn) {
        poll_fn(|context| {
            for index in 0..self.active.len() {
                if let Poll::Ready(finished) = self.active[index].future.as_mut().poll(context) {
                    let call_number = self.active.swap_remove(index).call_number;
                    return Poll::Ready((call_number, finished));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Keeps the result of an agent's attempt until its running turn has finished, and halts that turn. Returns the
    /// result if no turn is running.
    pub(crate) fn defer_result(
        &mut self,
        call_number: usize,
        result: AttemptResult,
    ) -> Option<AttemptResult> {
        let Some(sub_turn) = self
            .active
            .iter()
            .find(|sub_turn| sub_turn.call_number == call_number)
        else {
            return Some(result);
        };
        sub_turn.control.halt_scope(HaltCause::AgentStopped);
        self.deferred_results.insert(call_number, result);
        None
    }

    /// Takes the engine that ran the last turn of this call's agent. `None` before its first turn.
    pub(crate) fn take_idle_engine(&mut self, call_number: usize) -> Option<EngineState> {
        self.idle_engines.remove(&call_number)
    }

    /// Drops the engine of this call's agent, which has ended.
    pub(crate) fn drop_engine(&mut self, call_number: usize) {
        if let Some(engine) = self.idle_engines.remove(&call_number) {
            engine.control.forget_scope();
        }
    }
}

impl Dispatcher<'_> {
    /// Hands the answers of a finished turn to its agent. If the agent's attempt has already ended, finishes that, too.
    pub(crate) fn finish_sub_turn(&mut self, number: usize, finished: FinishedSubTurn) {
        self.stats.has_effect |= finished.stats.has_effect;
        if let Some((_, run)) = self.queue.running_call(number) {
            run.has_inner_effect |= finished.stats.has_effect;
            if let Some(usage) = &mut run.agent_usage {
                usage.requested_calls += finished.stats.calls;
                usage.rejected_calls += finished.stats.rejected;
                usage.tools_called.extend(finished.stats.tool_names);
            }
        }
        self.sub_turns.idle_engines.insert(number, finished.engine);
        let doubt = finished.stats.first_doubt.map(|(_, doubt)| doubt);
        let _ = finished.reply.send(SubTurnAnswers {
            answers: finished.answers,
            doubt: doubt.clone(),
        });
        let Some(result) = self.sub_turns.deferred_results.remove(&number) else {
            return;
        };
        // A doubt about one of its calls is a doubt about the agent.
        let result = match doubt {
            Some(doubt) => agent::in_doubt_outcome(doubt).into(),
            None => result,
        };
        self.finish_attempt(number, result);
    }
}

/// Collects the answers of a turn, in call order, for its agent.
#[derive(Default)]
struct AnswerCollector(Vec<CallAnswer>);

impl AnswerDelivery for AnswerCollector {
    fn deliver(&mut self, _: &Arc<CallRef>, answer: CallAnswer, _: &mut dyn EventSink) {
        self.0.push(answer);
    }

    fn finish_turn(&mut self, _: &mut dyn EventSink) {}
}
