//! The calls of a turn that have their place, and what they ask of it: their starts are emitted together, before anything happens,
//! and what has to be durable is requested together.

use std::future::Future;
use std::mem;
use std::pin::Pin;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::{mpsc, oneshot};

use crate::state::EngineState;
use crate::turn::call::{EndedCall, RunningCall, Start, StopSignal};
use crate::turn::lines::RetryInLine;
use crate::turn::queue::CallStop;
use crate::turn::{RunningTurn, SharedSink};
use toolq_core::types::{EmitError, Event};

/// The calls that have their place, each until it has its outcome.
pub(super) struct RunningCalls<'e> {
    pub(super) lives: FuturesUnordered<Pin<Box<dyn Future<Output = EndedCall> + Send + 'e>>>,
    pub(super) messages: (
        mpsc::UnboundedSender<CallMessage>,
        mpsc::UnboundedReceiver<CallMessage>,
    ),
    /// The starts that are to be emitted next, all together.
    starts: Vec<StartRequest>,
}

impl Default for RunningCalls<'_> {
    fn default() -> Self {
        Self {
            lives: FuturesUnordered::new(),
            messages: mpsc::unbounded_channel(),
            starts: Vec::new(),
        }
    }
}

/// What a call that runs shares with its turn.
pub(super) struct TurnLink<'e> {
    pub(super) engine: &'e EngineState,
    pub(super) sink: SharedSink<'e>,
    messages: mpsc::UnboundedSender<CallMessage>,
}

/// What the life of a call asks of its turn.
pub(super) enum CallMessage {
    Start(StartRequest),
    Retry(RetryInLine),
    /// The results up to this request are durable, or never will be.
    Synced(u64),
}

/// A call that may start once that is on record.
pub(super) struct StartRequest {
    pub(super) start: Start,
    /// Receives whether it is claimed now, or why it isn't on record.
    pub(super) reply: oneshot::Sender<Result<bool, EmitError>>,
}

impl TurnLink<'_> {
    pub(super) fn send(&self, message: CallMessage) {
        // The turn outlives its calls, so sending can't fail.
        let _ = self.messages.send(message);
    }
}

impl RunningTurn<'_> {
    /// Lets the calls that have their place go on as far as they can, and delivers the answers that are then next in call order.
    /// Returns whether any call has ended, or asked for something.
    pub(super) fn poll_calls(&mut self) -> bool {
        let mut has_news = false;
        while let Some(Some(ended)) = self.calls.lives.next().now_or_never() {
            has_news = true;
            self.finish_ended(ended);
        }
        while let Ok(message) = self.calls.messages.1.try_recv() {
            has_news = true;
            self.handle_message(message);
        }
        self.deliver_answers();
        has_news
    }

    pub(super) fn handle_message(&mut self, message: CallMessage) {
        match message {
            CallMessage::Start(start) => self.calls.starts.push(start),
            CallMessage::Retry(retry) => self.throttle_retry(retry),
            CallMessage::Synced(request) => self.queue.note_synced(request),
        }
    }

    /// Gives a call its life. It has its place in the order, and its permit.
    pub(super) fn begin_call(&mut self, call: RunningCall) {
        let (stop, stopped) = oneshot::channel();
        self.queue.set_running(call.number, CallStop::new(stop));
        let turn = TurnLink {
            engine: self.engine,
            sink: self.sink,
            messages: self.calls.messages.0.clone(),
        };
        let life = call.run(turn, StopSignal::new(stopped));
        self.calls.lives.push(Box::pin(life));
    }

    /// Emits the starts that were asked for in one slice, so that a log can record them together. The calls go on once what they
    /// need is durable.
    pub(super) fn emit_starts(&mut self) {
        let mut starts = mem::take(&mut self.calls.starts);
        starts.retain(|request| self.queue.is_running(request.start.number));
        if starts.is_empty() {
            return;
        }
        let mut new_batches = Vec::new();
        for StartRequest { start, .. } in &starts {
            let new = start
                .call
                .batch
                .filter(|batch| self.batches.started.insert(*batch));
            new_batches.push(new.map(|batch| (batch, self.queue.batch_calls(start.number))));
        }
        let mut events = Vec::with_capacity(starts.len() + 1);
        for (StartRequest { start, .. }, new_batch) in starts.iter().zip(&new_batches) {
            events.extend(
                new_batch
                    .as_ref()
                    .map(|(batch, calls)| Event::BatchStarted {
                        turn: self.number,
                        batch: *batch,
                        calls,
                    }),
            );
            events.push(start.event());
        }
        match self.sink.emit(&events) {
            Ok(()) => self.commit_starts(starts),
            Err(why) => {
                for StartRequest { reply, .. } in starts {
                    let _ = reply.send(Err(why.clone()));
                }
            }
        }
    }

    /// Lets calls go on whose starts were emitted: at once, or once what they need is durable.
    fn commit_starts(&mut self, starts: Vec<StartRequest>) {
        let memory = self.engine.settings.memory.as_ref();
        let (mut claims, mut claimed, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
        for StartRequest { start, reply } in starts {
            if memory.is_none() || !start.job.is_remembered || start.is_probe {
                let _ = reply.send(Ok(true));
            } else if let Some(claim) = start.claim {
                claims.push((start.call.key(), claim));
                claimed.push(reply);
            } else {
                recorded.push(reply);
            }
        }
        let Some(memory) = memory else { return };
        if !claimed.is_empty() {
            memory.commit(claims, Box::new(|done| tell_all(claimed, &done)));
        }
        if !recorded.is_empty() {
            memory.commit(Vec::new(), Box::new(|done| tell_all(recorded, &done)));
        }
    }

    /// Requests that the results which somebody waits for become durable. This isn't done as soon as a call ends, so that one sync
    /// also covers the start that usually follows.
    pub(super) fn sync_results(&mut self) {
        if !self.queue.has_unrequested {
            return;
        }
        let Some(memory) = &self.engine.settings.memory else {
            return;
        };
        let request = self.queue.request_sync();
        let messages = self.calls.messages.0.clone();
        // If they never become durable, the log says so, and they are results all the same.
        let done = move |_| drop(messages.send(CallMessage::Synced(request)));
        memory.commit(Vec::new(), Box::new(done));
    }
}

/// Tells calls whether each of them is claimed now. One that needs no claim has none that is another's.
fn tell_all(
    replies: Vec<oneshot::Sender<Result<bool, EmitError>>>,
    committed: &Result<Vec<bool>, EmitError>,
) {
    for (index, reply) in replies.into_iter().enumerate() {
        let is_ours = |are_ours: &Vec<bool>| are_ours.get(index).copied().unwrap_or(true);
        let _ = reply.send(committed.as_ref().map(is_ours).map_err(Clone::clone));
    }
}
