//! Writes on a thread of its own, so that a slow reader delays neither calls nor the end of the run.

use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;

use crate::output::stdout::{self, StdoutError};
use crate::terminal::ProgressScreen;
use toolq_core::types::HaltCause;
use toolq_engine::RunControl;

/// What blocks until the messages after it may be written.
pub(crate) type Barrier = Box<dyn FnOnce() + Send>;

/// An output that may block. Clones write to the same one.
#[derive(Clone)]
pub(crate) struct BackgroundWriter {
    steps: Sender<Step>,
    state: Arc<WriterState>,
}

#[derive(Default)]
struct WriterState {
    pending_bytes: AtomicUsize,
    written: Notify,
    error: OnceLock<io::Error>,
}

/// What the thread does next.
enum Step {
    Write(Vec<u8>),
    Wait(Barrier),
}

impl BackgroundWriter {
    /// Starts the thread, which passes messages to `write` until that fails.
    ///
    /// # Errors
    /// The thread can't be started.
    pub(crate) fn start(
        name: &str,
        write: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (steps, received) = mpsc::channel();
        let state = Arc::<WriterState>::default();
        let thread_state = Arc::clone(&state);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || thread_state.take_steps(&received, write))?;
        Ok(Self { steps, state })
    }

    /// Queues a message without waiting.
    pub(crate) fn send(&self, message: Vec<u8>) {
        self.state.pending_bytes.fetch_add(message.len(), SeqCst);
        // The thread runs as long as there is a sender.
        let _ = self.steps.send(Step::Write(message));
    }

    /// Lets the messages that follow wait for this, without waiting itself.
    pub(crate) fn wait_for(&self, barrier: Barrier) {
        let _ = self.steps.send(Step::Wait(barrier));
    }

    /// Returns how much the reader hasn't taken yet.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.state.pending_bytes.load(SeqCst)
    }

    /// Waits until the reader has taken all but `bytes`.
    pub(crate) async fn wait_until_at_most(&self, bytes: usize) {
        loop {
            let written = self.state.written.notified();
            if self.pending_bytes() <= bytes {
                return;
            }
            written.await;
        }
    }

    /// Returns why a message wasn't written, if that is known.
    pub(crate) fn error(&self) -> Option<&io::Error> {
        self.state.error.get()
    }

    /// Sets the error, unless there is one.
    pub(crate) fn set_error(&self, error: io::Error) {
        let _ = self.state.error.set(error);
    }

    /// Waits up to `timeout` until everything is written. Returns whether it was.
    pub(crate) fn wait_until_written(&self, timeout: Duration) -> bool {
        let (sender, written) = mpsc::channel();
        self.wait_for(Box::new(move || {
            let _ = sender.send(());
        }));
        written.recv_timeout(timeout).is_ok()
    }
}

impl WriterState {
    /// Takes steps as long as there is a sender. Messages that have piled up are written together.
    fn take_steps(&self, steps: &Receiver<Step>, mut write: impl FnMut(&[u8]) -> io::Result<()>) {
        let mut is_lost = false;
        let mut next = None;
        while let Some(step) = next.take().or_else(|| steps.recv().ok()) {
            let mut bytes = match step {
                Step::Write(bytes) => bytes,
                Step::Wait(barrier) => {
                    barrier();
                    continue;
                }
            };
            while next.is_none()
                && let Ok(step) = steps.try_recv()
            {
                match step {
                    Step::Write(more) => bytes.extend(more),
                    Step::Wait(_) => next = Some(step),
                }
            }
            if !is_lost && let Err(error) = write(&bytes) {
                is_lost = true;
                let _ = self.error.set(error);
            }
            self.pending_bytes.fetch_sub(bytes.len(), SeqCst);
            self.written.notify_waiters();
        }
    }
}

// The client on stdout: one that doesn't read must not keep toolq from ending its calls.

/// While more than this waits for the client to read it, nothing more is read from the client.
pub(crate) const MAX_CLIENT_BYTES: usize = 1 << 20;

/// Starts writing to the client. If stdout can't be written, the run is stopped. `screen` has progress bars, which may be on
/// the same terminal.
///
/// # Errors
/// The thread can't be started.
pub(crate) fn start_client_output(
    control: RunControl,
    screen: Option<ProgressScreen>,
) -> io::Result<BackgroundWriter> {
    BackgroundWriter::start("output", move |lines| {
        let write = || stdout::write_lines(lines);
        let written = match &screen {
            Some(screen) => screen.suspend(write),
            None => write(),
        };
        if written.is_err() {
            control.halt(HaltCause::OutputLost);
        }
        written.map_err(StdoutError::into)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_TIMEOUT: Duration = Duration::from_hours(1);

    /// Returns a writer, and what it writes.
    fn channel_writer() -> (BackgroundWriter, Receiver<Vec<u8>>) {
        let (sender, written) = mpsc::channel();
        let writer = BackgroundWriter::start("test", move |bytes| {
            sender.send(bytes.to_vec()).unwrap();
            Ok(())
        });
        (writer.unwrap(), written)
    }

    #[test]
    fn a_reader_gets_everything_in_order() {
        let (writer, written) = channel_writer();
        for number in 0..1_000 {
            writer.send(format!("{number}\n").into_bytes());
        }
        assert!(writer.wait_until_written(LONG_TIMEOUT));
        let read: Vec<u8> = written.try_iter().flatten().collect();
        let read = String::from_utf8(read).unwrap();
        let expected = (0..1_000).map(|number| number.to_string());
        assert!(read.lines().eq(expected));
    }

    #[test]
    fn messages_wait_for_what_was_queued_before_them() {
        let (writer, written) = channel_writer();
        let (open, opened) = mpsc::channel::<()>();
        writer.send(b"before ".to_vec());
        writer.wait_for(Box::new(move || opened.recv().unwrap()));
        writer.send(b"after ".to_vec());
        writer.wait_for(Box::new(|| {}));
        writer.send(b"last".to_vec());
        assert_eq!(written.recv().unwrap(), b"before ");
        assert_eq!(written.try_recv(), Err(mpsc::TryRecvError::Empty));
        open.send(()).unwrap();
        assert!(writer.wait_until_written(LONG_TIMEOUT));
        let read: Vec<u8> = written.try_iter().flatten().collect();
        assert_eq!(read, b"after last");
    }
}
