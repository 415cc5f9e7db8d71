//! An in-memory disk that fails where a test wants it to, and records what a crash would leave of it at every moment.

use std::io;
use std::sync::{Arc, Mutex};

use crate::write::log_file::Storage;

/// How a write fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskFault {
    /// The disk has room for only this many more bytes.
    Full(usize),
    /// One write accepts only this many bytes.
    Short(usize),
    /// One write is interrupted by a signal.
    Interrupted,
    /// The write fails, and so do all that follow.
    Broken,
}

/// Something the outside world has seen, so it must stay on record forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DurabilityPromise {
    /// The call at this position, which has an effect, was started.
    Started(usize),
    /// The result of the call at this position was read.
    ResultRead(usize),
}

/// The state of the disk at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskSnapshot {
    pub(super) bytes: Vec<u8>,
    /// How many of the bytes are certain to survive a power loss.
    pub(super) durable_len: usize,
    pub(super) promises: Vec<DurabilityPromise>,
}

#[derive(Default)]
pub(crate) struct DiskState {
    pub(super) current: DiskSnapshot,
    /// The state after each operation and each promise.
    pub(super) snapshots: Vec<DiskSnapshot>,
    pub(super) write_count: usize,
    sync_count: usize,
    /// Which write fails, counted from 1, and how.
    pub(super) write_fault: Option<(usize, DiskFault)>,
    /// Which sync fails, counted from 1. No sync may follow it.
    pub(super) sync_fault: Option<usize>,
    pub(super) truncations_fail: bool,
}

/// A disk shared by the log and the test.
#[derive(Clone, Default)]
pub(crate) struct FaultyDisk(pub(super) Arc<Mutex<DiskState>>);

impl FaultyDisk {
    pub(super) fn count_syncs(&self) -> usize {
        self.0.lock().unwrap().sync_count
    }

    pub(super) fn record_promise(&self, promise: DurabilityPromise) {
        let mut state = self.0.lock().unwrap();
        state.current.promises.push(promise);
        state.take_snapshot();
    }
}

impl DiskState {
    fn take_snapshot(&mut self) {
        self.snapshots.push(self.current.clone());
    }
}

impl Storage for FaultyDisk {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock().unwrap();
        state.write_count += 1;
        let writes = state.write_count;
        let taken = match state.write_fault {
            Some((at, DiskFault::Full(room))) if writes >= at => {
                let left = room.min(bytes.len());
                state.write_fault = Some((at, DiskFault::Full(room - left)));
                match left {
                    0 => return Err(io::ErrorKind::StorageFull.into()),
                    left => left,
                }
            }
            Some((at, DiskFault::Short(taken))) if writes == at => taken.min(bytes.len()),
            Some((at, DiskFault::Interrupted)) if writes == at => {
                return Err(io::ErrorKind::Interrupted.into());
            }
            Some((at, DiskFault::Broken)) if writes >= at => return Err(io::Error::other("EIO")),
            _ => bytes.len(),
        };
        state.current.bytes.extend_from_slice(&bytes[..taken]);
        state.take_snapshot();
        Ok(taken)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.sync_count += 1;
        if state.sync_fault.is_some_and(|at| state.sync_count == at) {
            return Err(io::Error::other("EIO"));
        }
        // A sync that succeeds after a failed one says nothing about the data that was lost.
        assert!(
            state.sync_fault.is_none_or(|at| state.sync_count < at),
            "sync was retried after a failure"
        );
        state.current.durable_len = state.current.bytes.len();
        state.take_snapshot();
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.truncations_fail {
            return Err(io::Error::other("EIO"));
        }
        let len = usize::try_from(len).unwrap();
        if let Some((at, DiskFault::Full(room))) = state.write_fault {
            let freed = state.current.bytes.len() - len;
            state.write_fault = Some((at, DiskFault::Full(room + freed)));
        }
        state.current.bytes.truncate(len);
        state.take_snapshot();
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().current.bytes.len() as u64)
    }
}
