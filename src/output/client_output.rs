//! Writes to the client on a thread of its own: a client that doesn't read must not keep toolq from ending its calls.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use tokio::sync::Notify;

use crate::output::{StdoutError, stdout};
use crate::terminal::ProgressScreen;
use toolq_core::types::HaltCause;
use toolq_engine::RunControl;

/// While more than this waits for the client to read it, nothing more is read from the client.
const MAX_PENDING_BYTES: usize = 1 << 20;

/// The messages that go to the client. Clones send to the same client.
#[derive(Clone)]
pub(crate) struct ClientOutput {
    sender: Sender<Vec<u8>>,
    pending: Arc<PendingBytes>,
    failure: Arc<OnceLock<String>>,
}

#[derive(Default)]
struct PendingBytes {
    count: AtomicUsize,
    written: Notify,
}

impl ClientOutput {
    /// Starts the thread. If stdout can't be written, the run is stopped. `screen` has progress bars, which may be on
    /// the same terminal.
    ///
    /// # Errors
    /// The thread can't be started.
    pub(crate) fn start(control: RunControl, screen: Option<ProgressScreen>) -> io::Result<Self> {
        let (sender, lines) = channel::<Vec<u8>>();
        let pending = Arc::new(PendingBytes::default());
        let failure = Arc::<OnceLock<String>>::default();
        let (written, first_failure) = (Arc::clone(&pending), Arc::clone(&failure));
        let write_all = move || {
            let mut is_lost = false;
            for lines in lines {
                let write = || stdout::write_lines(&lines);
                if !is_lost {
                    let result = match &screen {
                        Some(screen) => screen.suspend(write),
                        None => write(),
                    };
                    is_lost = result.is_err();
                    if let Err(StdoutError::Failed(error)) = result {
                        let _ = first_failure.set(format!("stdout can't be written: {error}"));
                    }
                }
                if is_lost {
                    control.halt(HaltCause::OutputLost);
                }
                written.count.fetch_sub(lines.len(), SeqCst);
                written.written.notify_waiters();
            }
        };
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(write_all)?;
        Ok(Self {
            sender,
            pending,
            failure,
        })
    }

    /// Returns why the client can't be written to, once that is known. A client that closed its end isn't a failure.
    pub(crate) fn failure(&self) -> Arc<OnceLock<String>> {
        Arc::clone(&self.failure)
    }

    /// Sends whole lines, without waiting.
    pub(crate) fn send(&self, lines: Vec<u8>) {
        self.pending.count.fetch_add(lines.len(), SeqCst);
        // The thread runs as long as there is a sender.
        let _ = self.sender.send(lines);
    }

    /// Returns whether more waits for the client to read it than should.
    pub(crate) fn is_full(&self) -> bool {
        self.pending.count.load(SeqCst) > MAX_PENDING_BYTES
    }

    /// Waits until the client has read enough to be listened to again.
    pub(crate) async fn wait_for_room(&self) {
        self.wait_until_at_most(MAX_PENDING_BYTES).await;
    }

    /// Waits until everything is written.
    pub(crate) async fn wait_until_written(&self) {
        self.wait_until_at_most(0).await;
    }

    async fn wait_until_at_most(&self, bytes: usize) {
        loop {
            let written = self.pending.written.notified();
            if self.pending.count.load(SeqCst) <= bytes {
                return;
            }
            written.await;
        }
    }
}
