//! The four pipes of a command. They are created before it starts, so that anything that can fail does so while nothing
//! runs yet.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use rustix::io::{Errno, fcntl_dupfd_cloexec, ioctl_fionbio};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::task::consume_budget;
use tokio::time::{Instant, timeout};

use crate::attempt::{Progress, ProgressSender};
use crate::output::{CaptureLimits, OutputCollector, TextCapture};
use crate::run_budget::OutputCounter;
use crate::timing::DRAIN_TIMEOUT;
use redact::Mask;
use toolq_core::types::CallOutput;

/// The lowest descriptor that isn't overwritten when the child's descriptors are set up.
const FIRST_NON_CHILD_FD: i32 = 4;

/// Our ends of the pipes.
#[derive(Debug)]
pub(crate) struct ParentEnds {
    pub(crate) stdin: Option<StdinFeed>,
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Receiver,
    pub(crate) status: Receiver,
}

/// The child's ends of the pipes, in the order of its descriptors.
#[derive(Debug)]
pub(crate) struct ChildEnds([OwnedFd; 4]);

/// Input that doesn't fit into the stdin pipe yet.
#[derive(Debug)]
pub(crate) struct StdinFeed {
    pub(crate) pipe: Sender,
    pub(crate) remaining: Bytes,
}

impl ParentEnds {
    /// Creates the pipes, and writes as much of `stdin` into its pipe as fits.
    pub(crate) fn new(stdin: ProgramInput<'_>) -> io::Result<(Self, ChildEnds)> {
        let (their_stdin, stdin) = stdin_pipe(stdin)?;
        let (stdout, their_stdout) = output_pipe()?;
        let (stderr, their_stderr) = output_pipe()?;
        let (status, their_status) = output_pipe()?;
        let ours = Self {
            stdin,
            stdout,
            stderr,
            status,
        };
        Ok((
            ours,
            ChildEnds([their_stdin, their_stdout, their_stderr, their_status]),
        ))
    }
}

impl ChildEnds {
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 4] {
        self.0.each_ref().map(OwnedFd::as_fd)
    }
}

/// Creates the pipe to the child's stdin, and writes as much of the input as fits without blocking.
fn stdin_pipe(input: ProgramInput<'_>) -> io::Result<(OwnedFd, Option<StdinFeed>)> {
    let (input, stays_open) = match input {
        ProgramInput::Bytes(bytes) => (bytes, false),
        ProgramInput::Open => (&b""[..], true),
    };
    let (theirs, ours) = pipe()?;
    ioctl_fionbio(&ours, true)?;
    let mut written = 0;
    while written < input.len() {
        match rustix::io::write(&ours, &input[written..]) {
            Ok(bytes) => written += bytes,
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let remaining = &input[written..];
    if remaining.is_empty() && !stays_open {
        return Ok((dup_above_child_fds(theirs)?, None));
    }
    let remaining = Bytes::copy_from_slice(remaining);
    let pipe = Sender::from_owned_fd_unchecked(ours)?;
    Ok((
        dup_above_child_fds(theirs)?,
        Some(StdinFeed { pipe, remaining }),
    ))
}

/// Creates a pipe from the child.
fn output_pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (ours, theirs) = pipe()?;
    ioctl_fionbio(&ours, true)?;
    Ok((
        Receiver::from_owned_fd_unchecked(ours)?,
        dup_above_child_fds(theirs)?,
    ))
}

/// Creates a pipe whose ends are close-on-exec. Returns its read end and its write end.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(not(target_vendor = "apple"))]
    let ends = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    #[cfg(target_vendor = "apple")]
    let ends = {
        let ends = rustix::pipe::pipe()?;
        for end in [&ends.0, &ends.1] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
        }
        ends
    };
    Ok(ends)
}

/// Moves a descriptor out of the range that the child's descriptors will overwrite.
fn dup_above_child_fds(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    if descriptor.as_raw_fd() >= FIRST_NON_CHILD_FD {
        return Ok(descriptor);
    }
    Ok(fcntl_dupfd_cloexec(&descriptor, FIRST_NON_CHILD_FD)?)
}

// Input and output of a running command: all of its pipes are served concurrently, so no pipe can block another.

/// How many bytes are read at once.
const READ_CHUNK_BYTES: usize = 16 << 10;

/// The pipes of a running command and the bytes received through them. They are stored here rather than in the futures
/// that read them, so canceling a read loses nothing.
#[derive(Debug)]
pub(crate) struct CommandStreams {
    stdin: Option<StdinFeed>,
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
    status: Option<Receiver>,
    status_lines: StatusLineParser,
    progress: ProgressSender,
    mask: Arc<Mask>,
    /// How many bytes were received on stdout.
    received: u64,
    /// What was received on stdout.
    pub(crate) output: OutputCollector,
    /// The end of what was received on stderr.
    pub(crate) stderr_tail: TextCapture,
    /// Counts every byte of stderr for the run's output budget.
    counter: OutputCounter,
}

