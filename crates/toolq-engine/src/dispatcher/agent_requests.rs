//! What an agent requests from the dispatcher of its call: events, and turns of its own.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::dispatcher::handle::{AgentRequest, EmitResult, SubTurnRequest};
use crate::dispatcher::turn_loop::Dispatcher;
use toolq_core::types::{AgentUsage, CallRef, Event, ModelResponse, TurnOrigin};

impl Dispatcher<'_> {
    /// Handles a request of an agent. Requests of an agent that has already ended are ignored.
    pub(crate) fn handle_agent_request(&mut self, number: usize, request: AgentRequest) {
        let Some((call, run)) = self.queue.running_call(number) else {
            return;
        };
        match request {
            AgentRequest::Progress {
                turn,
                max_turns,
                reply,
            } => {
                let event = Event::AgentProgress {
                    call,
                    agent: run.job.accepted.tool.name.as_str(),
                    turn,
                    max_turns,
                };
                let _ = reply.send(self.sink.emit(&[event]));
            }
            AgentRequest::Message {
                turn,
                message,
                response,
                reply,
            } => {
                let result = self.emit_agent_message(number, turn, &message, response.as_deref());
                let _ = reply.send(result);
            }
            AgentRequest::SubTurn(turn) => {
                let parent = Arc::clone(call);
                self.start_sub_turn(number, parent, turn);
            }
        }
    }

    /// Emits a message of an agent's conversation. A response of its model counts toward its usage.
    fn emit_agent_message(
        &mut self,
        number: usize,
        turn: usize,
        message: &RawValue,
        response: Option<&ModelResponse>,
    ) -> EmitResult {
        let Some((call, run)) = self.queue.running_call(number) else {
            return Ok(());
        };
        if let Some(response) = response
            && let Some(usage) = &mut run.agent_usage
        {
            count_response(usage, response);
        }
        self.sink.emit(&[Event::AgentMessage {
            call,
            message,
            response,
            turn,
        }])
    }

    /// Starts a turn of the agent that works on the call `parent`, which has this number.
    fn start_sub_turn(&mut self, number: usize, parent: Arc<CallRef>, turn: SubTurnRequest) {
        let idle_engine = self.sub_turns.take_idle_engine(number);
        let mut engine = idle_engine.unwrap_or_else(|| {
            self.engine
                .for_agent(Arc::clone(&turn.tools), Arc::clone(&turn.scope))
        });
        engine.turn_origin = TurnOrigin {
            traceparent: self.engine.turn_origin.traceparent.clone(),
            ..turn.origin.clone()
        };
        self.sub_turns
            .start(number, engine, parent, turn, self.sink);
    }
}

fn count_response(usage: &mut AgentUsage, response: &ModelResponse) {
    usage.turns += 1;
    usage.add_tokens(
        response.model.as_deref().unwrap_or_default(),
        response.usage,
    );
}
