//! The client on stdin and stdout: a line is a message, and when stdin ends, the client has left.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::served_client::{
    ClientIdentity, ClientTransport, ReplyChannel, ServedClient,
};
use crate::input::ChunkReader;
use crate::output::{BackgroundWriter, CommandError, Exit, MAX_CLIENT_BYTES, StderrWriter};
use toolq_engine::RunControl;
use toolq_mcp::server::ServerSession;
use toolq_mcp::{Frame, LineFramer};

/// The longest line that a client may send.
const MAX_LINE_BYTES: usize = 64 << 20;

/// How long a client may take to read the last answers.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// Reads the client's messages.
pub(crate) struct PipeTransport<'c> {
    reader: ChunkReader,
    framer: LineFramer,
    client: Arc<ServedClient>,
    calls: Arc<OpenCalls>,
    output: BackgroundWriter,
    stderr: &'c StderrWriter,
    has_warned: bool,
}

impl<'c> PipeTransport<'c> {
    /// `protocol` is the side of the server in the connection.
    pub(crate) fn new(
        input: File,
        output: BackgroundWriter,
        protocol: ServerSession,
        calls: Arc<OpenCalls>,
        stderr: &'c StderrWriter,
    ) -> Self {
        Self {
            reader: ChunkReader::new(Vec::new(), input),
            framer: LineFramer::new(MAX_LINE_BYTES),
            client: Arc::new(ServedClient::new(ClientIdentity::Pipe, protocol)),
            calls,
            output,
            stderr,
            has_warned: false,
        }
    }

    fn handle_bytes(&mut self, bytes: &[u8]) {
        let (client, framer) = (&self.client, &mut self.framer);
        let reply: Arc<dyn ReplyChannel> = Arc::new(self.output.clone());
        self.calls.take_messages(client, &reply, |protocol| {
            let mut events = Vec::new();
            framer.push(bytes, |frame| match frame {
                Frame::Line(line) => events.extend(protocol.receive(line)),
                Frame::TooLong { start, .. } => events.extend(protocol.receive_too_long(start)),
            });
            events
        });
        if !self.has_warned && self.client.noise_lines() > 0 {
            self.has_warned = true;
            self.stderr
                .print_warning("a line from the client isn't a JSON-RPC message");
        }
    }
}

impl ClientTransport for PipeTransport<'_> {
    /// Handles messages until the client closes stdin, or the run is stopped.
    async fn receive(&mut self, control: &RunControl) -> Result<(), CommandError> {
        self.reader
            .read_in_background()
            .map_err(CommandError::usage)?;
        loop {
            let (reader, output) = (&mut self.reader, &self.output);
            let chunk = tokio::select! {
                biased;
                () = control.wait_for_external_halt() => return Ok(()),
                chunk = async { output.wait_until_at_most(MAX_CLIENT_BYTES).await; reader.next().await } => chunk,
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

    fn report_end(&self) {
        let noise = self.client.noise_lines();
        if noise > 1 {
            let note = format!("{noise} lines from the client weren't messages");
            self.stderr.print_note(&note);
        }
    }

    async fn finish(self) -> Result<(), CommandError> {
        let written = timeout(OUTPUT_GRACE, self.output.wait_until_at_most(0)).await;
        written.map_err(|_| CommandError::new(Exit::Output, "the client doesn't read its answers"))
    }
}

impl ReplyChannel for BackgroundWriter {
    fn send(&self, lines: Vec<u8>) -> bool {
        Self::send(self, lines);
        true
    }

    fn takes_questions(&self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }

    fn is_full(&self) -> bool {
        self.pending_bytes() > MAX_CLIENT_BYTES
    }
}
