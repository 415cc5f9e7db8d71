//! The calls that clients wait for, by the numbers of their turns: each call is a turn of its own.

mod call_table;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use tokio::sync::mpsc;
use toolq_mcp::CallToolResult;
use toolq_mcp::server::{Elicitation, ElicitationForm, ServedCallId, ToolCall};

use crate::commands::serve::answer_content::{StructuredSource, call_result};
use crate::commands::serve::call_progress::CallProgress;
use crate::commands::serve::call_reviews::CallReview;
use crate::commands::serve::client_approver::QuestionDigest;
use crate::commands::serve::open_calls::call_table::{CallTable, ServedCall, ending};
use crate::commands::serve::served_client::{ReplyChannel, ServedClient};
use toolq_core::check::CallChecker;
use toolq_core::json::Input;
use toolq_core::types::{
    AnswerForm, Call, CallAnswer, CallKind, CallRef, Tool, ToolsChange, Traceparent, Turn,
    TurnOrigin,
};
use toolq_engine::{ConversationOutputs, TurnRequest};

/// The calls without an answer, and the channel that takes new ones to the engine.
pub(crate) struct OpenCalls {
    /// Read-locked from a call's check until it is sent, so that the engine gets the call before it gets new tools.
    checker: RwLock<CallChecker>,
    /// What the log names as the input of the calls.
    input: Option<String>,
    table: Mutex<CallTable>,
}

/// A call about which its client is to be asked.
pub(crate) struct AskedCall {
    pub(crate) client: Arc<ServedClient>,
    pub(crate) id: ServedCallId,
    pub(crate) reply: Arc<dyn ReplyChannel>,
    pub(crate) client_name: Option<String>,
    /// How the person at the client can be asked, if at all.
    pub(crate) form: Option<ElicitationForm>,
    /// What the person said when the client made this call before.
    pub(crate) review: Option<CallReview>,
}

impl OpenCalls {
    /// Calls are checked by `checker` and sent to `turns`. `input` is what the log names as their input.
    pub(crate) fn new(
        checker: CallChecker,
        input: Option<String>,
        turns: mpsc::UnboundedSender<TurnRequest>,
    ) -> Self {
        Self {
            checker: RwLock::new(checker),
            input,
            table: Mutex::new(CallTable::new(turns)),
        }
    }

    /// Checks a call and passes it on. `outputs` are those of the client's calls that it can read.
    ///
    /// # Errors
    /// The answer to a call that isn't even tried.
    pub(crate) fn begin(
        &self,
        client: &Arc<ServedClient>,
        call: &ToolCall,
        (reply, outputs): (&Arc<dyn ReplyChannel>, Option<&ConversationOutputs>),
    ) -> Result<(), CallToolResult> {
        let checker = self.checker.read().unwrap_or_else(PoisonError::into_inner);
        let tool = checker.tool(&call.name);
        let open = ServedCall {
            client: Arc::clone(client),
            id: call.call,
            reply: Arc::clone(reply),
            wants_progress: call.wants_progress,
            structured: structured_source(call, tool.map(|tool| &**tool)),
            progress: CallProgress::default(),
            client_name: call.client_name.clone(),
            form: call
                .elicitation
                .filter(|form| *form == ElicitationForm::Result || reply.takes_questions()),
            review: None,
            question: None,
        };
        let number = self.lock().insert(open, call.input_response.clone())?;
        let origin = TurnOrigin {
            input: self.input.clone(),
            message_id: Some(call.request_id.trim_matches('"').to_owned()),
            model: None,
            traceparent: call
                .trace
                .as_ref()
                .and_then(|(parent, state)| Traceparent::parse(parent, state.as_deref())),
            ..TurnOrigin::default()
        };
        // Schemas take time, so the table isn't locked meanwhile.
        let turn = one_call_turn(number, call, origin.clone());
        let checked = checker.check_turn(turn);
        let mut table = self.lock();
        table.send(TurnRequest::Run {
            number,
            calls: checked,
            origin,
            outputs: outputs.cloned(),
        });
        if table.turns.is_none() {
            table.calls.remove(&number);
            return Err(ending());
        }
        Ok(())
    }

    /// Checks and runs the calls that come from now on with other definitions.
    pub(crate) fn change_tools(&self, change: ToolsChange) {
        let mut checker = self.checker.write().unwrap_or_else(PoisonError::into_inner);
        *checker = CallChecker::new(Arc::clone(&change.tools));
        self.lock().send(TurnRequest::ChangeTools(Box::new(change)));
    }

    /// Stops a call that its client no longer waits for.
    pub(crate) fn cancel(&self, client: &Arc<ServedClient>, id: ServedCallId) {
        self.cancel_where(|call| call.id == id && Arc::ptr_eq(&call.client, client));
    }

