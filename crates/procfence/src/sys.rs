//! What only the system's own calls can do for a supervisor, which has one thread: forking itself, starting a program
//! under limits, waiting for any child. One of the files that are not safe Rust.

use std::io::{self, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::time::Duration;

use libc::{c_char, c_int};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};

use crate::exit::ProgramExit;
use crate::limits::ResourceLimits;
use crate::spawn::{Descriptors, Order, pointers};

/// The descriptor on which a supervisor is talked to.
const CONTROL: c_int = 3;

/// A child that was waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) pid: Pid,
    pub(crate) ending: ProgramExit,
    /// The processor time of it and of the children that it waited for.
    pub(crate) cpu: Duration,
}

/// The socket that this process was started with.
///
/// # Errors
/// There is none: a person has started it.
pub(crate) fn control() -> io::Result<UnixStream> {
    // SAFETY: nothing here owns it; that it may not be open is found out next.
    let socket = unsafe { UnixStream::from_raw_fd(CONTROL) };
    match socket.peer_addr() {
        Ok(_) => Ok(socket),
        Err(error) => {
            std::mem::forget(socket);
            Err(error)
        }
    }
}

/// Holds all signals off, and gives a descriptor from which the ends of children are read.
pub(crate) fn hold_signals() -> io::Result<OwnedFd> {
    let (mut all, mut children) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the sets are initialised before they are read, and signalfd's descriptor is owned by nobody else.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigemptyset(children.as_mut_ptr());
        libc::sigaddset(children.as_mut_ptr(), libc::SIGCHLD);
        // Ignored, as a parent may hand it down, it would take the ends away.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        checked(libc::sigprocmask(
            libc::SIG_BLOCK,
            all.as_ptr(),
            ptr::null_mut(),
        ))?;
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        let descriptor = checked(libc::signalfd(-1, children.as_ptr(), flags))?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Takes a child that has ended; none where all still run.
///
/// # Errors
/// ECHILD: there is no child.
pub(crate) fn wait_any() -> io::Result<Option<Ended>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both are valid for writing, and all zeros are a valid usage.
    let (pid, usage) = unsafe {
        let pid = libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (checked(pid)?, usage.assume_init())
    };
    let ending = if libc::WIFSIGNALED(status) {
        ProgramExit::Signal(libc::WTERMSIG(status))
    } else {
        ProgramExit::Code(libc::WEXITSTATUS(status))
    };
    let time = |time: libc::timeval| {
        let seconds = Duration::from_secs(time.tv_sec.try_into().unwrap_or_default());
        seconds + Duration::from_micros(time.tv_usec.try_into().unwrap_or_default())
    };
    Ok(Pid::from_raw(pid).map(|pid| Ended {
        pid,
        ending,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
    }))
}

/// Forks: the child's process id in the parent, none in the child.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: a supervisor has one thread, so that the child is a whole copy and may do anything.
    let pid = checked(unsafe { libc::fork() })?;
    Ok(Pid::from_raw(pid))
}

/// Starts a program as [`crate::execute::spawn`] does, under limits that it can't lift.
///
/// # Errors
/// The operating system's error number. Then nothing ran.
pub(crate) fn start_limited(order: &Order, descriptors: &Descriptors<'_>) -> Result<Pid, c_int> {
    let number = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    let (argv, env) = (pointers(&order.argv), pointers(&order.env));
    let (mut fault, told) = UnixStream::pair().map_err(number)?;
    let Some(pid) = fork().map_err(number)? else {
        let errno = become_program(order, descriptors, &argv, &env).raw_os_error();
        let bytes = errno.unwrap_or(libc::EIO).to_le_bytes();
        let _ = rustix::io::write(&told, &bytes);
        // SAFETY: it ends at once, without running what the parent has registered.
        unsafe { libc::_exit(127) };
    };
    drop(told);
    let mut errno = [0; 4];
    // Closed by the start of the program, which leaves nothing to read.
    match fault.read_exact(&mut errno) {
        Ok(()) => Err(c_int::from_le_bytes(errno)),
        Err(_) => Ok(pid),
    }
}

/// Turns this process into the program; returns only what prevented it.
fn become_program(
    order: &Order,
    descriptors: &Descriptors<'_>,
    argv: &[*mut c_char],
    env: &[*mut c_char],
) -> io::Error {
    let prepared = (|| {
        // SAFETY: these take numbers and strings that outlive them; this process is not to be used for anything else.
        unsafe {
            checked(libc::setsid())?;
            for (number, descriptor) in (0..).zip(descriptors) {
                checked(libc::dup2(descriptor.as_raw_fd(), number))?;
            }
            checked(libc::chdir(order.cwd.as_ptr()))?;
            for signal in 1..=libc::SIGRTMAX() {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        limit(&order.limits)?;
        // SAFETY: the set is initialised before it is read.
        unsafe {
            let mut none = MaybeUninit::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            checked(libc::sigprocmask(
                libc::SIG_SETMASK,
                none.as_ptr(),
                ptr::null_mut(),
            ))
        }
    })();
    if let Err(error) = prepared {
        return error;
    }
    // SAFETY: both lists end in null, and their strings live as long as `order`.
    unsafe {
        libc::execve(
            order.path.as_ptr(),
            argv.as_ptr().cast(),
            env.as_ptr().cast(),
        )
    };
    io::Error::last_os_error()
}

/// Lowers the limits of this process; never raises one that the system has set.
fn limit(limits: &ResourceLimits) -> io::Result<()> {
    let seconds = limits.cpu.map(|cpu| cpu.as_secs());
    // At the lower one it is told, at the upper one killed.
    let rows = [
        (Resource::Cpu, seconds, 1),
        (Resource::As, limits.memory, 0),
        (Resource::Nofile, limits.files, 0),
        (Resource::Fsize, limits.file_size, 0),
    ];
    for (resource, limit, margin) in rows {
        let Some(limit) = limit else { continue };
        let set = getrlimit(resource);
        let below = |limit: u64, set: Option<u64>| Some(set.map_or(limit, |set| limit.min(set)));
        let maximum = below(limit.saturating_add(margin), set.maximum);
        setrlimit(
            resource,
            Rlimit {
                current: below(limit, maximum),
                maximum,
            },
        )?;
    }
    Ok(())
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
