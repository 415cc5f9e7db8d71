//! The turns of agents. Each is served like any other, with a queue and a gate of its own; the dispatcher of the agent's
//! call drives them, so that everything of a turn of the input is told from one place.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use crate::agent;
use crate::attempt::End;
use crate::control::Control;
use crate::dispatcher::handle::{Answers, Ask, InnerTurn};
use crate::dispatcher::shared_sink::Ears;
use crate::dispatcher::turn::{Tally, Turn};
use crate::settings::Delivery;
use crate::state::EngineState;
use toolq_core::types::{AgentUse, Answer, CallRef, Event, Sink};

/// The turns of agents that are being served, and the engines of agents between two turns.
#[derive(Default)]
pub(crate) struct Inner<'e> {
    serving: Vec<Serving<'e>>,
    resting: HashMap<usize, EngineState>,
    /// How attempts ended whose last turn is still served.
    ended: HashMap<usize, End>,
}

struct Serving<'e> {
    /// The agent's call, as its dispatcher numbers it.
    call: usize,
    control: Control,
    work: Pin<Box<dyn Future<Output = Served> + Send + 'e>>,
}

/// A turn that was served.
pub(crate) struct Served {
    engine: EngineState,
    tally: Tally,
    answers: Vec<Answer>,
    to: tokio::sync::oneshot::Sender<Answers>,
}

impl<'e> Inner<'e> {
    fn serve(
        &mut self,
        call: usize,
        mut engine: EngineState,
        within: Arc<CallRef>,
        turn: InnerTurn,
        sink: Ears<'e>,
    ) {
        let control = engine.control.clone();
        let work = Box::pin(async move {
            let mut collected = Collected::default();
            let serving = Turn::new(&mut engine, turn.number, sink, &mut collected);
            let tally = serving.within(within).serve(turn.calls).await;
            Served {
                engine,
                tally,
                answers: collected.0,
                to: turn.answers,
            }
        });
        self.serving.push(Serving {
            call,
            control,
            work,
        });
    }

    /// Drives all of them until one is served; for ever where there is none.
    pub(crate) async fn next(&mut self) -> (usize, Served) {
        poll_fn(|context| {
            for index in 0..self.serving.len() {
                if let Poll::Ready(served) = self.serving[index].work.as_mut().poll(context) {
                    let call = self.serving.swap_remove(index).call;
                    return Poll::Ready((call, served));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Keeps how an attempt ended until its turn is served, which is ended now. Gives it back where there is none.
    pub(crate) fn hold(&mut self, call: usize, end: End) -> Option<End> {
        let Some(serving) = self.serving.iter().find(|serving| serving.call == call) else {
            return Some(end);
        };
        serving.control.end_agent();
        self.ended.insert(call, end);
        None
    }

    /// Nothing more comes of the agent of this call.
    pub(crate) fn forget(&mut self, call: usize) {
        self.resting.remove(&call);
    }
}

impl Turn<'_> {
    /// Does what an agent asks for. One that is over asks for nothing any more.
    pub(crate) fn oblige(&mut self, number: usize, ask: Ask) {
        let Some((call, run)) = self.queue.run(number) else {
            return;
        };
        let agent = run.job.accepted.tool.name.as_str();
        match ask {
            Ask::Progress {
                turn,
                max_turns,
                told,
            } => {
                let event = Event::AgentProgress {
                    call,
                    agent,
                    turn,
                    max_turns,
                };
                let _ = told.send(self.sink.tell(&[event]));
            }
            Ask::Message {
                turn,
                message,
                response,
                told,
            } => {
                if let (Some(known), Some(response)) = (&mut run.agent, &response) {
                    count(known, &response.0);
                }
                // One of an earlier run was told there.
                let response = response.as_deref();
                let response =
                    response.and_then(|(response, digest)| Some((response, digest.as_deref()?)));
                let event = Event::AgentMessage {
                    call,
                    message: &message,
                    response,
                    turn,
                };
                let _ = told.send(self.sink.tell(&[event]));
            }
            Ask::Lost { model, tokens } => {
                if let Some(known) = &mut run.agent {
                    known.lose(&model, tokens);
                }
            }
            Ask::Turn(turn) => {
                let within = Arc::new(call.clone());
                let resting = self.inner.resting.remove(&number);
                let engine = resting.unwrap_or_else(|| {
                    self.engine
                        .within(Arc::clone(&turn.tools), Arc::clone(&turn.around))
                });
                self.inner.serve(number, engine, within, turn, self.sink);
            }
        }
    }

    /// A turn of an agent is served: the agent goes on, or ends if it has ended.
    pub(crate) fn served(&mut self, number: usize, served: Served) {
        if let Some((_, run)) = self.queue.run(number)
            && let Some(known) = &mut run.agent
        {
            known.calls += served.tally.calls;
            known.corrections += served.tally.rejected;
        }
        self.inner.resting.insert(number, served.engine);
        let doubt = served.tally.doubt.map(|(_, doubt)| doubt);
        let _ = served.to.send(Answers {
            answers: served.answers,
            doubt: doubt.clone(),
        });
        let Some(end) = self.inner.ended.remove(&number) else {
            return;
        };
        // An agent that was ended with its run goes on from there. Of any other this is the last word.
        let last = self.engine.control.halted().is_none();
        let end = match doubt.filter(|_| last) {
            Some(doubt) => agent::in_doubt(doubt).into(),
            None => end,
        };
        self.conclude(number, end);
    }
}

fn count(known: &mut AgentUse, response: &toolq_core::types::Response) {
    known.turns += 1;
    let model = response.model.clone().unwrap_or_default();
    *known.usage.entry(model).or_default() += response.usage;
}

/// Answers in call order, for their agent.
#[derive(Default)]
struct Collected(Vec<Answer>);

impl Delivery for Collected {
    fn deliver(&mut self, _: &CallRef, answer: Answer, _: &mut dyn Sink) {
        self.0.push(answer);
    }

    fn drained(&mut self, _: &mut dyn Sink) {}
}