    /// Stops all calls of a client.
    pub(crate) fn cancel_all(&self, client: &Arc<ServedClient>) {
        self.cancel_where(|call| Arc::ptr_eq(&call.client, client));
    }

    fn cancel_where(&self, is_canceled: impl Fn(&ServedCall) -> bool) {
        let mut table = self.lock();
        let calls = table.calls.iter();
        let canceled = calls.filter_map(|(turn, call)| is_canceled(call).then_some(*turn));
        for turn in canceled.collect::<Vec<_>>() {
            table.calls.remove(&turn);
            table.send(TurnRequest::Cancel(turn));
        }
    }

    /// Takes no more calls, so that the engine ends with those that are open.
    pub(crate) fn close(&self) {
        self.lock().turns = None;
    }

    /// Returns whether a client has calls without an answer.
    pub(crate) fn has_calls_of(&self, client: &Arc<ServedClient>) -> bool {
        let table = self.lock();
        let mut calls = table.calls.values();
        calls.any(|call| Arc::ptr_eq(&call.client, client))
    }

    /// Returns the call of a turn, for a question about it. What a person has said already is returned once.
    pub(crate) fn asked_call(&self, turn: usize) -> Option<AskedCall> {
        let mut table = self.lock();
        let call = table.calls.get_mut(&turn)?;
        Some(AskedCall {
            client: Arc::clone(&call.client),
            id: call.id,
            reply: Arc::clone(&call.reply),
            client_name: call.client_name.clone(),
            form: call.form,
            review: call.review.take(),
        })
    }

    /// Answers the call of a turn with a question as soon as the call has ended.
    pub(crate) fn require_input(&self, turn: usize, question: Elicitation, digest: QuestionDigest) {
        let mut table = self.lock();
        let CallTable { calls, reviews, .. } = &mut *table;
        if let Some(call) = calls.get_mut(&turn) {
            let identity = call.client.identity.clone();
            let state = reviews.add(identity, digest, Instant::now());
            call.question = state.map(|state| (question, state));
        }
    }

    /// Answers the call of a turn. Returns whether its client got the answer.
    pub(crate) fn answer(&self, turn: usize, answer: &CallAnswer) -> bool {
        let Some(call) = self.lock().calls.remove(&turn) else {
            return false;
        };
        let lines = if let Some((question, state)) = &call.question {
            call.client.require_input(call.id, question, state)
        } else {
            let result = call_result(answer, call.structured);
            call.client.answer_call(call.id, &result)
        };
        !lines.is_empty() && call.reply.send(lines)
    }

    /// Returns whether the client of a call wants to know how far it is. Calls of agents aren't the client's own.
    pub(crate) fn wants_progress(&self, call: &CallRef) -> bool {
        let table = self.lock();
        let open = table.calls.get(&call.turn);
        call.parent.is_none() && open.is_some_and(|open| open.wants_progress)
    }

    /// Tells clients that their calls are still running: many give up on a call that reports no progress.
    pub(crate) fn send_heartbeats(&self) {
        let mut table = self.lock();
        let calls = table.calls.values_mut();
        let reports: Vec<_> = calls.filter_map(|call| call.advance(None)).collect();
        drop(table);
        for report in reports {
            report.send(None);
        }
    }

    /// Tells the client of a call how far it is. Calls of agents aren't the client's own.
    pub(crate) fn report_progress(
        &self,
        call: &CallRef,
        fraction: Option<f64>,
        message: Option<&str>,
    ) {
        if call.parent.is_some() {
            return;
        }
        let mut table = self.lock();
        let open = table.calls.get_mut(&call.turn);
        let report = open.and_then(|open| open.advance(fraction));
        drop(table);
        if let Some(report) = report {
            report.send(message);
        }
    }

    fn lock(&self) -> MutexGuard<'_, CallTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn structured_source(call: &ToolCall, tool: Option<&Tool>) -> StructuredSource {
    let has_own_schema = tool.is_some_and(|tool| tool.output_schema.is_some());
    match (call.expects_structured_content, has_own_schema) {
        (false, _) => StructuredSource::None,
        (true, true) => StructuredSource::Text,
        (true, false) => StructuredSource::Server,
    }
}

fn one_call_turn(number: usize, call: &ToolCall, origin: TurnOrigin) -> Turn {
    let call = Call {
        turn: number,
        position: 0,
        id: format!("call_{number}"),
        has_number_id: false,
        kind: CallKind::Function,
        name: call.name.as_str().into(),
        input: Input::parse(call.arguments.get()).map_err(Box::new),
        parent: None,
    };
    Turn {
        origin,
        ..Turn::of_calls(number, vec![call], AnswerForm::Block)
    }
}
