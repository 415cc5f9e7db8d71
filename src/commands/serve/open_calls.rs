//! The calls that clients wait for, by the numbers of their turns: each call is a turn of its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::commands::serve::answer_content::{
    CallProgress, StructuredSource, call_result, refusal,
};
use crate::commands::serve::client_questions::{
    CallReview, CallReviews, ClientQuestion, QuestionDigest, question, to_approval,
};
use crate::commands::serve::served_client::{
    ClientCall, ProgressNumbers, ReplyChannel, ServedClient,
};
use redact::Mask;
use toolq_core::check::CallChecker;
use toolq_core::json::Input;
use toolq_core::types::{
    AnswerForm, ApprovalRequest, Call, CallAnswer, CallKind, CallRef, Tool, Turn, TurnOrigin,
};
use toolq_engine::{
    ApprovalFuture, ApprovalPrompt, ApprovalReply, ConversationOutputs, TurnRequest,
};
use toolq_mcp::CallToolResult;
use toolq_mcp::server::{
    Elicitation, ElicitationForm, InputResponse, ServerEvent, ServerSession, ToolCall,
};

/// The calls without an answer, and the channel that takes new ones to the engine. As an [`ApprovalPrompt`], it also asks
/// clients for approvals.
#[derive(derive_more::Debug)]
#[debug("OpenCalls")]
pub(crate) struct OpenCalls {
    checker: CallChecker,
    pub(crate) mask: Arc<Mask>,
    /// What the log names as the input of the calls.
    input: Option<String>,
    table: Mutex<CallTable>,
}

impl OpenCalls {
    /// Calls are checked by `checker` and sent to `turns`. `mask` is for what clients read. `input` is what the log names as
    /// the input of the calls.
    pub(crate) fn new(
        checker: CallChecker,
        mask: Arc<Mask>,
        input: Option<String>,
        turns: mpsc::UnboundedSender<TurnRequest>,
    ) -> Self {
        Self {
            checker,
            mask,
            input,
            table: Mutex::new(CallTable::new(turns)),
        }
    }

    /// Lets `receive` hand messages of a client to its protocol, and does what they ask for. Answers and progress go to `reply`.
    pub(crate) fn take_messages(
        &self,
        client: &Arc<ServedClient>,
        reply: &Arc<dyn ReplyChannel>,
        receive: impl FnOnce(&mut ServerSession) -> Vec<ServerEvent>,
    ) {
        client.receive(
            &**reply,
            receive,
            |call, outputs| self.begin(client, call, (reply, outputs)),
            |call| self.cancel_where(|open| open.id == call && Arc::ptr_eq(&open.client, client)),
        );
    }

    /// Ends the calls of a client that is gone.
    pub(crate) fn end_client(&self, client: &Arc<ServedClient>) {
        client.leave(|| self.cancel_where(|call| Arc::ptr_eq(&call.client, client)));
    }

