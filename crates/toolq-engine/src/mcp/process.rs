//! The pipes of a server's program: messages to its stdin, lines from its stdout, and the end of its stderr.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{io, mem};

use redact::Mask;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep_until, timeout};
use toolq_core::types::Leftovers;
use toolq_mcp::{Frame, LineFramer, parse_messages};

use crate::command::{ChildExit, ChildProcess, ParentEnds};
use crate::control::RunControl;
use crate::mcp::incoming::Incoming;
use crate::mcp::server_life::SavedStderr;
use crate::output::{LeadingFile, make_room};
use crate::timing::{DRAIN_TIMEOUT, SERVER_GRACE};

/// How long a line may be. A longer one fails the call that it answers.
const MAX_LINE_BYTES: usize = 64 << 20;
/// How much of the end of stderr is kept for the failures of calls.
const STDERR_TAIL_BYTES: usize = 4 << 10;
/// How much of the beginning of stderr is kept beside the log.
const MAX_SAVED_STDERR_BYTES: u64 = 1 << 20;
/// How much may wait for a program to read it before its own requests get no more answers.
const MAX_UNSENT_BYTES: usize = 16 << 20;

/// A running server.
pub(crate) struct ServerProcess {
    child: ChildProcess,
    stdin: Option<Sender>,
    /// What isn't written to stdin yet.
    unsent: Vec<u8>,
    stdout: Option<Receiver>,
    /// What was read of stdout last.
    chunk: Vec<u8>,
    stderr: Option<Receiver>,
    status: Option<Receiver>,
    framer: LineFramer,
    /// Until when it is listened to, since it has closed its stdin.
    read_until: Option<Instant>,
    stderr_tail: Vec<u8>,
    saved_stderr: LeadingFile,
}

impl ServerProcess {
    /// Speaks to a program. The beginning of its stderr is saved in `outputs`.
    pub(crate) fn new(
        child: ChildProcess,
        pipes: ParentEnds,
        outputs: Option<PathBuf>,
        mask: Arc<Mask>,
    ) -> Self {
        Self {
            child,
            stdin: pipes.stdin.map(|feed| feed.pipe),
            unsent: Vec::new(),
            stdout: Some(pipes.stdout),
            chunk: Vec::new(),
            stderr: Some(pipes.stderr),
            status: Some(pipes.status),
            framer: LineFramer::new(MAX_LINE_BYTES),
            read_until: None,
            stderr_tail: Vec::new(),
            saved_stderr: LeadingFile::new(outputs, MAX_SAVED_STDERR_BYTES, mask),
        }
    }

    /// Returns the buffer of what isn't written to stdin yet. Messages are appended to it, each on a line of its own.
    pub(crate) fn unsent(&mut self) -> &mut Vec<u8> {
        make_room(&mut self.unsent, READ_CHUNK_BYTES, 2 * MAX_UNSENT_BYTES);
        &mut self.unsent
    }

    /// Returns whether the program has left so much of its input unread that it shouldn't be sent more.
    pub(crate) fn is_behind(&self) -> bool {
        self.unsent.len() > MAX_UNSENT_BYTES
    }

    /// Serves the pipes for a while. Returns the lines that have arrived, which may be empty, or `None` once stdout or
    /// stdin is closed or the program has exited. Cancel safe.
    pub(crate) async fn next_lines(&mut self) -> Option<Vec<Incoming>> {
        self.stdout.as_ref()?;
        let last_read = self.read_until.unwrap_or_else(Instant::now);
        tokio::select! {
            // What a program printed before it exited counts. It gets its messages even while it prints all the time.
            biased;
            is_open = write_some(&mut self.stdin, &mut self.unsent), if !self.unsent.is_empty() => {
                if !is_open && self.read_until.is_none() {
                    self.read_until = Some(Instant::now() + DRAIN_TIMEOUT);
                }
            }
            is_open = read_into(&mut self.stdout, &mut self.chunk) => {
                if !is_open {
                    return self.finish_lines();
                }
                let mut lines = Vec::new();
                self.framer.push(&self.chunk, |frame| lines.push(incoming_line(&frame)));
                return Some(lines);
            }
            chunk = read_chunk(&mut self.stderr), if self.stderr.is_some() => {
                self.keep_stderr(&chunk.unwrap_or_default());
            }
            _ = read_chunk(&mut self.status), if self.status.is_some() => {}
            () = self.child.wait_for_exit() => return self.finish_lines(),
            () = sleep_until(last_read), if self.read_until.is_some() => return self.finish_lines(),
        }
        Some(Vec::new())
    }

    /// Returns what the program printed last, if it is a message without a line break, and reads nothing more. Of half a
    /// message, the end of the program says more.
    fn finish_lines(&mut self) -> Option<Vec<Incoming>> {
        self.stdout = None;
        let mut last = None;
        let framer = mem::replace(&mut self.framer, LineFramer::new(MAX_LINE_BYTES));
        framer.finish(|frame| {
            if let Frame::Line(line) = &frame
                && parse_messages(line).is_ok()
            {
                last = Some(vec![incoming_line(&frame)]);
            }
        });
        last
    }

