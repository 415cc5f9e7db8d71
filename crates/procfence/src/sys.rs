//! System calls with which supervisors and reapers set themselves up: their control socket and their signals. This file
//! contains unsafe code.

use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use std::{io, ptr};

use libc::c_int;

/// The descriptor of a supervisor's control socket.
const CONTROL_FD: c_int = 3;

/// Returns the control socket that this process was started with.
///
/// # Errors
/// There is no control socket: this process wasn't started by a host.
pub(crate) fn control_socket() -> io::Result<UnixStream> {
    // SAFETY: nothing else owns the descriptor. It may not be open, which is checked next.
    let socket = unsafe { UnixStream::from_raw_fd(CONTROL_FD) };
    match socket.peer_addr() {
        Ok(_) => Ok(socket),
        Err(error) => {
            std::mem::forget(socket);
            Err(error)
        }
    }
}

/// Blocks all signals, and returns a descriptor from which SIGCHLD and SIGCONT are read. The latter is the one that
/// [`resume_periodically`] asks for: the next is sent only once it was read.
pub(crate) fn block_signals() -> io::Result<OwnedFd> {
    let (mut all, mut awaited) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the sets are initialized before they are read, and nothing else owns signalfd's descriptor.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigemptyset(awaited.as_mut_ptr());
        libc::sigaddset(awaited.as_mut_ptr(), libc::SIGCHLD);
        libc::sigaddset(awaited.as_mut_ptr(), libc::SIGCONT);
        // A parent may have passed it on as ignored; then exit statuses would be lost.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        check_result(libc::sigprocmask(
            libc::SIG_BLOCK,
            all.as_ptr(),
            ptr::null_mut(),
        ))?;
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        let descriptor = check_result(libc::signalfd(-1, awaited.as_ptr(), flags))?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Ends this process without running exit handlers.
pub(crate) fn exit_at_once(code: u8) -> ! {
    // SAFETY: nothing of this process is used after it.
    unsafe { libc::_exit(code.into()) }
}

/// Makes the system resume this process (SIGCONT) at this interval, in case something stops it. Processes that are
/// forked later have no such timer.
pub(crate) fn resume_periodically(interval: Duration) -> io::Result<()> {
    let time = libc::timespec {
        tv_sec: interval.as_secs().cast_signed(),
        tv_nsec: interval.subsec_nanos().into(),
    };
    let times = libc::itimerspec {
        it_interval: time,
        it_value: time,
    };
    let mut timer = ptr::null_mut();
    // SAFETY: all zeros are a valid `sigevent`, and everything is valid for reading or writing.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGCONT;
        check_result(libc::timer_create(
            libc::CLOCK_MONOTONIC,
            &raw mut event,
            &raw mut timer,
        ))?;
        check_result(libc::timer_settime(
            timer,
            0,
            &raw const times,
            ptr::null_mut(),
        ))?;
    }
    Ok(())
}

/// Returns the result of a system call, or the error that it set.
pub(crate) fn check_result(result: c_int) -> io::Result<c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