impl CommandStreams {
    /// Returns what was received so far.
    pub(crate) fn into_output(self) -> CallOutput {
        let (stderr, _) = self.stderr_tail.finish(true);
        self.output.into_output(stderr)
    }

    pub(crate) fn new(
        pipes: ParentEnds,
        output: OutputCollector,
        counter: OutputCounter,
        progress: ProgressSender,
        mask: Arc<Mask>,
    ) -> Self {
        Self {
            stdin: pipes.stdin,
            stdout: Some(pipes.stdout),
            stderr: Some(pipes.stderr),
            status: Some(pipes.status),
            status_lines: StatusLineParser::default(),
            progress,
            stderr_tail: TextCapture::new(CaptureLimits::of_stderr(), Arc::clone(&mask)),
            mask,
            received: 0,
            output,
            counter,
        }
    }

    /// Serves the pipes until `event` resolves, which may be long after the last pipe was closed.
    pub(crate) async fn pump_until<T>(&mut self, event: impl Future<Output = T>) -> T {
        let mut event = pin!(event);
        tokio::select! {
            // The event goes first, since it may be a timeout, which no amount of output must delay.
            biased;
            value = &mut event => return value,
            () = self.pump() => {}
        }
        event.await
    }

    /// Drains stdout and stderr after the program has exited. With a `limit`, that goes on while something comes. Closes stdin.
    /// Returns whether something was still coming when the limit was reached.
    pub(crate) async fn drain(&mut self, limit: Option<Duration>) -> bool {
        self.stdin = None;
        let started = Instant::now();
        loop {
            let before = self.received;
            let is_closed = timeout(DRAIN_TIMEOUT, self.pump()).await.is_ok();
            if is_closed || self.received == before || limit.is_none() {
                return false;
            }
            if limit.is_some_and(|limit| started.elapsed() >= limit) {
                return true;
            }
        }
    }

    /// Returns the pipes that the program's processes may still write to.
    pub(crate) fn outputs(&self) -> Vec<BorrowedFd<'_>> {
        let pipes = [&self.stdout, &self.stderr, &self.status];
        pipes.into_iter().flatten().map(AsFd::as_fd).collect()
    }

    /// Serves the pipes until all of them are closed. Cancel safe.
    async fn pump(&mut self) {
        let Self {
            status_lines,
            progress,
            mask,
            output,
            stderr_tail,
            counter,
            received,
            ..
        } = self;
        tokio::join!(
            write_stdin(&mut self.stdin),
            read_pipe(&mut self.stdout, |bytes| {
                *received += bytes.len() as u64;
                output.push(bytes);
            }),
            read_pipe(&mut self.stderr, |bytes| {
                counter.add(bytes.len());
                stderr_tail.push(bytes);
            }),
            read_pipe(&mut self.status, |bytes| {
                if let Some(mut update) = status_lines.push(bytes) {
                    update.message = update.message.map(|tip| mask.apply(&tip).into_owned());
                    progress.send(update);
                }
            }),
        );
    }
}

/// Writes the rest of the input, and closes the pipe. It isn't an error if the child doesn't read it all: not every
/// tool needs its input.
async fn write_stdin(feed: &mut Option<StdinFeed>) {
    while let Some(StdinFeed { pipe, remaining }) = feed {
        if remaining.is_empty() || pipe.writable().await.is_err() {
            break;
        }
        match pipe.try_write(remaining) {
            Ok(written) => remaining.advance(written),
            Err(error) if is_retryable(&error) => {}
            Err(_) => break,
        }
    }
    *feed = None;
}

/// Reads until the pipe is closed. Yields regularly: a pipe that is never empty is always ready, and must not starve
/// anything else, such as the timeout of the call.
async fn read_pipe(pipe: &mut Option<Receiver>, mut on_bytes: impl FnMut(&[u8])) {
    while let Some(open) = pipe {
        if open.readable().await.is_err() || !read_available(open, &mut on_bytes) {
            break;
        }
        consume_budget().await;
    }
    *pipe = None;
}

/// Reads what is available. Returns whether the pipe is still open.
fn read_available(pipe: &Receiver, on_bytes: &mut impl FnMut(&[u8])) -> bool {
    let mut chunk = [0; READ_CHUNK_BYTES];
    match pipe.try_read(&mut chunk) {
        Ok(0) => false,
        Ok(bytes) => {
            on_bytes(&chunk[..bytes]);
            true
        }
        Err(error) => is_retryable(&error),
    }
}

