//! The calls that the host runs, until it has sent their results.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::commands::run::control::message::{
    HostCallResult, HostMessage, LineId, MessageError, call_line, cancel_call_line,
};
use crate::commands::run::control::open_turns::OpenTurns;
use crate::input::ChunkReader;
use crate::output::{BackgroundWriter, MAX_CLIENT_BYTES};
use toolq_core::text::format_bytes;
use toolq_engine::{HostCall, HostFuture, HostReply, HostTools};
use toolq_mcp::{Frame, LineFramer};

/// The calls that the host runs.
#[derive(Debug)]
pub(super) struct HostCalls {
    turns: Arc<OpenTurns>,
    table: Mutex<HostCallTable>,
}

#[derive(Debug, Default)]
struct HostCallTable {
    /// By their numbers, which no two calls or attempts share.
    pending: BTreeMap<u64, PendingHostCall>,
    last_number: u64,
    /// The numbers of those that were given up, until their results come after all.
    given_up: BTreeSet<u64>,
    /// Whether the host sends nothing more.
    is_closed: bool,
}

/// A call that the host has been sent, and that has no result.
#[derive(Debug)]
struct PendingHostCall {
    turn: LineId,
    tool_use_id: String,
    waiting: oneshot::Sender<HostCallResult>,
}

impl HostCalls {
    pub(super) fn new(turns: &Arc<OpenTurns>) -> Self {
        Self {
            turns: Arc::clone(turns),
            table: Mutex::default(),
        }
    }

    /// Passes a result of the host on. One that crosses the line that gives its call up is dropped: an error would be about its turn,
    /// which goes on.
    ///
    /// # Errors
    /// No such call waits for a result.
    pub(super) fn deliver(&self, turn: &LineId, result: HostCallResult) -> Result<(), String> {
        let mut table = self.table.lock();
        if result
            .number
            .is_some_and(|number| table.given_up.remove(&number))
        {
            return Ok(());
        }
        let mut pending = table.pending.iter();
        let found = pending.find_map(|(at, call)| {
            let is_meant = result.number.is_none_or(|number| number == *at)
                && call.turn == *turn
                && call.tool_use_id == result.tool_use_id;
            is_meant.then_some(*at)
        });
        let Some(call) = found.and_then(|at| table.pending.remove(&at)) else {
            let id = result.tool_use_id;
            return Err(format!("no call {id} of this turn waits for a result"));
        };
        // One that is being given up takes nothing more.
        let _ = call.waiting.send(result);
        Ok(())
    }

    /// No more results come. The calls that wait for one end.
    pub(super) fn close(&self) {
        let mut table = self.table.lock();
        table.is_closed = true;
        table.pending.clear();
    }

    async fn run_call(&self, call: &HostCall) -> HostReply {
        let lost = |was_sent, why: &str| HostReply::Lost {
            was_sent,
            why: why.to_owned(),
        };
        let Some(turn) = self.turns.id_of(call.call.outermost().turn) else {
            return lost(false, "its turn has ended");
        };
        let Some(mut awaited) = self.send(call, turn) else {
            return lost(false, "it has closed its end of the pipe");
        };
        match (&mut awaited.result).await {
            Ok(HostCallResult {
                content, is_error, ..
            }) => HostReply::Done { content, is_error },
            Err(_) => lost(true, "it has closed its end of the pipe"),
        }
    }

    /// Sends a call to the host. Returns `None` if it is gone.
    fn send(&self, call: &HostCall, turn: LineId) -> Option<AwaitedCall<'_>> {
        let mut table = self.table.lock();
        if table.is_closed {
            return None;
        }
        let number = table.last_number + 1;
        let line = call_line(&turn, number, call).ok()?;
        table.last_number = number;
        let (waiting, result) = oneshot::channel();
        let pending = PendingHostCall {
            turn,
            tool_use_id: call.call.tool_use_id.clone(),
            waiting,
        };
        table.pending.insert(number, pending);
        // Before the lock is released, so that the host reads a call before it reads that it was given up.
        self.turns.send(line);
        Some(AwaitedCall {
            calls: self,
            number,
            result,
        })
    }

    /// Tells the host to cancel a call whose result is no longer awaited.
    fn give_up(&self, number: u64) {
        let mut table = self.table.lock();
        if let Some(call) = table.pending.remove(&number) {
            let line = cancel_call_line(&call.turn, number, &call.tool_use_id);
            self.turns.send(line);
            table.given_up.insert(number);
        }
    }
}

