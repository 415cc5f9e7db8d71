//! Writes as much to stdout as its reader takes now, and waits for a reader only where the wait can be given up.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use crate::output::stalled_reader::{self, PIECE_BYTES};

/// Writes `bytes` to `stdout` past any buffer. Returns `false` if its reader was given up before it took everything.
pub(super) fn write_all(stdout: &impl AsFd, mut bytes: &[u8]) -> io::Result<bool> {
    if bytes.is_empty() {
        return Ok(true);
    }
    let file_type = FileType::from_raw_mode(fstat(stdout)?.st_mode);
    // A file has no reader to wait for, so it takes everything at once.
    let piece_bytes = if file_type.is_file() {
        usize::MAX
    } else {
        PIECE_BYTES
    };
    let mut can_attempt = !file_type.is_file();
    while !bytes.is_empty() {
        let attempt = if can_attempt {
            write_without_waiting(stdout, bytes)?
        } else {
            WriteAttempt::Unsupported
        };
        if let WriteAttempt::Wrote(written) = attempt {
            bytes = &bytes[written..];
            continue;
        }
        if !stalled_reader::wait_until_writable(stdout)? {
            return Ok(false);
        }
        can_attempt = matches!(attempt, WriteAttempt::Full);
        // Another writer may have filled the pipe again, so only another attempt can't block. A socket may call itself ready
        // and still take nothing without waiting.
        if !(can_attempt && file_type.is_fifo()) {
            let piece = &bytes[..bytes.len().min(piece_bytes)];
            bytes = &bytes[write_piece(stdout, piece)?..];
        }
    }
    Ok(true)
}

/// What came of a write that must not wait.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux can"))]
enum WriteAttempt {
    /// This many bytes were written.
    Wrote(usize),
    /// The output takes nothing now.
    Full,
    /// The kernel can't write so much to such an output without waiting.
    Unsupported,
}

/// Writes as much of `bytes` as `stdout` takes now. Unlike `O_NONBLOCK`, this changes nothing for others who write to the
/// same pipe, and unlike a write of more than [`PIECE_BYTES`] after `poll`, it can't block when they were faster.
#[cfg(target_os = "linux")]
fn write_without_waiting(stdout: &impl AsFd, bytes: &[u8]) -> io::Result<WriteAttempt> {
    use rustix::io::{ReadWriteFlags, pwritev2};

    /// Write at the current position, as `write` does; pipes have no other.
    const CURRENT_POSITION: u64 = u64::MAX;
    let parts = [io::IoSlice::new(bytes)];
    match pwritev2(stdout, &parts, CURRENT_POSITION, ReadWriteFlags::NOWAIT) {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        Ok(written) => Ok(WriteAttempt::Wrote(written)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(WriteAttempt::Full),
        // Pipes can since Linux 6.4, named pipes and terminals can't. Some sandboxes don't know the system call, or refuse it.
        // A socket that keeps messages apart takes no long ones.
        Err(
            Errno::OPNOTSUPP
            | Errno::NOSYS
            | Errno::INVAL
            | Errno::SPIPE
            | Errno::PERM
            | Errno::MSGSIZE,
        ) => Ok(WriteAttempt::Unsupported),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn write_without_waiting(_stdout: &impl AsFd, _bytes: &[u8]) -> io::Result<WriteAttempt> {
    Ok(WriteAttempt::Unsupported)
}

/// Writes as much of `piece` as `stdout` takes now that it is ready, and returns how much that was.
fn write_piece(stdout: &impl AsFd, piece: &[u8]) -> io::Result<usize> {
    match rustix::io::write(stdout, piece) {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        Ok(written) => Ok(written),
        // Another process may have made the output nonblocking, and a third one may have been faster.
        Err(Errno::INTR | Errno::AGAIN) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{Read, Write as _};
    use std::os::unix::net::UnixStream;
    use std::thread;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{CWD, Mode, OFlags, fcntl_getfl, fcntl_setfl, mkfifoat};

    use super::*;

    /// More than a pipe holds, and no multiple of a piece.
    fn long_text() -> Vec<u8> {
        (0..=250).cycle().take(1_000_003).collect()
    }

    /// Writes to `writer` while a thread reads `reader`, and checks what arrives. With `flags`, somebody has changed the
    /// descriptor.
    fn expect_everything(mut reader: impl Read + Send + 'static, writer: impl AsFd, flags: OFlags) {
        fcntl_setfl(&writer, fcntl_getfl(&writer).unwrap() | flags).unwrap();
        let read = thread::spawn(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).map(|_| bytes)
        });
        assert!(write_all(&writer, &long_text()).unwrap());
        drop(writer);
        assert!(read.join().unwrap().unwrap() == long_text());
    }

    #[test]
    fn a_pipe_takes_everything_in_order() {
        for flags in [OFlags::empty(), OFlags::NONBLOCK] {
            let (reader, writer) = io::pipe().unwrap();
            expect_everything(reader, writer, flags);
        }
    }

    /// The kernel can't write to a named pipe without waiting.
    #[test]
    fn a_named_pipe_takes_everything_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        for flags in [OFlags::empty(), OFlags::NONBLOCK] {
            let open = path.clone();
            let reader = thread::spawn(move || File::open(open).unwrap());
            let writer = File::options().write(true).open(&path).unwrap();
            expect_everything(reader.join().unwrap(), writer, flags);
        }
    }

    #[test]
    fn a_socket_takes_everything_in_order() {
        for flags in [OFlags::empty(), OFlags::NONBLOCK] {
            let (reader, writer) = UnixStream::pair().unwrap();
            reader.set_nonblocking(false).unwrap();
            expect_everything(reader, writer, flags);
        }
    }

    #[test]
    fn a_file_is_appended_to() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "first").unwrap();
        let appending = File::options().append(true).open(file.path()).unwrap();
        assert!(write_all(&appending, &long_text()).unwrap());
        assert!(fs::read(file.path()).unwrap() == [b"first", long_text().as_slice()].concat());
    }

    #[test]
    fn a_closed_pipe_is_an_error() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let error = write_all(&writer, &long_text()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let error = write_all(&full, b"text").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_attempt_never_waits_for_a_reader() {
        let (_reader, writer) = io::pipe().unwrap();
        let attempt = || write_without_waiting(&writer, &long_text()).unwrap();
        if matches!(attempt(), WriteAttempt::Unsupported) {
            let _ = writeln!(
                io::stderr(),
                "skipped: this kernel can't write to a pipe without waiting"
            );
            return;
        }
        while let WriteAttempt::Wrote(_) = attempt() {}
        let mut polled = [PollFd::new(&writer, PollFlags::OUT)];
        assert_eq!(poll(&mut polled, Some(&Timespec::default())), Ok(0));
    }
}
