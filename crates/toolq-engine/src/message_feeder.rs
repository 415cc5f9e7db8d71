//! Runs the calls of a model's message while the message is still arriving.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::mpsc::{self, UnboundedSender};

use crate::control::RunControl;
use crate::discovery::SchemaDiscovery;
use crate::engine::Engine;
use crate::recall::{RememberedWrites, open_calls, recall_calls};
use crate::settings::AnswerDelivery;
use crate::turn::{RunningTurn, SharedSink, TurnSink};
use toolq_core::check::{CallChecker, StreamAdmission, undescribed_tools};
use toolq_core::transcript::{InputError, PartialCall, StreamEvent};
use toolq_core::types::{
    Call, CallMemory, CallRef, Event, EventSink, ToolsConfig, TurnArrival, TurnOrigin,
};

/// A stream of model messages, decoded into events.
pub trait MessageSource: Send {
    /// Waits for the next event; `None` at the end of the stream.
    fn next(&mut self) -> impl Future<Output = Option<StreamEvent>> + Send;

    /// Returns the next event that is already known, without reading further.
    fn next_ready(&mut self) -> Option<StreamEvent>;

    /// Stops reading. Returns the calls that have started but are incomplete.
    fn abandon(&mut self) -> Vec<Call>;
}

/// How a message ended.
pub struct MessageEnd {
    /// Why the stream ended in the middle of the message, if it did.
    pub stream_error: Option<InputError>,
    /// What doesn't fit together in the message, so that some of its calls didn't run.
    pub broken: Option<InputError>,
}

impl Engine {
    /// Runs turn `number`, whose message has just started in `source`. Each call starts as soon as the rest of the message
    /// can no longer affect whether it runs. Returns when every call has been answered and delivered.
    pub async fn run_message<S: MessageSource>(
        &mut self,
        number: usize,
        source: &mut S,
        checker: &CallChecker,
        sink: &mut dyn EventSink,
        delivery: &mut dyn AnswerDelivery,
    ) -> MessageEnd {
        let tools = self.state.settings.tools.clone();
        let (discovery, control) = (self.schema_discovery(), self.control());
        let (sender, arrivals) = mpsc::unbounded_channel();
        let sink = TurnSink::new(sink, &self.state.backends);
        let feeder = MessageFeeder {
            source,
            tools: &tools,
            discovery,
            sink: &sink,
            control,
            turn_number: number,
            admission: StreamAdmission::new(checker),
            broken: None,
            sender,
            checker,
            memory: self.state.settings.memory.clone(),
            origin: self.state.turn_origin.clone(),
            writes: RememberedWrites::default(),
        };
        let turn = RunningTurn::new(&self.state, number, &sink, delivery);
        let (end, _) = tokio::join!(feeder.run(), turn.run(arrivals));
        end
    }
}

/// Whether the message continues.
enum MessageProgress {
    Open,
    Complete,
    Aborted(InputError),
}

/// Carries the events of one message to its turn. Dropping it ends the turn.
struct MessageFeeder<'f, S> {
    source: &'f mut S,
    tools: &'f Arc<ToolsConfig>,
    discovery: SchemaDiscovery,
    /// Receives the events of discovery.
    sink: SharedSink<'f>,
    control: RunControl,
    /// Counted over all inputs of the run.
    turn_number: usize,
    /// Decides which calls may start.
    admission: StreamAdmission<'f>,
    /// What doesn't fit together in the message.
    broken: Option<InputError>,
    sender: UnboundedSender<TurnArrival>,
    checker: &'f CallChecker,
    memory: Option<Arc<dyn CallMemory>>,
    origin: TurnOrigin,
    /// The writes of the message so far that have run or may have.
    writes: RememberedWrites,
}

