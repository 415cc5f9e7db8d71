//! Dispatches tool calls while the model response is still streaming. Calls that may start early do so when their block
//! ends; the rest wait until the response is complete and recorded. The turn opens with the first call that starts.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::sync::{mpsc, oneshot};

use crate::agent::model_name::mask_model_name;
use crate::agent::scope::AgentScope;
use crate::agent::toolset::{AgentToolset, reject_out_of_scope};
use crate::call_feeder::CallFeeder;
use crate::dispatcher::{DispatcherHandle, SubTurnAnswers};
use redact::Mask;
use toolq_core::transcript::{ResponseAssembler, ResponseError, StreamEvent, check_call_count};
use toolq_core::types::{
    Api, DoubtCause, HaltCause, NotExecutedCause, TurnArrival, TurnOrigin, Verdict,
};

/// A model response, as far as it has been received.
pub(crate) struct StreamingResponse<'k> {
    toolset: &'k AgentToolset,
    scope: Arc<AgentScope>,
    dispatcher: DispatcherHandle,
    turn_number: usize,
    /// The requested model.
    model: String,
    mask: Arc<Mask>,
    /// The response has been accepted, so its tokens are counted with it rather than as aborted.
    is_accepted: bool,
    assembly: ResponseAssembler,
    /// `None` once all calls were passed on.
    calls: Option<CallFeeder<'k>>,
    /// What the turn receives. It opens when the first call may start.
    unopened_arrivals: Option<mpsc::UnboundedReceiver<TurnArrival>>,
    /// The answers of the turn, while it is open.
    answers: Option<oneshot::Receiver<SubTurnAnswers>>,
    /// Where the response comes from, as far as it has said so.
    origin: TurnOrigin,
    /// As in [`AgentTurnResult`].
    completion_positions: Vec<usize>,
}

/// The answers to the calls of a response.
#[derive(Default)]
pub(crate) struct AgentTurnResult {
    pub(crate) answers: SubTurnAnswers,
    /// The positions of the calls that would give the agent's final answer, in call order. Some may have been revoked.
    pub(crate) completion_positions: Vec<usize>,
}

impl<'k> StreamingResponse<'k> {
    /// Creates a response before any of it has been received.
    pub(crate) fn new(
        api: Api,
        (model, mask): (&str, &Arc<Mask>),
        turn_number: usize,
        toolset: &'k AgentToolset,
        scope: &Arc<AgentScope>,
        dispatcher: &DispatcherHandle,
    ) -> Self {
        let (sender, arrivals) = mpsc::unbounded_channel();
        Self {
            scope: Arc::clone(scope),
            dispatcher: dispatcher.clone(),
            turn_number,
            model: model.to_owned(),
            mask: Arc::clone(mask),
            is_accepted: false,
            assembly: ResponseAssembler::new(api, turn_number),
            calls: Some(CallFeeder {
                turn_number,
                parent: Some(Arc::clone(&dispatcher.call)),
                admission: toolset.stream_admission(),
                sender,
            }),
            toolset,
            unopened_arrivals: Some(arrivals),
            answers: None,
            origin: TurnOrigin::default(),
            completion_positions: Vec::new(),
        }
    }

