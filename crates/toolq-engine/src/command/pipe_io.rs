//! The flow through a command's pipes: what is written to it and read from it, all at once, none waiting for another.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Buf as _;
use tokio::net::unix::pipe::Receiver;
use tokio::task::consume_budget;
use tokio::time::timeout;

use crate::command::pipes::{Feed, Pipes};
use crate::command::status_lines::StatusLines;
use crate::output::{Output, Tail};
use crate::progress::Voice;
use redact::Mask;

/// How long pipes are read after the program itself has ended: what it left behind may hold them open for ever.
const DRAIN: Duration = Duration::from_millis(300);
/// How much is read at once, in bytes.
const CHUNK: usize = 16 << 10;

/// The pipes of a running command and what came through them. The bytes belong to it, not to who reads: giving up on a
/// pipe loses nothing.
#[derive(Debug)]
pub(crate) struct Streams {
    stdin: Option<Feed>,
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
    status: Option<Receiver>,
    lines: StatusLines,
    voice: Voice,
    mask: Arc<Mask>,
    /// What came on standard output.
    pub(crate) output: Output,
    /// The end of what came on standard error.
    pub(crate) errors: Tail,
}

impl Streams {
    pub(crate) fn new(
        pipes: Pipes,
        output: Output,
        errors: Tail,
        voice: Voice,
        mask: Arc<Mask>,
    ) -> Self {
        Self {
            stdin: pipes.stdin,
            stdout: Some(pipes.stdout),
            stderr: Some(pipes.stderr),
            status: Some(pipes.status),
            lines: StatusLines::default(),
            voice,
            mask,
            output,
            errors,
        }
    }

    /// Lets everything flow until `event`, also after the last pipe was closed.
    pub(crate) async fn until<T>(&mut self, event: impl Future<Output = T>) -> T {
        let mut event = pin!(event);
        tokio::select! {
            // First, since it may be a limit: however much flows, that is looked at each time.
            biased;
            value = &mut event => return value,
            () = self.flow() => {}
        }
        event.await
    }

    /// Reads what is left after the program has ended. Nobody is fed any more.
    pub(crate) async fn drain(&mut self) {
        self.stdin = None;
        let _ = timeout(DRAIN, self.flow()).await;
    }

    /// Lets everything flow until every pipe is closed. Can be given up and taken up again.
    async fn flow(&mut self) {
        let Self {
            lines,
            voice,
            mask,
            output,
            errors,
            ..
        } = self;
        tokio::join!(
            write(&mut self.stdin),
            read(&mut self.stdout, |bytes| output.push(bytes)),
            read(&mut self.stderr, |bytes| errors.push(bytes)),
            read(&mut self.status, |bytes| {
                if let Some(mut note) = lines.push(bytes) {
                    note.tip = note.tip.map(|tip| mask.text(&tip).into_owned());
                    voice.say(note);
                }
            }),
        );
    }
}

/// Writes all that is left, and closes. A child that doesn't read is no error: not every tool wants its input.
async fn write(feed: &mut Option<Feed>) {
    while let Some(Feed { pipe, rest }) = feed {
        if rest.is_empty() || pipe.writable().await.is_err() {
            break;
        }
        match pipe.try_write(rest) {
            Ok(written) => rest.advance(written),
            Err(error) if is_temporary(&error) => {}
            Err(_) => break,
        }
    }
    *feed = None;
}

/// Reads until the pipe is closed. A pipe that is never empty is always readable: who reads it must let others have their
/// turn, such as the limit of the call.
async fn read(pipe: &mut Option<Receiver>, mut take: impl FnMut(&[u8])) {
    while let Some(open) = pipe {
        if open.readable().await.is_err() || !read_some(open, &mut take) {
            break;
        }
        consume_budget().await;
    }
    *pipe = None;
}

/// Reads what is there; says whether more can come.
fn read_some(pipe: &Receiver, take: &mut impl FnMut(&[u8])) -> bool {
    let mut chunk = [0; CHUNK];
    match pipe.try_read(&mut chunk) {
        Ok(0) => false,
        Ok(bytes) => {
            take(&chunk[..bytes]);
            true
        }
        Err(error) => is_temporary(&error),
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use std::io::{Write as _, pipe};
    use std::os::fd::OwnedFd;
    use std::thread;
    use std::time::Instant;

    use super::*;

    /// FAULTS 48, 55: who writes faster than is read doesn't outrun his limit.
    #[tokio::test]
    async fn a_pipe_that_is_never_empty_keeps_nobody_waiting() {
        const MOST: Duration = Duration::from_secs(5);
        let (ours, mut theirs) = pipe().unwrap();
        let begun = Instant::now();
        thread::spawn(move || {
            while begun.elapsed() < MOST && theirs.write_all(&[b'x'; 1 << 13]).is_ok() {}
        });
        rustix::io::ioctl_fionbio(&ours, true).unwrap();
        let mut ours = Some(Receiver::from_owned_fd(OwnedFd::from(ours)).unwrap());
        let slowly = read(&mut ours, |_| thread::sleep(Duration::from_millis(2)));
        let limited = timeout(Duration::from_millis(10), slowly).await;
        assert!(limited.is_err() && begun.elapsed() < MOST);
    }
}
