//! The connection to the client, seen from stdin: its calls come in, are checked, and become turns.

use std::fs::File;
use std::sync::Mutex;

use tokio::sync::mpsc;
use toolq_mcp::server::{ServerEvent, ToolCall};
use toolq_mcp::{Frame, LineFramer};

use crate::commands::serve::answer_content::refusal;
use crate::commands::serve::client_connection::{ClientConnection, lock};
use crate::commands::serve::client_output::ClientOutput;
use crate::input::ChunkReader;
use crate::output::{CommandError, Exit, StderrWriter};
use toolq_core::check::CallChecker;
use toolq_core::json::Input;
use toolq_core::types::{AnswerForm, Call, ResponseEnding, Turn, TurnOrigin};
use toolq_engine::{RunControl, TurnRequest};

/// The longest line that a client may send.
const MAX_LINE_BYTES: usize = 64 << 20;
/// How many calls may be open at once. A client that makes more is told so, rather than taking all memory.
const MAX_OPEN_CALLS: usize = 256;

/// Reads the client's messages.
pub(crate) struct ClientRequests<'c> {
    reader: ChunkReader,
    framer: LineFramer,
    connection: &'c Mutex<ClientConnection>,
    checker: &'c CallChecker,
    stderr: &'c StderrWriter,
    /// `None` once no more calls come.
    turns: Option<mpsc::UnboundedSender<TurnRequest>>,
    has_warned: bool,
}

impl<'c> ClientRequests<'c> {
    pub(crate) fn new(
        input: File,
        connection: &'c Mutex<ClientConnection>,
        checker: &'c CallChecker,
        stderr: &'c StderrWriter,
        turns: mpsc::UnboundedSender<TurnRequest>,
    ) -> Self {
        Self {
            reader: ChunkReader::new(Vec::new(), input),
            framer: LineFramer::new(MAX_LINE_BYTES),
            connection,
            checker,
            stderr,
            turns: Some(turns),
            has_warned: false,
        }
    }

    /// Handles messages until the client closes stdin, or the run is stopped.
    ///
    /// # Errors
    /// stdin can't be read.
    pub(crate) async fn forward(
        &mut self,
        control: &RunControl,
        output: &ClientOutput,
    ) -> Result<(), CommandError> {
        self.reader
            .read_in_background()
            .map_err(CommandError::usage)?;
        loop {
            let chunk = tokio::select! {
                biased;
                () = control.wait_for_external_halt() => return Ok(()),
                chunk = async { output.wait_for_room().await; self.reader.next().await } => chunk,
            };
            let bytes = chunk.map_err(|error| {
                let message = format!("failed to read the client's messages: {error}");
                CommandError::new(Exit::Incomplete, message)
            })?;
            if bytes.is_empty() {
                return Ok(());
            }
            self.handle_bytes(&bytes);
        }
    }

    /// Lets the calls end: no more come.
    pub(crate) fn close(&mut self) {
        self.turns = None;
        let noise = lock(self.connection).protocol.noise_lines();
        if noise > 1 {
            let note = format!("{noise} lines from the client were no messages");
            self.stderr.print_note(&note);
        }
    }

    fn handle_bytes(&mut self, bytes: &[u8]) {
        let mut events = Vec::new();
        let mut connection = lock(self.connection);
        self.framer.push(bytes, |frame| match frame {
            Frame::Line(line) => events.extend(connection.protocol.receive(line)),
            Frame::TooLong { start, .. } => connection.protocol.refuse_long_line(start),
        });
        let has_noise = connection.protocol.noise_lines() > 0;
        drop(connection);
        if has_noise && !self.has_warned {
            self.has_warned = true;
            self.stderr
                .print_warning("a line from the client is no JSON-RPC message; it gets no answer");
        }
        for event in events {
            match event {
                ServerEvent::CallTool(call) => self.begin_call(&call),
                ServerEvent::CancelCall { call, .. } => {
                    let turn = lock(self.connection).forget_call(call);
                    self.send(turn.map(TurnRequest::Cancel));
                }
            }
        }
        lock(self.connection).send_output();
    }

    /// Checks a call and passes it on.
    fn begin_call(&mut self, call: &ToolCall) {
        let mut connection = lock(self.connection);
        if connection.open_calls() >= MAX_OPEN_CALLS {
            let text =
                format!("Not executed: {MAX_OPEN_CALLS} calls are open. Wait for one of them.");
            return connection.protocol.answer_call(call.call, &refusal(text));
        }
        let tool = self.checker.tool(&call.name);
        let is_json = tool.is_some_and(|tool| tool.output_schema.is_some());
        let number = connection.begin_turn(call, is_json);
        drop(connection);
        let origin = TurnOrigin {
            input: Some("-".to_owned()),
            message_id: Some(call.request_id.trim_matches('"').to_owned()),
            model: None,
        };
        let turn = one_call_turn(number, call, origin.clone());
        for call in self.checker.check_turn(turn) {
            let origin = origin.clone();
            let call = Box::new(call);
            self.send(Some(TurnRequest::Run { call, origin }));
        }
    }

    fn send(&self, request: Option<TurnRequest>) {
        if let (Some(turns), Some(request)) = (&self.turns, request) {
            // The receiver is only gone once the run has ended.
            let _ = turns.send(request);
        }
    }
}

fn one_call_turn(number: usize, call: &ToolCall, origin: TurnOrigin) -> Turn {
    Turn {
        number,
        calls: vec![Call {
            turn: number,
            position: 0,
            id: format!("call_{number}"),
            name: call.name.clone(),
            input: Input::parse(call.arguments.get()),
            parent: None,
        }],
        answered_count: 0,
        answer_form: AnswerForm::Block,
        ending: ResponseEnding::Complete,
        started_positions: Vec::new(),
        in_doubt_positions: Vec::new(),
        origin,
    }
}
