//! A client, whatever it is connected by: its side of the protocol, what its messages lead to, and what brings them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::output::CommandError;
use toolq_core::tools_file::OUTPUT_READER;
use toolq_engine::{ConversationOutputs, RunControl};
use toolq_mcp::server::{
    Elicitation, ElicitationForm, ElicitationReply, QuestionId, ServedCallId, ServerEvent,
    ServerSession, ToolCall,
};
use toolq_mcp::{CallToolResult, ProtocolVersion};

/// How many calls may be open at once on stdin and stdout, where there is only one client.
const MAX_OPEN_CALLS_OF_PIPE: usize = 256;
/// How many calls of one client may be open at once where there are others.
const MAX_OPEN_CALLS_OF_ONE: usize = 64;

/// Whose calls count together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientIdentity {
    /// The client on stdin and stdout.
    Pipe,
    /// A session of the legacy era over HTTP.
    Session(String),
    /// In the modern era, requests have no session. Those from the same address and with the same client name count as one
    /// client.
    Address {
        ip: IpAddr,
        client_name: Option<String>,
    },
}

/// Takes the messages that the client gets about one of its requests.
pub(crate) trait ReplyChannel: Send + Sync {
    /// Sends whole lines, without waiting. Returns whether the client is still there to read them.
    fn send(&self, lines: Vec<u8>) -> bool;

    /// Returns whether requests of the server reach the client, too.
    fn takes_questions(&self) -> bool;

    /// Returns whether the client is still there to read what is sent.
    fn is_open(&self) -> bool;

    /// Returns whether to leave out what the client can do without, because too much output is already waiting for it.
    fn is_full(&self) -> bool;
}

/// A client of this server.
pub(crate) struct ServedClient {
    pub(crate) identity: ClientIdentity,
    /// The outputs of its calls. `None` if the next call can't be known to be of the same client.
    outputs: Option<ConversationOutputs>,
    protocol: Mutex<ServerSession>,
    /// Who waits for the replies to questions.
    questions: Mutex<HashMap<QuestionId, oneshot::Sender<ElicitationReply>>>,
}

/// A call, as its client knows it.
#[derive(Clone)]
pub(crate) struct ClientCall {
    pub(crate) client: Arc<ServedClient>,
    pub(crate) id: ServedCallId,
    pub(crate) reply: Arc<dyn ReplyChannel>,
    pub(crate) client_name: Option<String>,
    /// How the person at the client can be asked, if at all.
    pub(crate) form: Option<ElicitationForm>,
}

/// How far a call is, and of how much, if that is known.
pub(crate) type ProgressNumbers = (f64, Option<f64>);

impl ClientIdentity {
    /// Returns how many of its calls may be open at once.
    pub(crate) fn max_open_calls(&self) -> usize {
        match self {
            Self::Pipe => MAX_OPEN_CALLS_OF_PIPE,
            Self::Session(_) | Self::Address { .. } => MAX_OPEN_CALLS_OF_ONE,
        }
    }
}

impl ServedClient {
    pub(crate) fn new(identity: ClientIdentity, protocol: ServerSession) -> Self {
        let is_told_apart = !matches!(identity, ClientIdentity::Address { .. });
        Self {
            outputs: is_told_apart.then(ConversationOutputs::default),
            identity,
            protocol: Mutex::new(protocol),
            questions: Mutex::default(),
        }
    }

    /// Lets `receive` hand messages to the protocol, has the calls that they ask for begun and canceled, and sends what there is
    /// to say at once to `reply`. `begin` also gets the outputs that the call may read, and returns the answer to a call that it
    /// refuses.
    pub(crate) fn receive(
        &self,
        reply: &dyn ReplyChannel,
        receive: impl FnOnce(&mut ServerSession) -> Vec<ServerEvent>,
        mut begin: impl FnMut(&ToolCall, Option<&ConversationOutputs>) -> Result<(), CallToolResult>,
        mut cancel: impl FnMut(ServedCallId),
    ) {
        // Locked until the calls have begun, so that nothing else can cancel them before.
        let mut protocol = self.protocol.lock();
        for event in receive(&mut protocol) {
            match event {
                ServerEvent::CallTool(call) => {
                    // A client that can't call the reader mustn't be sent there.
                    let outputs = self.outputs.as_ref();
                    let outputs = outputs.filter(|_| protocol.lists_tool(OUTPUT_READER));
                    if let Err(refusal) = begin(&call, outputs) {
                        protocol.answer_call(call.call, &refusal);
                    }
                }
                ServerEvent::CancelCall { call, .. } => cancel(call),
                ServerEvent::AnswerQuestion { question, reply } => {
                    if let Some(waiting) = self.questions.lock().remove(&question) {
                        // If the question was withdrawn, nothing awaits the reply.
                        let _ = waiting.send(reply);
                    }
                }
            }
        }
        let output = protocol.take_output();
        if !output.is_empty() {
            reply.send(output);
        }
    }

