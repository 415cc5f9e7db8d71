//! Writes to stdout as much at a time as its reader takes, so that no write blocks where nothing could end the wait.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;

use crate::output::stalled_reader::{self, PIECE_BYTES};

/// Writes `bytes` to `stdout` past any buffer. Returns `false` if its reader was given up before it took everything.
pub(super) fn write_all(stdout: &impl AsFd, mut bytes: &[u8]) -> io::Result<bool> {
    let mut is_supported = true;
    while !bytes.is_empty() {
        let attempt = if is_supported {
            write_without_waiting(stdout, bytes)?
        } else {
            WriteAttempt::Unsupported
        };
        if let WriteAttempt::Wrote(written) = attempt {
            bytes = &bytes[written..];
            continue;
        }
        is_supported = matches!(attempt, WriteAttempt::Full);
        if !stalled_reader::wait_until_writable(stdout)? {
            return Ok(false);
        }
        bytes = &bytes[write_piece(stdout, bytes)?..];
    }
    Ok(true)
}

/// What came of a write that must not wait.
enum WriteAttempt {
    /// This many bytes were written.
    Wrote(usize),
    /// The output takes nothing now.
    Full,
    /// The kernel can't write to such an output without waiting.
    Unsupported,
}

/// Writes as much of `bytes` as `stdout` takes now. Unlike `O_NONBLOCK`, this changes nothing for others who write to the
/// same pipe, and unlike a write of more than [`PIECE_BYTES`] after `poll`, it can't block when they were faster.
#[cfg(target_os = "linux")]
fn write_without_waiting(stdout: &impl AsFd, bytes: &[u8]) -> io::Result<WriteAttempt> {
    use rustix::io::{ReadWriteFlags, pwritev2};

    /// Where the output is now, as `write` does. Pipes know no other place.
    const CURRENT_POSITION: u64 = u64::MAX;
    let parts = [io::IoSlice::new(bytes)];
    match pwritev2(stdout, &parts, CURRENT_POSITION, ReadWriteFlags::NOWAIT) {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        Ok(written) => Ok(WriteAttempt::Wrote(written)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(WriteAttempt::Full),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::SPIPE | Errno::PERM) => {
            Ok(WriteAttempt::Unsupported)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn write_without_waiting(_stdout: &impl AsFd, _bytes: &[u8]) -> io::Result<WriteAttempt> {
    Ok(WriteAttempt::Unsupported)
}

/// Writes as much as `stdout` takes at once now that it is ready, and returns how much that was.
fn write_piece(stdout: &impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    match rustix::io::write(stdout, &bytes[..bytes.len().min(PIECE_BYTES)]) {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        Ok(written) => Ok(written),
        // Another process may have made the pipe nonblocking, and a third one may have been faster.
        Err(Errno::INTR | Errno::AGAIN) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Read as _;
    use std::thread;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    use super::*;

    /// More than a pipe holds, and no multiple of a piece.
    fn long_text() -> Vec<u8> {
        (0..1_000_003_u32)
            .map(|index| (index % 251) as u8)
            .collect()
    }

    /// Writes to a pipe that a thread reads, and returns what it read.
    fn pass_through_pipe(flags: OFlags) -> Vec<u8> {
        let (mut reader, writer) = io::pipe().unwrap();
        fcntl_setfl(&writer, fcntl_getfl(&writer).unwrap() | flags).unwrap();
        let read = thread::spawn(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).map(|_| bytes)
        });
        assert!(write_all(&writer, &long_text()).unwrap());
        drop(writer);
        read.join().unwrap().unwrap()
    }

    #[test]
    fn a_pipe_takes_everything_in_order() {
        assert!(pass_through_pipe(OFlags::empty()) == long_text());
    }

    #[test]
    fn a_pipe_that_another_process_made_nonblocking_takes_everything() {
        assert!(pass_through_pipe(OFlags::NONBLOCK) == long_text());
    }

    #[test]
    fn a_file_takes_everything_behind_what_it_holds() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "first").unwrap();
        let appending = File::options().append(true).open(file.path()).unwrap();
        assert!(write_all(&appending, &long_text()).unwrap());
        assert!(fs::read(file.path()).unwrap() == [b"first", long_text().as_slice()].concat());
    }

    #[test]
    fn an_output_that_is_full_or_closed_is_an_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let error = write_all(&full, b"text").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let error = write_all(&writer, &long_text()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_attempt_never_waits_for_a_reader() {
        let (_reader, writer) = io::pipe().unwrap();
        let mut held = 0;
        while let WriteAttempt::Wrote(written) =
            write_without_waiting(&writer, &long_text()).unwrap()
        {
            held += written;
        }
        assert!(held >= PIECE_BYTES, "an empty pipe takes {held} bytes");
        let mut polled = [PollFd::new(&writer, PollFlags::OUT)];
        assert_eq!(poll(&mut polled, Some(&Timespec::default())), Ok(0));
    }
}
