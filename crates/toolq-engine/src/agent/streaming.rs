//! Dispatches tool calls while the model response is still streaming. Calls that may start early do so when their block
//! ends; the rest wait until the response is complete and recorded. The turn opens with the first call that starts.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::sync::{mpsc, oneshot};

use crate::agent::model_name::mask_model_name;
use crate::agent::scope::AgentScope;
use crate::agent::toolset::{AgentToolset, reject_out_of_scope};
use crate::dispatcher::{DispatcherHandle, SubTurnAnswers};
use redact::Mask;
use toolq_core::check::StreamAdmission;
use toolq_core::transcript::{ResponseAssembler, ResponseError, check_call_count};
use toolq_core::types::{
    Api, DoubtCause, HaltCause, NotExecutedCause, ResponseEnding, TurnArrival, Verdict,
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
    /// Decides which of its calls may start.
    admission: StreamAdmission<'k>,
    calls_started: usize,
    /// Arrivals that were released before the turn opened.
    ready: Vec<TurnArrival>,
    open_turn: Option<OpenTurn>,
    /// As in [`AgentTurnResult`].
    completion_positions: Vec<usize>,
}

/// The turn of a streaming response, which opens when the first call may start.
struct OpenTurn {
    sender: mpsc::UnboundedSender<TurnArrival>,
    answers: oneshot::Receiver<SubTurnAnswers>,
}

/// The answers to the calls of a response.
#[derive(Default)]
pub(crate) struct AgentTurnResult {
    pub(crate) answers: SubTurnAnswers,
    /// The positions of the calls that would give the agent's final answer, in call order. Some may have been revoked.
    pub(crate) completion_positions: Vec<usize>,
}

impl<'k> StreamingResponse<'k> {
    /// Creates a response of which nothing has been received yet.
    pub(crate) fn new(
        api: Api,
        (model, mask): (&str, &Arc<Mask>),
        turn_number: usize,
        toolset: &'k AgentToolset,
        scope: &Arc<AgentScope>,
        dispatcher: &DispatcherHandle,
    ) -> Self {
        Self {
            scope: Arc::clone(scope),
            dispatcher: dispatcher.clone(),
            turn_number,
            model: model.to_owned(),
            mask: Arc::clone(mask),
            is_accepted: false,
            assembly: ResponseAssembler::new(api),
            admission: toolset.stream_admission(),
            toolset,
            calls_started: 0,
            ready: Vec::new(),
            open_turn: None,
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
        for part in self.assembly.partial_calls(self.turn_number) {
            self.dispatcher.report_partial_input(part);
        }
        self.admit_new_calls();
        self.forward_admitted();
    }

    /// Returns whether calls have started, so that the request can't be repeated.
    pub(crate) fn has_open_turn(&self) -> bool {
        self.open_turn.is_some()
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

    /// Counts the usage that was reported for an aborted response, whatever aborted it.
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

    /// Dispatches the remaining calls of the complete response and returns the answers to all of them. `ending` is how the
    /// response ended. Returns `None` if no call had started.
    pub(crate) async fn finish(&mut self, ending: ResponseEnding) -> Option<AgentTurnResult> {
        if !self.has_open_turn() {
            return None;
        }
        self.dispatch_rest(ending);
        Some(AgentTurnResult {
            answers: self.wait_for_answers().await.unwrap_or_default(),
            completion_positions: mem::take(&mut self.completion_positions),
        })
    }

    /// Skips the waiting calls for this reason and waits until the running ones have ended. Returns the first doubt
    /// among them.
    pub(crate) async fn abort(
        &mut self,
        cause: NotExecutedCause,
        ending: ResponseEnding,
    ) -> Option<DoubtCause> {
        self.cancel_waiting(cause, ending);
        self.wait_for_answers().await?.doubt
    }

    async fn wait_for_answers(&mut self) -> Option<SubTurnAnswers> {
        let OpenTurn { sender, answers } = self.open_turn.take()?;
        drop(sender);
        answers.await.ok()
    }

    fn cancel_waiting(&mut self, cause: NotExecutedCause, ending: ResponseEnding) {
        let Some(turn) = &self.open_turn else {
            return;
        };
        // This is sent first, so that none of the calls that follow starts.
        let _ = turn.sender.send(TurnArrival::RestSkipped(cause));
        if self.is_complete() {
            return self.dispatch_rest(ending);
        }
        self.admit_new_calls();
        let unfinished = self.assembly.abort(self.turn_number);
        self.admission.abort(unfinished);
        self.forward_admitted();
    }

    fn dispatch_rest(&mut self, ending: ResponseEnding) {
        self.admit_new_calls();
        self.admission.close(ending);
        self.forward_admitted();
    }

    fn admit_new_calls(&mut self) {
        while self.calls_started < self.assembly.calls_started() {
            self.calls_started += 1;
            self.admission.begin();
        }
        while let Some(call) = self.assembly.next_call(self.turn_number) {
            self.admission.complete(call);
        }
    }

    fn forward_admitted(&mut self) {
        let mut starts_turn = false;
        for mut arrival in self.admission.drain_ready() {
            if let TurnArrival::Call(checked) = &mut arrival {
                reject_out_of_scope(checked, &self.scope);
                checked.call.parent = Some(Arc::clone(&self.dispatcher.call));
                starts_turn |= matches!(checked.verdict, Verdict::Accepted(_));
                if checked.verdict.is_completion() {
                    self.completion_positions.push(checked.call.position);
                }
            }
            self.ready.push(arrival);
        }
        if starts_turn && self.open_turn.is_none() {
            self.open_turn = Some(self.start_turn());
        }
        if let Some(turn) = &self.open_turn {
            for arrival in mem::take(&mut self.ready) {
                // The dispatcher receives until this sender is dropped, so sending can't fail.
                let _ = turn.sender.send(arrival);
            }
        }
    }

    fn start_turn(&self) -> OpenTurn {
        let (sender, arrivals) = mpsc::unbounded_channel();
        let (tools, scope) = (Arc::clone(&self.toolset.tools), Arc::clone(&self.scope));
        self.dispatcher.any_call_started().store(true, Relaxed);
        let answers = self
            .dispatcher
            .run_sub_turn(self.turn_number, arrivals, tools, scope);
        OpenTurn { sender, answers }
    }
}

/// An agent that is canceled while its model's response is streaming drops this. The calls received by then are still
/// answered.
impl Drop for StreamingResponse<'_> {
    fn drop(&mut self) {
        self.record_aborted();
        self.cancel_waiting(
            NotExecutedCause::Halted(HaltCause::AgentStopped),
            ResponseEnding::Complete,
        );
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
