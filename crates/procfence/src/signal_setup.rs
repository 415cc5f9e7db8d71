//! Which signals the host blocks and ignores. This file contains unsafe code.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// Unblocks all signals in this thread, and in threads started later: a parent may have passed on some as blocked.
///
/// # Errors
/// The system refuses it.
pub fn unblock_signals() -> io::Result<()> {
    let mut none = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initializes the set before it is read.
    let errno = unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut())
    };
    match errno {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Ignores SIGXFSZ in this process, so that a write beyond the limit on file sizes fails with an error. Programs are
/// started with its default action.
pub fn ignore_file_size_signal() {
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