    /// Processes the next bytes, without dispatching any calls.
    ///
    /// # Errors
    /// The API's error, an invalid event, or more calls than a response may have.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), ResponseError> {
        self.assembly.push(bytes)?;
        check_call_count(self.assembly.calls_started())
    }

    /// Reports the inputs that are arriving, and dispatches the calls that may start by now.
    pub(crate) fn dispatch_ready(&mut self) {
        self.feed_events();
        self.send_ready();
    }

    /// Returns whether calls have started, so that the request can't be repeated.
    pub(crate) fn has_open_turn(&self) -> bool {
        self.answers.is_some()
    }

    /// As [`ResponseAssembler::is_complete`].
    pub(crate) fn is_complete(&self) -> bool {
        self.assembly.is_complete()
    }

    /// As [`ResponseAssembler::is_finished`].
    pub(crate) fn is_over(&self) -> bool {
        self.assembly.is_finished()
    }

    /// As [`ResponseAssembler::finish`].
    pub(crate) fn body(&mut self) -> Result<Option<String>, ResponseError> {
        self.assembly.finish()
    }

    /// Returns the text received so far.
    pub(crate) fn text(&self) -> String {
        self.assembly.text()
    }

    /// Marks the response as accepted.
    pub(crate) fn accept(&mut self) {
        self.is_accepted = true;
    }

    /// Counts the usage that was reported for an aborted response, regardless of what aborted it.
    fn record_aborted(&self) {
        if self.is_accepted {
            return;
        }
        if let Some((model, usage)) = self.assembly.usage_so_far() {
            let model = model.map_or_else(
                || self.model.clone(),
                |model| mask_model_name(&model, &self.mask),
            );
            let price = self.toolset.tools.prices.for_model(&model);
            self.scope
                .budget_meter
                .record_aborted(&model, usage.into(), price);
            self.dispatcher.record_aborted_usage(model, usage.into());
        }
    }

    /// Dispatches the remaining calls of the complete response and returns the answers to all of them. Returns `None` if
    /// no call had started.
    pub(crate) async fn finish(&mut self) -> Option<AgentTurnResult> {
        if !self.has_open_turn() {
            return None;
        }
        self.assembly.end_message();
        self.dispatch_ready();
        Some(AgentTurnResult {
            answers: self.wait_for_answers().await.unwrap_or_default(),
            completion_positions: mem::take(&mut self.completion_positions),
        })
    }

    /// Skips the waiting calls for this reason and waits until the running ones have ended. Returns the first doubt
    /// among them.
    pub(crate) async fn abort(&mut self, cause: NotExecutedCause) -> Option<DoubtCause> {
        self.skip_waiting(cause);
        self.wait_for_answers().await?.doubt
    }

    async fn wait_for_answers(&mut self) -> Option<SubTurnAnswers> {
        self.calls = None;
        self.answers.take()?.await.ok()
    }

    fn skip_waiting(&mut self, cause: NotExecutedCause) {
        if !self.has_open_turn() {
            return;
        }
        // This is sent first, so that the calls that follow don't start.
        if let Some(calls) = &self.calls {
            calls.skip_rest(cause);
        }
        self.assembly.end_message();
        self.feed_events();
        if let Some(calls) = self.calls.as_mut().filter(|_| !self.assembly.is_complete()) {
            calls.abort(self.assembly.abort());
        }
        self.send_ready();
    }

    fn feed_events(&mut self) {
        while let Some(event) = self.assembly.next_event() {
            if let StreamEvent::CallStarted { origin, .. } = &event {
                self.origin.clone_from(origin);
            }
            match (event, &mut self.calls) {
                // The turn may not be open yet, so its agent's dispatcher reports this.
                (StreamEvent::PartialInput(part), _) => self.dispatcher.report_partial_input(part),
                (event, Some(calls)) => drop(calls.feed(event)),
                (_, None) => {}
            }
        }
    }

    fn send_ready(&mut self) {
        let Some(calls) = &mut self.calls else {
            return;
        };
        let mut starts_turn = false;
        calls.send_ready(|checked| {
            reject_out_of_scope(checked, &self.scope);
            starts_turn |= matches!(checked.verdict, Verdict::Accepted(_));
            if checked.verdict.is_completion() {
                self.completion_positions.push(checked.call.position);
            }
            None
        });
        if starts_turn && let Some(arrivals) = self.unopened_arrivals.take() {
            let (tools, scope) = (Arc::clone(&self.toolset.tools), Arc::clone(&self.scope));
            let mut origin = self.origin.clone();
            origin.model = origin.model.map(|name| mask_model_name(&name, &self.mask));
            self.dispatcher.any_call_started().store(true, Relaxed);
            let answers = self.dispatcher.run_sub_turn(
                (self.turn_number, Some(origin)),
                arrivals,
                tools,
                scope,
            );
            self.answers = Some(answers);
        }
    }
}

/// An agent that is canceled while its model's response is streaming drops this. The calls received until then are
/// still answered.
impl Drop for StreamingResponse<'_> {
    fn drop(&mut self) {
        self.record_aborted();
        self.skip_waiting(NotExecutedCause::Halted(HaltCause::AgentStopped));
    }
}

/// Saves the text of a streaming response to `text_so_far` when dropped, even if that is because the agent was
/// canceled.
pub(crate) struct TextGuard<'s, 'k> {
    pub(crate) response: &'s mut StreamingResponse<'k>,
    pub(crate) text_so_far: &'s mut String,
}

impl Drop for TextGuard<'_, '_> {
    fn drop(&mut self) {
        let text = self.response.text();
        if !text.is_empty() {
            *self.text_so_far = text;
        }
    }
}