    /// Checks a call and passes it on. `outputs` are those of the client's calls that it can read.
    ///
    /// # Errors
    /// The answer to a call that isn't even tried.
    fn begin(
        &self,
        client: &Arc<ServedClient>,
        call: &ToolCall,
        (reply, outputs): (&Arc<dyn ReplyChannel>, Option<&ConversationOutputs>),
    ) -> Result<(), CallToolResult> {
        let tool = self.checker.tool(&call.name);
        let known = ClientCall {
            client: Arc::clone(client),
            id: call.call,
            reply: Arc::clone(reply),
            client_name: call.client_name.clone(),
            form: call
                .elicitation
                .filter(|form| *form == ElicitationForm::Result || reply.takes_questions()),
        };
        let open = ServedCall {
            known,
            wants_progress: call.wants_progress,
            structured: structured_source(call, tool.map(|tool| &**tool)),
            progress: CallProgress::default(),
            review: None,
            question: None,
        };
        let number = self
            .table
            .lock()
            .insert(open, call.input_response.clone())?;
        let origin = TurnOrigin {
            input: self.input.clone(),
            message_id: Some(call.request_id.trim_matches('"').to_owned()),
            model: None,
            ..TurnOrigin::default()
        };
        // Schemas take time, so the table isn't locked meanwhile.
        let turn = one_call_turn(number, call, origin.clone());
        let checked = self.checker.check_turn(turn);
        let mut table = self.table.lock();
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

    /// Stops calls that their client no longer waits for.
    fn cancel_where(&self, is_canceled: impl Fn(&ClientCall) -> bool) {
        let mut table = self.table.lock();
        let calls = table.calls.iter();
        let canceled = calls.filter_map(|(turn, call)| is_canceled(&call.known).then_some(*turn));
        for turn in canceled.collect::<Vec<_>>() {
            table.calls.remove(&turn);
            table.send(TurnRequest::Cancel(turn));
        }
    }

    /// Takes no more calls, so that the engine ends with those that are open.
    pub(crate) fn close(&self) {
        self.table.lock().turns = None;
    }

    /// Returns whether a client has calls without an answer.
    pub(crate) fn has_calls_of(&self, client: &Arc<ServedClient>) -> bool {
        let table = self.table.lock();
        let mut calls = table.calls.values();
        calls.any(|call| Arc::ptr_eq(&call.known.client, client))
    }

    async fn ask_client(&self, request: &ApprovalRequest) -> ApprovalReply {
        let turn = request.call.outermost().turn;
        let open = self.table.lock().calls.get_mut(&turn).map(|open| {
            // What the person said when the client made the call before counts once.
            (open.known.clone(), open.review.take())
        });
        let Some((asked, review)) = open else {
            return ApprovalReply::Unavailable;
        };
        let digest = QuestionDigest::new(request);
        let is_own_call = request.call.parent.is_none();
        if let Some(review) = review.filter(|_| is_own_call)
            && review.digest == digest
        {
            return to_approval(review.reply, asked.client_name);
        }
        let question = question(request, &self.mask);
        match asked.form {
            Some(ElicitationForm::Request) => {
                let client_name = asked.client_name.clone();
                let reply = ClientQuestion::ask(asked, &question).await;
                to_approval(reply, client_name)
            }
            // A call that an agent makes can't be made again by the client.
            Some(ElicitationForm::Result) if is_own_call => {
                self.require_input(turn, question, digest);
                ApprovalReply::Unavailable
            }
            Some(ElicitationForm::Result) | None => ApprovalReply::Unavailable,
        }
    }

    /// Answers the call of a turn with a question as soon as the call has ended.
    fn require_input(&self, turn: usize, question: Elicitation, digest: QuestionDigest) {
        let mut table = self.table.lock();
        let CallTable { calls, reviews, .. } = &mut *table;
        if let Some(call) = calls.get_mut(&turn) {
            let identity = call.known.client.identity.clone();
            let state = reviews.add(identity, digest, Instant::now());
            call.question = state.map(|state| (question, state));
        }
    }

    /// Answers the call of a turn. Returns whether its client got the answer.
    pub(crate) fn answer(&self, turn: usize, answer: &CallAnswer) -> bool {
        let Some(call) = self.table.lock().calls.remove(&turn) else {
            return false;
        };
        let ClientCall {
            client, id, reply, ..
        } = call.known;
        let lines = if let Some((question, state)) = &call.question {
            client.require_input(id, question, state)
        } else {
            client.answer_call(id, &call_result(answer, call.structured))
        };
        !lines.is_empty() && reply.send(lines)
    }

    /// Returns whether the client of a call wants to know how far it is. Calls of agents aren't the client's own.
    pub(crate) fn wants_progress(&self, call: &CallRef) -> bool {
        let table = self.table.lock();
        let open = table.calls.get(&call.turn);
        call.parent.is_none() && open.is_some_and(|open| open.wants_progress)
    }

    /// Tells clients that their calls are still running: many give up on a call that reports no progress.
    pub(crate) fn send_heartbeats(&self) {
        let mut table = self.table.lock();
        let calls = table.calls.values_mut();
        let reports: Vec<_> = calls.filter_map(|call| call.advance(None)).collect();
        drop(table);
        for (call, numbers) in reports {
            call.report_progress(numbers, None);
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
        let mut table = self.table.lock();
        let open = table.calls.get_mut(&call.turn);
        let report = open.and_then(|open| open.advance(fraction));
        drop(table);
        if let Some((call, numbers)) = report {
            call.report_progress(numbers, message);
        }
    }
}

impl ApprovalPrompt for OpenCalls {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> ApprovalFuture<'a> {
        Box::pin(self.ask_client(request))
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

// The calls without an answer: how many there may be, and how far each is.

/// How many calls of all clients may be open at once. Each holds its arguments.
const MAX_OPEN_CALLS: usize = 1024;

/// The open calls by the numbers of their turns, and the way of new ones to the engine.
struct CallTable {
    calls: HashMap<usize, ServedCall>,
    next_turn: usize,
    reviews: CallReviews,
    /// `None` once no more calls are taken.
    turns: Option<mpsc::UnboundedSender<TurnRequest>>,
}

/// A call without an answer.
struct ServedCall {
    known: ClientCall,
    wants_progress: bool,
    structured: StructuredSource,
    progress: CallProgress,
    /// What the person said when the client made this call before.
    review: Option<CallReview>,
    /// What the call is answered with instead of its result, and the state that comes back with the reply.
    question: Option<(Elicitation, String)>,
}

impl CallTable {
    pub(super) fn new(turns: mpsc::UnboundedSender<TurnRequest>) -> Self {
        Self {
            calls: HashMap::new(),
            next_turn: 0,
            reviews: CallReviews::default(),
            turns: Some(turns),
        }
    }

    /// Gives a call the number of its turn.
    ///
    /// # Errors
    /// The answer to a call beyond what the client, or all of them, may have.
    pub(super) fn insert(
        &mut self,
        mut call: ServedCall,
        response: Option<InputResponse>,
    ) -> Result<usize, CallToolResult> {
        if self.turns.is_none() {
            return Err(ending());
        }
        let identity = &call.known.client.identity;
        let most = identity.max_open_calls();
        let calls = self.calls.values();
        if calls
            .filter(|open| open.known.client.identity == *identity)
            .count()
            >= most
        {
            let text = format!("Not executed: {most} calls are open. Wait for one of them.");
            return Err(refusal(text));
        }
        if self.calls.len() >= MAX_OPEN_CALLS {
            let text = format!(
                "Not executed: {MAX_OPEN_CALLS} calls of all clients are open. Try again later."
            );
            return Err(refusal(text));
        }
        call.review =
            response.and_then(|response| self.reviews.take(response, identity, Instant::now()));
        let turn = self.next_turn;
        self.next_turn += 1;
        self.calls.insert(turn, call);
        Ok(turn)
    }

    pub(super) fn send(&self, request: TurnRequest) {
        if let Some(turns) = &self.turns {
            // The receiver is only gone once the run has ended.
            let _ = turns.send(request);
        }
    }
}

impl ServedCall {
    /// Returns how far the call is, if the client wants to know it and reads what it gets.
    fn advance(&mut self, fraction: Option<f64>) -> Option<(ClientCall, ProgressNumbers)> {
        let is_told = self.wants_progress && !self.known.reply.is_full();
        is_told.then(|| (self.known.clone(), self.progress.advance(fraction)))
    }
}

/// The answer to a call that comes when the server is about to end.
pub(super) fn ending() -> CallToolResult {
    refusal("Not executed: the server is ending.".to_owned())
}