    /// Says why no more lines come from a program that is still running.
    pub(crate) fn describe_end(&self) -> &'static str {
        match self.read_until {
            Some(_) => "the server closed its stdin",
            None => "the server closed its stdout",
        }
    }

    /// Returns the end of what the program wrote to stderr. Waits shortly for the rest of it: a program that has just
    /// ended may have said why.
    pub(crate) async fn read_stderr_tail(&mut self) -> String {
        self.drain_stderr(DRAIN_TIMEOUT).await;
        String::from_utf8_lossy(&self.stderr_tail).into_owned()
    }

    /// Returns the program's process id. Waits shortly for it: a program may be fast, and who started it slow to say so.
    pub(crate) async fn pid(&mut self) -> Option<i32> {
        let pid = timeout(DRAIN_TIMEOUT, self.child.wait_for_pid()).await;
        pid.ok().flatten()
    }

    /// Returns whether the program has exited, or does so at once.
    pub(crate) async fn has_exited(&mut self) -> bool {
        timeout(DRAIN_TIMEOUT, self.child.wait_for_exit())
            .await
            .is_ok()
    }

    /// Ends the program: closes its stdin, then terminates it and everything that it started.
    pub(crate) async fn end(mut self, control: &RunControl) -> (ChildExit, SavedStderr) {
        // Such as the cancellation of the last call. A server that doesn't read has no time for it.
        let _ = timeout(DRAIN_TIMEOUT, self.write_rest()).await;
        self.stdin = None;
        let has_exited = timeout(SERVER_GRACE, self.wait_for_exit(control)).await;
        if has_exited.is_err() {
            self.child.terminate(SERVER_GRACE, control).await;
        }
        // What it wrote last is in the pipe. A process that it left may hold the other end, but is killed below.
        self.drain_stderr(Duration::ZERO).await;
        let exit = self.child.close(Leftovers::Kill, control).await;
        let (bytes, path) = self.saved_stderr.finish("txt");
        (exit, SavedStderr { bytes, path })
    }

    /// Writes what was queued for stdin.
    async fn write_rest(&mut self) {
        while !self.unsent.is_empty() && write_some(&mut self.stdin, &mut self.unsent).await {}
    }

    /// Waits until the program has exited or the run is killed. Meanwhile, the program can write to stderr.
    async fn wait_for_exit(&mut self, control: &RunControl) {
        loop {
            tokio::select! {
                () = self.child.wait_for_exit() => return,
                () = control.wait_for_kill() => return,
                chunk = read_chunk(&mut self.stderr), if self.stderr.is_some() => {
                    self.keep_stderr(&chunk.unwrap_or_default());
                }
            }
        }
    }

    /// Reads stderr to its end, or for this long.
    async fn drain_stderr(&mut self, limit: Duration) {
        let drained = async {
            while let Some(bytes) = read_chunk(&mut self.stderr).await {
                self.keep_stderr(&bytes);
            }
        };
        // The program may still run, or have left a process that holds stderr open.
        let _ = timeout(limit, drained).await;
    }

    fn keep_stderr(&mut self, bytes: &[u8]) {
        self.saved_stderr.push(bytes);
        keep_tail(&mut self.stderr_tail, bytes);
    }
}

fn incoming_line(frame: &Frame<'_>) -> Incoming {
    match frame {
        Frame::Line(line) => Incoming::Line(line.to_vec()),
        Frame::TooLong { start, bytes } => Incoming::TooLong(start.to_vec(), *bytes),
    }
}

fn keep_tail(tail: &mut Vec<u8>, bytes: &[u8]) {
    tail.extend_from_slice(bytes);
    if tail.len() > STDERR_TAIL_BYTES {
        tail.drain(..tail.len() - STDERR_TAIL_BYTES);
    }
}

// Reads and writes the pipes of a program as far as they let it, without blocking the task that serves them all.

/// How many bytes are read at once.
const READ_CHUNK_BYTES: usize = 64 << 10;
/// How much memory is kept once all is written.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// Reads what is there. Returns `None`, and closes the pipe, at its end.
async fn read_chunk(pipe: &mut Option<Receiver>) -> Option<Vec<u8>> {
    // A program that writes all the time must not keep the task from everything else.
    consume_budget().await;
    let reader = pipe.as_mut()?;
    loop {
        // Allocates only once there is data, since all pipes are polled whenever one of them has some.
        if reader.readable().await.is_err() {
            break;
        }
        let mut bytes = Vec::with_capacity(READ_CHUNK_BYTES);
        match reader.try_read_buf(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(read) if read > 0 => return Some(bytes),
            Ok(_) | Err(_) => break,
        }
    }
    *pipe = None;
    None
}

/// Reads what is there into `chunk`. Returns whether the pipe is open, and closes it at its end. Needs one system call where
/// [`read_chunk`] needs two: a read that doesn't fill the buffer has emptied the pipe.
async fn read_into(pipe: &mut Option<Receiver>, chunk: &mut Vec<u8>) -> bool {
    consume_budget().await;
    if let Some(reader) = pipe.as_mut() {
        chunk.clear();
        chunk.reserve(READ_CHUNK_BYTES);
        if let Ok(1..) = reader.read_buf(chunk).await {
            return true;
        }
    }
    *pipe = None;
    false
}

/// Writes as much as the pipe takes. Returns whether it is open: a server that has closed its stdin gets nothing more.
async fn write_some(pipe: &mut Option<Sender>, unsent: &mut Vec<u8>) -> bool {
    let Some(writer) = pipe else {
        mem::take(unsent);
        return false;
    };
    match writer.try_write(unsent) {
        Ok(written) => {
            unsent.drain(..written);
            if unsent.is_empty() {
                unsent.shrink_to(MAX_KEPT_BYTES);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let _ = writer.writable().await;
        }
        Err(_) => *pipe = None,
    }
    pipe.is_some()
}