impl HostTools for HostCalls {
    fn run<'a>(&'a self, call: &'a HostCall) -> HostFuture<'a> {
        Box::pin(self.run_call(call))
    }
}

/// A call whose result is awaited. When dropped without one, it is abandoned.
struct AwaitedCall<'a> {
    calls: &'a HostCalls,
    number: u64,
    result: oneshot::Receiver<HostCallResult>,
}

impl Drop for AwaitedCall<'_> {
    fn drop(&mut self) {
        self.calls.give_up(self.number);
    }
}

// Reads the lines of the host.

/// A line, or what is wrong with it.
pub(super) type HostLine = Result<HostMessage, MessageError>;

/// The lines of the host, in their order.
pub(super) struct HostLines {
    reader: ChunkReader,
    framer: LineFramer,
    max_line_bytes: u64,
    /// Lines that were read and not returned yet.
    ready: VecDeque<HostLine>,
    is_at_end: bool,
}

impl HostLines {
    pub(super) fn new(input: File, max_line_bytes: u64) -> Self {
        Self {
            reader: ChunkReader::new(Vec::new(), input),
            framer: LineFramer::new(usize::try_from(max_line_bytes).unwrap_or(usize::MAX)),
            max_line_bytes,
            ready: VecDeque::new(),
            is_at_end: false,
        }
    }

    /// Blocks until the next line is there. Returns `None` at the end.
    ///
    /// # Errors
    /// Stdin can't be read.
    pub(super) fn next_blocking(&mut self) -> io::Result<Option<HostLine>> {
        while self.ready.is_empty() && !self.is_at_end {
            let bytes = self.reader.next_blocking()?;
            self.push(&bytes);
        }
        Ok(self.ready.pop_front())
    }

    /// Returns a line that [`next_blocking`](Self::next_blocking) returned, so that it comes again.
    pub(super) fn put_back(&mut self, line: HostLine) {
        self.ready.push_front(line);
    }

    /// Starts a thread that does the reading from now on, for [`next`](Self::next).
    ///
    /// # Errors
    /// The thread can't be started.
    pub(super) fn read_in_background(&mut self) -> io::Result<()> {
        self.reader.read_in_background()
    }

    /// Waits for the next line. While the host doesn't read what `output` has, nothing more is read. Returns `None` at the
    /// end. Cancel safe: dropping the future loses no line.
    ///
    /// # Errors
    /// Stdin can't be read.
    pub(super) async fn next(&mut self, output: &BackgroundWriter) -> io::Result<Option<HostLine>> {
        while self.ready.is_empty() && !self.is_at_end {
            output.wait_until_at_most(MAX_CLIENT_BYTES).await;
            let bytes = self.reader.next().await?;
            self.push(&bytes);
        }
        Ok(self.ready.pop_front())
    }

    /// Takes the next bytes. An empty slice means the end of the input.
    fn push(&mut self, bytes: &[u8]) {
        let (ready, max_line_bytes) = (&mut self.ready, self.max_line_bytes);
        let mut take = |frame: Frame<'_>| ready.extend(read_line(&frame, max_line_bytes));
        if bytes.is_empty() {
            self.is_at_end = true;
            std::mem::replace(&mut self.framer, LineFramer::new(0)).finish(&mut take);
        } else {
            self.framer.push(bytes, &mut take);
        }
    }
}

/// Returns `None` for a blank line.
fn read_line(frame: &Frame<'_>, max_line_bytes: u64) -> Option<HostLine> {
    match frame {
        Frame::Line(line) if line.trim_ascii().is_empty() => None,
        Frame::Line(line) => Some(HostMessage::parse(line)),
        Frame::TooLong { bytes, .. } => Some(Err(MessageError {
            id: None,
            message: format!(
                "a line of {} is too long: at most {} (`--max-input`)",
                format_bytes(*bytes),
                format_bytes(max_line_bytes)
            ),
        })),
    }
}
