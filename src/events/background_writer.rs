//! Writes bytes on a background thread, so that a slow reader doesn't slow down the run.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use serde::Serialize;

use toolq_core::json::to_json_line;

/// How much is buffered for a slow reader before messages are dropped.
const MAX_PENDING_BYTES: usize = 16 << 20;

/// A writer whose output may block: a background thread writes the queued messages.
pub(crate) struct BackgroundWriter {
    queue: Arc<WriteQueue>,
}

#[derive(Default)]
struct WriteQueue {
    state: Mutex<WriteQueueState>,
    changed: Condvar,
}

/// What blocks until the messages after it may be written.
pub(crate) type Barrier = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct WriteQueueState {
    pending: Vec<u8>,
    /// Each with the number of pending bytes before it.
    barriers: VecDeque<(usize, Barrier)>,
    /// No more messages will be queued.
    closed: bool,
    /// The thread has finished.
    done: bool,
    /// Number of messages dropped because the buffer was full or the output had failed.
    dropped_messages: u64,
    /// The error of the output.
    error: Option<io::Error>,
}

impl BackgroundWriter {
    /// Starts the thread that writes to `output`.
    ///
    /// # Errors
    /// The thread can't be started.
    pub(super) fn new(output: Box<dyn Write + Send>) -> io::Result<Self> {
        let shared = Arc::new(WriteQueue::default());
        let worker_queue = Arc::clone(&shared);
        thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || worker_queue.write_until_closed(output))?;
        Ok(Self { queue: shared })
    }

    /// Queues a message without blocking. Once a message is dropped, all later ones are too, so that the reader misses
    /// the end of the stream but never a part in the middle.
    fn enqueue(&self, message: &[u8]) {
        let mut state = self.queue.state.lock();
        let full = state.pending.len() + message.len() > MAX_PENDING_BYTES;
        if full || state.dropped_messages > 0 || state.error.is_some() {
            state.dropped_messages += 1;
            return;
        }
        state.pending.extend_from_slice(message);
        self.queue.changed.notify_all();
    }

    /// Lets the messages that follow wait for this, without blocking.
    pub(super) fn wait_for(&self, barrier: Barrier) {
        let mut state = self.queue.state.lock();
        let before = state.pending.len();
        state.barriers.push_back((before, barrier));
        self.queue.changed.notify_all();
    }

    /// Queues a value as a line of JSON. If it has no JSON form, the stream ends before it: an empty line would be no
    /// message, and a missing one wouldn't be noticed.
    pub(super) fn enqueue_json(&self, message: &impl Serialize) {
        match serde_json::to_string(message) {
            Ok(text) => {
                let mut line = to_json_line(&text).into_owned();
                line.push('\n');
                self.enqueue(line.as_bytes());
            }
            Err(error) => {
                self.queue.state.lock().error.get_or_insert(error.into());
            }
        }
    }

    /// Closes the stream and waits up to `timeout` for the pending messages to be written. Returns a warning if some
    /// weren't.
    pub(super) fn close(self, timeout: Duration) -> Option<String> {
        let mut state = self.queue.state.lock();
        state.closed = true;
        self.queue.changed.notify_all();
        self.queue
            .changed
            .wait_while_for(&mut state, |state| !state.done, timeout);
        match (&state.error, state.done, state.dropped_messages) {
            (Some(error), _, _) => Some(format!(
                "the rest of the events could not be written: {error}"
            )),
            (None, true, 0) => None,
            _ => Some("the rest of the events was dropped: the reader is too slow".to_owned()),
        }
    }
}

impl WriteQueue {
    /// Writes queued messages until the queue is closed and empty, or the output fails.
    fn write_until_closed(&self, mut output: Box<dyn Write + Send>) {
        while let Some(step) = self.wait_for_step() {
            let bytes = match step {
                WriteStep::Wait(barrier) => {
                    barrier();
                    continue;
                }
                WriteStep::Write(bytes) => bytes,
            };
            if let Err(error) = output.write_all(&bytes).and_then(|()| output.flush()) {
                self.state.lock().error = Some(error);
                break;
            }
        }
        self.state.lock().done = true;
        self.changed.notify_all();
    }

