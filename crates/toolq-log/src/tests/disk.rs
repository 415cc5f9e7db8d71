//! A disk in memory that fails where a test wants it to, and remembers what would be left of it at every moment.

use std::io;
use std::sync::{Arc, Mutex};

use crate::write::storage::Storage;

/// What an operation does instead of what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Every write from this one on takes so many bytes only.
    Full(usize),
    /// One write takes so many bytes only.
    Short(usize),
    /// It is interrupted by a signal.
    Interrupted,
    /// It fails, and so does all that follows.
    Broken,
}

/// What was promised to the world: it must be on record for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// The call at this position was started, and does something.
    Started(usize),
    /// Somebody has read the result of the call at this position.
    Read(usize),
}

/// The disk at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moment {
    pub(super) bytes: Vec<u8>,
    /// How many of them survive a loss of power for sure.
    pub(super) durable: usize,
    pub(super) promises: Vec<Promise>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) now: Moment,
    /// After each operation and each promise.
    pub(super) moments: Vec<Moment>,
    pub(super) writes: usize,
    pub(super) syncs: usize,
    /// Which write, counted from 1, fails how.
    pub(super) write_fault: Option<(usize, Fault)>,
    /// Which sync fails for good.
    pub(super) sync_fault: Option<usize>,
    pub(super) truncations_fail: bool,
}

/// The same disk for the log and for the test.
#[derive(Clone, Default)]
pub(crate) struct FaultyDisk(pub(super) Arc<Mutex<State>>);

impl FaultyDisk {
    pub(super) fn count_syncs(&self) -> usize {
        self.0.lock().unwrap().syncs
    }

    pub(super) fn promise(&self, promise: Promise) {
        let mut state = self.0.lock().unwrap();
        state.now.promises.push(promise);
        state.remember();
    }
}

impl State {
    fn remember(&mut self) {
        self.moments.push(self.now.clone());
    }
}

impl Storage for FaultyDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock().unwrap();
        state.writes += 1;
        let writes = state.writes;
        let taken = match state.write_fault {
            Some((at, Fault::Full(room))) if writes >= at => {
                let left = room.min(bytes.len());
                state.write_fault = Some((at, Fault::Full(room - left)));
                match left {
                    0 => return Err(io::ErrorKind::StorageFull.into()),
                    left => left,
                }
            }
            Some((at, Fault::Short(taken))) if writes == at => taken.min(bytes.len()),
            Some((at, Fault::Interrupted)) if writes == at => {
                return Err(io::ErrorKind::Interrupted.into());
            }
            Some((at, Fault::Broken)) if writes >= at => return Err(io::Error::other("EIO")),
            _ => bytes.len(),
        };
        state.now.bytes.extend_from_slice(&bytes[..taken]);
        state.remember();
        Ok(taken)
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.syncs += 1;
        if state.sync_fault.is_some_and(|at| state.syncs == at) {
            return Err(io::Error::other("EIO"));
        }
        // After a sync that failed, one that succeeds says nothing about what was lost.
        assert!(
            state.sync_fault.is_none_or(|at| state.syncs < at),
            "a sync was tried again"
        );
        state.now.durable = state.now.bytes.len();
        state.remember();
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.truncations_fail {
            return Err(io::Error::other("EIO"));
        }
        let len = usize::try_from(len).unwrap();
        if let Some((at, Fault::Full(room))) = state.write_fault {
            let freed = state.now.bytes.len() - len;
            state.write_fault = Some((at, Fault::Full(room + freed)));
        }
        state.now.bytes.truncate(len);
        state.remember();
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().now.bytes.len() as u64)
    }
}
