//! Starts programs where the C library lacks what `posix_spawn` needs, as in distributions before 2022. A fork copies the
//! host's page tables, which takes longer, but is safe in a process with threads. This file contains unsafe code.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::ptr;

use libc::c_int;
use rustix::io::{Errno, fcntl_dupfd_cloexec, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::forked_child::{ProgramPointers, exec_program};
use crate::inherited_descriptors::close_on_exec_from;
use crate::limits::ResourceLimits;
use crate::spawn::{ChildDescriptors, SpawnRequest};

/// Starts a program as [`spawn`](crate::spawn::spawn) does.
///
/// # Errors
/// The operating system's error number. Nothing ran.
pub(crate) fn fork_spawn(
    request: &SpawnRequest,
    descriptors: &ChildDescriptors<'_>,
) -> Result<Pid, c_int> {
    // After the fork, the child can't allocate.
    let program = ProgramPointers::new(request);
    let (failure, failure_writer) = failure_pipe().map_err(Errno::raw_os_error)?;
    let signals = BlockedSignals::new().map_err(|error| errno_of(&error))?;
    // SAFETY: until its program starts, the child only makes system calls.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let error = match close_on_exec_from(4) {
            Ok(()) => exec_program(&program, &ResourceLimits::default(), None, descriptors),
            Err(error) => error.into(),
        };
        let _ = rustix::io::write(&failure_writer, &errno_of(&error).to_ne_bytes());
        // SAFETY: exits at once, without running exit handlers of the host.
        unsafe { libc::_exit(127) }
    }
    let forked = Pid::from_raw(pid).filter(|_| pid > 0);
    let pid = forked.ok_or_else(|| errno_of(&io::Error::last_os_error()))?;
    drop(signals);
    drop(failure_writer);
    let mut errno = libc::EIO.to_ne_bytes();
    // A write of so few bytes arrives whole. The end of the pipe means that the program has started.
    if retry_on_intr(|| rustix::io::read(failure.as_fd(), &mut errno)) == Ok(0) {
        return Ok(pid);
    }
    let _ = waitpid(Some(pid), WaitOptions::empty());
    Err(c_int::from_ne_bytes(errno))
}

/// Returns both ends of a pipe for the error number of a child: nothing is written if its program starts.
fn failure_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    // The child replaces the descriptors below 4.
    Ok((reader, fcntl_dupfd_cloexec(writer, 4)?))
}

/// Blocks the signals of this thread as long as it lives: in the child, a handler of the host must not run.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn new() -> io::Result<Self> {
        let (mut all, mut previous) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: `sigfillset` initializes the set before it is read, and `pthread_sigmask` the other, unless it fails.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            match libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), previous.as_mut_ptr()) {
                0 => Ok(Self(previous.assume_init())),
                errno => Err(io::Error::from_raw_os_error(errno)),
            }
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set is initialized.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

fn errno_of(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}
