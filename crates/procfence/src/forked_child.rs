//! The children of supervisors and reapers: forking, starting a program under limits, and reaping. This relies on the
//! process having a single thread. This file contains unsafe code.

use std::io::{self, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::time::Duration;

use libc::{c_char, c_int};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};

use crate::exit::ProgramExit;
use crate::limits::ResourceLimits;
use crate::sandbox::PreparedSandbox;
use crate::spawn::{ChildDescriptors, SpawnRequest, null_terminated_pointers};
use crate::sys::check_result;

/// A child that was reaped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReapedChild {
    pub(crate) pid: Pid,
    pub(crate) exit: ProgramExit,
    /// Processor time of the child and of the children that it reaped.
    pub(crate) cpu_time: Duration,
}

/// Reaps one child that has exited. Returns `None` if all are still running.
///
/// # Errors
/// `ECHILD`: there are no children.
pub(crate) fn wait_any_child() -> io::Result<Option<ReapedChild>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both are valid for writing, and all zeros are a valid `rusage`.
    let (pid, usage) = unsafe {
        let pid = libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (check_result(pid)?, usage.assume_init())
    };
    let exit = if libc::WIFSIGNALED(status) {
        ProgramExit::Signal(libc::WTERMSIG(status))
    } else {
        ProgramExit::Code(libc::WEXITSTATUS(status))
    };
    let time = |time: libc::timeval| {
        let seconds = Duration::from_secs(time.tv_sec.try_into().unwrap_or_default());
        seconds + Duration::from_micros(time.tv_usec.try_into().unwrap_or_default())
    };
    Ok(Pid::from_raw(pid).map(|pid| ReapedChild {
        pid,
        exit,
        cpu_time: time(usage.ru_utime) + time(usage.ru_stime),
    }))
}

/// Forks. Returns the child's pid in the parent, and `None` in the child.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this process has a single thread, so the child is a complete copy and may do anything.
    let pid = check_result(unsafe { libc::fork() })?;
    Ok(Pid::from_raw(pid))
}

/// Starts a program as [`spawn`](crate::spawn::spawn) does, but under its limits and in a sandbox, which it can't lift.
///
/// # Errors
/// The operating system's error number. Nothing ran.
pub(crate) fn spawn_limited(
    request: &SpawnRequest,
    sandbox: Option<&PreparedSandbox>,
    descriptors: &ChildDescriptors<'_>,
) -> Result<Pid, c_int> {
    let errno_of = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    let (argv, env) = (
        null_terminated_pointers(&request.argv),
        null_terminated_pointers(&request.env),
    );
    let (mut error_reader, error_writer) = UnixStream::pair().map_err(errno_of)?;
    let Some(pid) = fork().map_err(errno_of)? else {
        let errno = exec_program(request, sandbox, descriptors, &argv, &env).raw_os_error();
        let bytes = errno.unwrap_or(libc::EIO).to_le_bytes();
        let _ = rustix::io::write(&error_writer, &bytes);
        // SAFETY: exits at once, without running exit handlers of the parent.
        unsafe { libc::_exit(127) };
    };
    drop(error_writer);
    let mut errno = [0; 4];
    // A successful exec closes the other end, so that there is nothing to read.
    match error_reader.read_exact(&mut errno) {
        Ok(()) => Err(c_int::from_le_bytes(errno)),
        Err(_) => Ok(pid),
    }
}

/// Replaces this process with the program. Returns only if that fails, with the cause.
fn exec_program(
    request: &SpawnRequest,
    sandbox: Option<&PreparedSandbox>,
    descriptors: &ChildDescriptors<'_>,
    argv: &[*mut c_char],
    env: &[*mut c_char],
) -> io::Error {
    let prepared = (|| {
        // SAFETY: these take numbers, and strings that outlive the calls; this process isn't used for anything else.
        unsafe {
            check_result(libc::setsid())?;
            for (number, descriptor) in (0..).zip(descriptors) {
                check_result(libc::dup2(descriptor.as_raw_fd(), number))?;
            }
            check_result(libc::chdir(request.cwd.as_ptr()))?;
            for signal in 1..=libc::SIGRTMAX() {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        apply_limits(&request.limits)?;
        if let Some(sandbox) = sandbox {
            sandbox.enter()?;
        }
        // SAFETY: the set is initialized before it is read.
        unsafe {
            let mut no_signals = MaybeUninit::uninit();
            libc::sigemptyset(no_signals.as_mut_ptr());
            check_result(libc::sigprocmask(
                libc::SIG_SETMASK,
                no_signals.as_ptr(),
                ptr::null_mut(),
            ))
        }
    })();
    if let Err(error) = prepared {
        return error;
    }
    // SAFETY: both lists end with a null pointer, and their strings live as long as `request`.
    unsafe {
        libc::execve(
            request.path.as_ptr(),
            argv.as_ptr().cast(),
            env.as_ptr().cast(),
        )
    };
    io::Error::last_os_error()
}

/// Lowers the limits of this process. Never raises one above what the system has set.
fn apply_limits(limits: &ResourceLimits) -> io::Result<()> {
    let seconds = limits.cpu.map(|cpu| cpu.as_secs());
    // At the soft limit on CPU time the program gets SIGXCPU; one second of CPU time later, at the hard limit, SIGKILL.
    let rows = [
        (Resource::Cpu, seconds, 1),
        (Resource::As, limits.memory, 0),
        (Resource::Nofile, limits.files, 0),
        (Resource::Fsize, limits.file_size, 0),
    ];
    for (resource, limit, margin) in rows {
        let Some(limit) = limit else { continue };
        let set = getrlimit(resource);
        let lowered = |limit: u64, set: Option<u64>| Some(set.map_or(limit, |set| limit.min(set)));
        let maximum = lowered(limit.saturating_add(margin), set.maximum);
        setrlimit(
            resource,
            Rlimit {
                current: lowered(limit, maximum),
                maximum,
            },
        )?;
    }
    Ok(())
}
