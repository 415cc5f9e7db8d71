use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes that wait for a slow reader; what comes when there are more is lost.
const ROOM: usize = 16 << 20;

/// Bytes on their way to somebody who may read slowly, or not at all. A thread of its own writes them, so that nobody
/// else waits.
pub(crate) struct Outbox {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Nothing more is put in.
    closed: bool,
    /// The thread is done.
    done: bool,
    /// Messages that came too late or too fast.
    lost: u64,
    /// Why the reader can't be written to.
    fault: Option<io::Error>,
}

impl Outbox {
    /// Starts the thread that writes to `reader`.
    ///
    /// # Errors
    /// There can be no thread.
    pub(super) fn new(reader: Box<dyn Write + Send>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || theirs.deliver(reader))?;
        Ok(Self { shared })
    }

    /// Puts a message in, at once. After the first that is lost all are, so that a reader misses the end of the stream
    /// and never a piece in its middle.
    pub(super) fn put(&self, message: &[u8]) {
        let mut state = self.shared.lock();
        let full = state.waiting.len() + message.len() > ROOM;
        if full || state.lost > 0 || state.fault.is_some() {
            state.lost += 1;
            return;
        }
        state.waiting.extend_from_slice(message);
        self.shared.changed.notify_all();
    }

    /// Closes the stream and waits, as long as `patience`, until all is written. Says what was not.
    pub(super) fn close(self, patience: Duration) -> Option<String> {
        let mut state = self.shared.lock();
        state.closed = true;
        self.shared.changed.notify_all();
        let wait = self
            .shared
            .changed
            .wait_timeout_while(state, patience, |state| !state.done);
        let (state, _) = wait.unwrap_or_else(PoisonError::into_inner);
        match (&state.fault, state.done, state.lost) {
            (Some(fault), _, _) => Some(format!(
                "the rest of the events could not be written: {fault}"
            )),
            (None, true, 0) => None,
            _ => {
                Some("the rest of the events was not written: their reader is too slow".to_owned())
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what comes until the box is closed and empty, or the reader is gone.
    fn deliver(&self, mut reader: Box<dyn Write + Send>) {
        while let Some(bytes) = self.take() {
            if let Err(fault) = reader.write_all(&bytes).and_then(|()| reader.flush()) {
                self.lock().fault = Some(fault);
                break;
            }
        }
        self.lock().done = true;
        self.changed.notify_all();
    }

    /// All that waits; none where nothing will come.
    fn take(&self) -> Option<Vec<u8>> {
        let empty = |state: &mut State| state.waiting.is_empty() && !state.closed;
        let wait = self.changed.wait_while(self.lock(), empty);
        let mut state = wait.unwrap_or_else(PoisonError::into_inner);
        let bytes = std::mem::take(&mut state.waiting);
        (!bytes.is_empty()).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Hands each write over, and takes it only when somebody asks.
    struct Slow(mpsc::SyncSender<Vec<u8>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let sent = self.0.send(bytes.to_vec());
            sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const FOREVER: Duration = Duration::from_hours(1);

    #[test]
    fn a_reader_gets_everything_in_order() {
        let (sender, receiver) = mpsc::sync_channel(1_000);
        let outbox = Outbox::new(Box::new(Slow(sender))).unwrap();
        for number in 0..1_000 {
            outbox.put(format!("{number}\n").as_bytes());
        }
        assert_eq!(outbox.close(FOREVER), None);
        let read: Vec<u8> = receiver.iter().flatten().collect();
        let read = String::from_utf8(read).unwrap();
        let expected = (0..1_000).map(|number| number.to_string());
        assert!(read.lines().eq(expected));
    }

    #[test]
    fn a_reader_that_does_not_read_stops_nobody() {
        let (sender, receiver) = mpsc::sync_channel(0);
        let outbox = Outbox::new(Box::new(Slow(sender))).unwrap();
        for _ in 0..20 {
            outbox.put(&vec![b'x'; 1 << 20]);
        }
        let warning = outbox.close(Duration::ZERO).unwrap();
        assert!(warning.contains("too slow"), "{warning}");
        drop(receiver);
    }

    #[test]
    fn a_reader_that_went_away_is_named_once() {
        let (sender, receiver) = mpsc::sync_channel(0);
        drop(receiver);
        let outbox = Outbox::new(Box::new(Slow(sender))).unwrap();
        outbox.put(b"1");
        outbox.put(b"2");
        let warning = outbox.close(FOREVER).unwrap();
        assert!(warning.contains("broken pipe"), "{warning}");
    }
}