    /// Waits for messages and takes them all, up to the next barrier. Returns `None` if the queue is closed and empty.
    fn wait_for_step(&self) -> Option<WriteStep> {
        let must_wait = |state: &mut WriteQueueState| {
            state.pending.is_empty() && state.barriers.is_empty() && !state.closed
        };
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, must_wait);
        let bytes = match state.barriers.pop_front() {
            Some((0, barrier)) => return Some(WriteStep::Wait(barrier)),
            Some((before, barrier)) => {
                state.barriers.push_front((0, barrier));
                for (other, _) in state.barriers.iter_mut().skip(1) {
                    *other -= before;
                }
                state.pending.drain(..before).collect()
            }
            None => std::mem::take(&mut state.pending),
        };
        (!bytes.is_empty()).then_some(WriteStep::Write(bytes))
    }
}

/// What the thread does next.
enum WriteStep {
    Write(Vec<u8>),
    Wait(Barrier),
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Sends each write to a channel, and blocks while the channel is full.
    struct ChannelWriter(mpsc::SyncSender<Vec<u8>>);

    impl Write for ChannelWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let sent = self.0.send(bytes.to_vec());
            sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const LONG_TIMEOUT: Duration = Duration::from_hours(1);

    #[test]
    fn a_reader_gets_everything_in_order() {
        let (sender, receiver) = mpsc::sync_channel(1_000);
        let writer = BackgroundWriter::new(Box::new(ChannelWriter(sender))).unwrap();
        for number in 0..1_000 {
            writer.enqueue(format!("{number}\n").as_bytes());
        }
        assert_eq!(writer.close(LONG_TIMEOUT), None);
        let read: Vec<u8> = receiver.iter().flatten().collect();
        let read = String::from_utf8(read).unwrap();
        let expected = (0..1_000).map(|number| number.to_string());
        assert!(read.lines().eq(expected));
    }

    #[test]
    fn a_message_without_a_json_form_ends_the_stream_and_is_no_empty_line() {
        let (sender, receiver) = mpsc::sync_channel(1_000);
        let writer = BackgroundWriter::new(Box::new(ChannelWriter(sender))).unwrap();
        writer.enqueue_json(&"first");
        // JSON has no key that is a list.
        writer.enqueue_json(&std::collections::BTreeMap::from([(vec![1], 2)]));
        writer.enqueue_json(&"never");
        let warning = writer.close(LONG_TIMEOUT).unwrap();
        assert!(warning.contains("key must be a string"), "{warning}");
        let read: Vec<u8> = receiver.iter().flatten().collect();
        assert_eq!(read, b"\"first\"\n");
    }

    #[test]
    fn messages_wait_for_what_was_queued_before_them() {
        let (sender, receiver) = mpsc::sync_channel(1_000);
        let writer = BackgroundWriter::new(Box::new(ChannelWriter(sender))).unwrap();
        let (open, opened) = mpsc::channel::<()>();
        writer.enqueue(b"before ");
        writer.wait_for(Box::new(move || opened.recv().unwrap()));
        writer.enqueue(b"after ");
        writer.wait_for(Box::new(|| {}));
        writer.enqueue(b"last");
        assert_eq!(receiver.recv().unwrap(), b"before ");
        assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Empty));
        open.send(()).unwrap();
        assert_eq!(writer.close(LONG_TIMEOUT), None);
        let read: Vec<u8> = receiver.iter().flatten().collect();
        assert_eq!(read, b"after last");
    }

    /// The run doesn't wait for a slow reader, and warns.
    #[test]
    fn a_stalled_reader_does_not_block_the_writer() {
        let (sender, receiver) = mpsc::sync_channel(0);
        let writer = BackgroundWriter::new(Box::new(ChannelWriter(sender))).unwrap();
        for _ in 0..20 {
            writer.enqueue(&vec![b'x'; 1 << 20]);
        }
        let warning = writer.close(Duration::ZERO).unwrap();
        assert!(warning.contains("too slow"), "{warning}");
        drop(receiver);
    }

    /// The run goes on without it.
    #[test]
    fn a_closed_reader_is_reported_once() {
        let (sender, receiver) = mpsc::sync_channel(0);
        drop(receiver);
        let writer = BackgroundWriter::new(Box::new(ChannelWriter(sender))).unwrap();
        writer.enqueue(b"1");
        writer.enqueue(b"2");
        let warning = writer.close(LONG_TIMEOUT).unwrap();
        assert!(warning.contains("broken pipe"), "{warning}");
    }
}
