//! Keeps descriptors that the host has inherited from programs. This runs between a fork and the start of a program, so
//! nothing here allocates. This file contains unsafe code.

use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use libc::{c_int, c_uint};
use rustix::fs::{Mode, OFlags, RawDir, open};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

/// Room for some entries of a directory.
const DIRECTORY_BUFFER_BYTES: usize = 1024;

/// Marks this descriptor, and those above it, to be closed when a program starts.
///
/// # Errors
/// The kernel is older than 5.11, and `/proc` can't be read.
pub(crate) fn close_on_exec_from(first: c_uint) -> Result<(), Errno> {
    // SAFETY: the call takes numbers. glibc has a function for it only since 2.34.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        close_listed_on_exec(first)
    }
}

/// Does the same for kernels without that call.
fn close_listed_on_exec(first: c_uint) -> Result<(), Errno> {
    let directory = open(
        c"/proc/self/fd",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut buffer = [MaybeUninit::uninit(); DIRECTORY_BUFFER_BYTES];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_str().ok();
        let Some(number) = name.and_then(|name| name.parse::<c_int>().ok()) else {
            continue; // "." and ".."
        };
        if number.cast_unsigned() >= first {
            // SAFETY: it was open when it was listed, and this process has a single thread after the fork.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsRawFd as _, OwnedFd};

    use rustix::io::{fcntl_dupfd_cloexec, fcntl_getfd};

    use super::*;

    type CloseOnExecFrom = fn(c_uint) -> Result<(), Errno>;

    #[test]
    fn marks_a_descriptor_and_those_above_it() {
        let ways: [CloseOnExecFrom; 2] = [close_on_exec_from, close_listed_on_exec];
        for way in ways {
            let file = File::open("/dev/null").unwrap();
            // Numbers that nothing else in this process has. More than one reading of the directory is needed for them.
            let duplicates: Vec<OwnedFd> = (0..100)
                .map(|_| {
                    let duplicate = fcntl_dupfd_cloexec(&file, 500).unwrap();
                    fcntl_setfd(&duplicate, FdFlags::empty()).unwrap();
                    duplicate
                })
                .collect();
            let (below, above) = duplicates.split_first().unwrap();
            way(above[0].as_raw_fd().cast_unsigned()).unwrap();
            assert_eq!(fcntl_getfd(below).unwrap(), FdFlags::empty());
            for descriptor in above {
                assert_eq!(fcntl_getfd(descriptor).unwrap(), FdFlags::CLOEXEC);
            }
        }
    }
}