fn is_retryable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

// Status lines on descriptor 3: JSON for people, such as `{"tip":"halfway","progress":0.5}`. `params` and `result` are
// JSON to show instead of the input and of what the model receives. Their writer isn't trusted, so anything else is
// skipped.

/// Longer lines are skipped.
const MAX_LINE_BYTES: usize = 4 << 10;

/// Parses the bytes of a status descriptor as they arrive.
#[derive(Debug, Default)]
struct StatusLineParser {
    line: Vec<u8>,
    too_long: bool,
}

#[derive(Deserialize)]
struct StatusLine {
    tip: Option<String>,
    progress: Option<f64>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
}

impl StatusLineParser {
    /// Parses the next bytes. Returns only the latest value of each member in them, since people can't read faster than
    /// pipes are read.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<Progress> {
        let mut latest: Option<Progress> = None;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, is_complete) = match piece.strip_suffix(b"\n") {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            self.too_long |= self.line.len() + piece.len() > MAX_LINE_BYTES;
            if !self.too_long {
                self.line.extend_from_slice(piece);
            }
            if is_complete && let Some(update) = self.finish_line() {
                let latest = latest.get_or_insert_default();
                latest.message = update.message.or(latest.message.take());
                latest.fraction = update.fraction.or(latest.fraction);
                latest.params = update.params.or(latest.params.take());
                latest.result = update.result.or(latest.result.take());
            }
        }
        latest
    }

    fn finish_line(&mut self) -> Option<Progress> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) {
            return None;
        }
        let line: StatusLine = serde_json::from_slice(&line).ok()?;
        let is_empty = line.tip.is_none() && line.progress.is_none();
        let is_empty = is_empty && line.params.is_none() && line.result.is_none();
        (!is_empty).then_some(Progress {
            message: line.tip,
            fraction: line.progress.map(|progress| progress.clamp(0.0, 1.0)),
            params: line.params,
            result: line.result,
        })
    }
}

/// What a program reads from stdin.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProgramInput<'a> {
    /// These bytes, then the end.
    Bytes(&'a [u8]),
    /// What is written to the program while it runs.
    Open,
}

#[cfg(test)]
mod tests {
    use std::io::{Write as _, pipe};
    use std::os::fd::OwnedFd;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// A program that writes faster than it is read can't outrun its timeout.
    #[tokio::test]
    async fn a_pipe_that_is_never_empty_does_not_starve_a_timeout() {
        const MAX_RUNTIME: Duration = Duration::from_secs(5);
        let (ours, mut theirs) = pipe().unwrap();
        let started = Instant::now();
        thread::spawn(move || {
            while started.elapsed() < MAX_RUNTIME && theirs.write_all(&[b'x'; 1 << 13]).is_ok() {}
        });
        ioctl_fionbio(&ours, true).unwrap();
        let mut ours = Some(Receiver::from_owned_fd(OwnedFd::from(ours)).unwrap());
        let slowly = read_pipe(&mut ours, |_| thread::sleep(Duration::from_millis(2)));
        let limited = timeout(Duration::from_millis(10), slowly).await;
        assert!(limited.is_err() && started.elapsed() < MAX_RUNTIME);
    }

    #[test]
    fn split_lines_are_parsed_and_noise_is_skipped() {
        let mut lines = StatusLineParser::default();
        let noise = lines.push(b"noise\n\xff\xfe\n[1]\n{\"tip\":\"ha");
        assert!(noise.is_none());
        let update = lines.push(b"lf\",\"progress\":7}\n{\"progress\":0.5}\n{}\nnull\n");
        let update = update.unwrap();
        assert_eq!(update.message.as_deref(), Some("half"));
        assert_eq!(update.fraction, Some(0.5));
        for _ in 0..100 {
            assert!(lines.push(&[b'{'; MAX_LINE_BYTES]).is_none());
        }
        assert!(lines.line.capacity() <= 2 * MAX_LINE_BYTES);
        assert!(lines.push(b"\n").is_none());
        assert!(lines.push(b"{\"tip\":\"x\"}\n").is_some());
    }

    #[test]
    fn params_and_results_are_any_json_with_its_digits() {
        let mut lines = StatusLineParser::default();
        let update =
            lines.push(b"{\"params\":{\"n\":1.00}}\n{\"result\":[1]}\n{\"result\":null}\n");
        let update = update.unwrap();
        assert_eq!(update.params.unwrap().get(), "{\"n\":1.00}");
        assert_eq!(update.result.unwrap().get(), "[1]");
    }
}