    /// Cancels the calls of a client that is gone, while it can't begin others.
    pub(crate) fn leave(&self, cancel_all: impl FnOnce()) {
        let _protocol = self.protocol.lock();
        cancel_all();
    }

    /// Returns the answer to a call, or nothing if it was canceled.
    pub(crate) fn answer_call(&self, call: ServedCallId, result: &CallToolResult) -> Vec<u8> {
        let mut protocol = self.protocol.lock();
        protocol.answer_call(call, result);
        protocol.take_output()
    }

    /// Returns a question about a call, and its message. The reply goes to `waiting`. `None` if the call is over.
    pub(crate) fn ask(
        &self,
        call: ServedCallId,
        question: &Elicitation,
        waiting: oneshot::Sender<ElicitationReply>,
    ) -> Option<(QuestionId, Vec<u8>)> {
        let mut protocol = self.protocol.lock();
        let id = protocol.ask(call, question)?;
        self.questions.lock().insert(id, waiting);
        Some((id, protocol.take_output()))
    }

    /// Returns the message that takes back a question, or nothing if it has its reply.
    pub(crate) fn withdraw_question(&self, question: QuestionId) -> Vec<u8> {
        let mut protocol = self.protocol.lock();
        self.questions.lock().remove(&question);
        protocol.withdraw_question(question);
        protocol.take_output()
    }

    /// Returns a question as the answer to a call, or nothing if the call was canceled.
    pub(crate) fn require_input(
        &self,
        call: ServedCallId,
        question: &Elicitation,
        state: &str,
    ) -> Vec<u8> {
        let mut protocol = self.protocol.lock();
        protocol.require_input(call, question, state);
        protocol.take_output()
    }

    /// Returns a message that says how far a call is.
    pub(crate) fn report_progress(
        &self,
        call: ServedCallId,
        (progress, total): ProgressNumbers,
        message: Option<&str>,
    ) -> Vec<u8> {
        let mut protocol = self.protocol.lock();
        protocol.report_progress(call, progress, total, message);
        protocol.take_output()
    }

    /// Returns how many lines of the client weren't messages.
    pub(crate) fn noise_lines(&self) -> u64 {
        self.protocol.lock().noise_lines()
    }

    /// Returns the version that `initialize` agreed on.
    pub(crate) fn legacy_version(&self) -> Option<ProtocolVersion> {
        self.protocol.lock().legacy_version()
    }

    /// Returns whether the client takes requests of the server that ask a person.
    pub(crate) fn takes_questions(&self) -> bool {
        self.protocol.lock().takes_questions()
    }
}

impl ClientCall {
    pub(crate) fn report_progress(&self, numbers: ProgressNumbers, message: Option<&str>) {
        let lines = self.client.report_progress(self.id, numbers, message);
        if !lines.is_empty() {
            self.reply.send(lines);
        }
    }
}

/// The random bytes of an id.
const ID_BYTES: usize = 16;

/// Returns an id that can't be guessed, or `None` if the system has no random numbers.
pub(crate) fn new_random_id() -> Option<String> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// Brings the messages of clients in, and the answers out.
pub(crate) trait ClientTransport {
    /// Handles messages until no more can come, or the run is stopped.
    ///
    /// # Errors
    /// Messages can't be read.
    fn receive(&mut self, control: &RunControl) -> impl Future<Output = Result<(), CommandError>>;

    /// Says on stderr what was odd, once no more messages come.
    fn report_end(&self);

    /// Waits until clients have read their last answers, but not for long.
    ///
    /// # Errors
    /// A client doesn't read them.
    fn finish(self) -> impl Future<Output = Result<(), CommandError>>;
}
