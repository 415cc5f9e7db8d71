//! The other end of a program's output once the host, which read it, is gone.
//!
//! Without a reader, the first write of the program would fail with SIGPIPE. Many shells report which of their commands
//! was terminated, so SIGPIPE would end them before they run their `trap`.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::process::Pid;

/// The descriptors of a program that write to the host.
const OUTPUT_FDS: [u32; 3] = [1, 2, 3];
/// At most this much is read from each pipe at once.
const MAX_READS: usize = 256;

/// Reads and discards what a program writes.
#[derive(Debug)]
pub(crate) struct OutputDrain(Vec<File>);

impl OutputDrain {
    /// Opens the output of a program for reading. What can't be opened is left out: the program may have exited, have
    /// closed it, or belong to another user.
    pub(crate) fn open(program: Pid) -> Self {
        let open = |number| {
            let path = format!("/proc/{program}/fd/{number}");
            // The program may have replaced it. Only an anonymous pipe can be the host's.
            let target = fs::read_link(&path).ok()?;
            if !target.as_os_str().as_encoded_bytes().starts_with(b"pipe:") {
                return None;
            }
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(libc::O_NONBLOCK);
            options.open(path).ok()
        };
        Self(OUTPUT_FDS.into_iter().filter_map(open).collect())
    }

    /// Discards what has been written, without waiting for more.
    pub(crate) fn discard(&self) {
        let mut buffer = [0; 4096];
        for mut pipe in &self.0 {
            for _ in 0..MAX_READS {
                if !pipe.read(&mut buffer).is_ok_and(|read| read > 0) {
                    break;
                }
            }
        }
    }
}