impl<S: MessageSource> MessageFeeder<'_, S> {
    /// Feeds the whole message. Dropping `self` closes the channel, which ends the turn.
    async fn run(mut self) -> MessageEnd {
        let stream_error = self.feed_message().await;
        MessageEnd {
            stream_error,
            broken: self.broken,
        }
    }

    async fn feed_message(&mut self) -> Option<InputError> {
        self.admission.begin();
        loop {
            let event = tokio::select! {
                biased;
                () = self.control.wait_for_external_halt() => return self.stop_reading().await,
                event = self.source.next() => event?,
            };
            if let StreamEvent::CallComplete(call) = &event {
                self.describe_tools(call).await;
            }
            match self.feed_event(event).await {
                MessageProgress::Open => {}
                MessageProgress::Complete => return None,
                MessageProgress::Aborted(error) => return Some(error),
            }
        }
    }

    /// Discovers the schemas that a call needs. The stream isn't read in the meantime.
    async fn describe_tools(&mut self, call: &Call) {
        let call = [self.own_call(call.clone())];
        let mut undescribed = undescribed_tools(self.tools, &call);
        if let (false, Some(memory)) = (undescribed.is_empty(), &self.memory) {
            let checked = call.map(|call| self.checker.check_call(call));
            let (mut writes, calls) = (self.writes.clone(), (checked.into(), &self.origin));
            let calls = recall_calls(memory, self.tools, &mut writes, calls).await;
            undescribed = undescribed_tools(self.tools, open_calls(&calls));
        }
        self.discovery.discover(&undescribed, &mut self.sink).await;
    }

    /// Feeds what is already known, and abandons the rest.
    async fn stop_reading(&mut self) -> Option<InputError> {
        while let Some(event) = self.source.next_ready() {
            match self.feed_event(event).await {
                MessageProgress::Open => {}
                MessageProgress::Complete => return None,
                MessageProgress::Aborted(error) => return Some(error),
            }
        }
        let unfinished = self.source.abandon();
        self.abort(unfinished);
        self.send_ready().await;
        None
    }

    /// Takes in the next event, and sends the calls that may start by now, with everything else that is known of them.
    async fn feed_event(&mut self, event: StreamEvent) -> MessageProgress {
        let progress = self.take_in(event);
        self.send_ready().await;
        progress
    }

    fn take_in(&mut self, event: StreamEvent) -> MessageProgress {
        match event {
            StreamEvent::PartialInput(part) => self.emit_partial_input(part),
            StreamEvent::CallStarted { .. } => self.admission.begin(),
            StreamEvent::CallComplete(call) => self.admission.complete(self.own_call(call)),
            StreamEvent::Broken { first, error, .. } => {
                self.admission.break_from(first);
                self.broken.get_or_insert(error);
            }
            StreamEvent::MessageEnd { ending, .. } => {
                self.admission.close(ending);
                return MessageProgress::Complete;
            }
            StreamEvent::Aborted {
                unfinished_calls,
                error,
            } => {
                self.abort(unfinished_calls);
                return MessageProgress::Aborted(error);
            }
        }
        MessageProgress::Open
    }

    /// Ends a message that broke off. `unfinished` are its last calls, whose inputs are incomplete.
    fn abort(&mut self, unfinished: Vec<Call>) {
        let unfinished = unfinished.into_iter().map(|call| self.own_call(call));
        self.admission.abort(unfinished.collect());
    }

    /// Sends the calls that may start now, with what the memory knows of them, and everything else that is ready.
    async fn send_ready(&mut self) {
        let ready: Vec<TurnArrival> = self.admission.drain_ready().collect();
        for arrival in ready {
            let arrival = match (arrival, &self.memory) {
                (TurnArrival::Call(checked), Some(memory)) => {
                    let calls = (vec![*checked], &self.origin);
                    let recalled = recall_calls(memory, self.tools, &mut self.writes, calls).await;
                    match recalled.into_iter().next() {
                        Some(checked) => TurnArrival::Call(Box::new(checked)),
                        None => continue,
                    }
                }
                (arrival, _) => arrival,
            };
            self.send(arrival);
        }
    }

    /// Returns a call as a call of this turn.
    fn own_call(&self, call: Call) -> Call {
        Call {
            turn: self.turn_number,
            ..call
        }
    }

    /// Says how far the input of a call has come.
    fn emit_partial_input(&mut self, part: PartialCall) {
        let call = CallRef {
            turn: self.turn_number,
            position: part.position,
            tool_use_id: part.id,
            tool_name: part.name.into(),
            batch: None,
            parent: None,
        };
        // A sink that refuses it refuses what follows, too.
        let _ = self.sink.emit(&[Event::PartialInput {
            tool: self.tools.get(&call.tool_name).map(|tool| &**tool),
            call: &call,
            input_so_far: &part.input_so_far,
        }]);
    }

    fn send(&self, arrival: TurnArrival) {
        // The turn receives until this sender is dropped, so sending can't fail.
        let _ = self.sender.send(arrival);
    }
}
