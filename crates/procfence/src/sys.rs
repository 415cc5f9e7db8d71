//! System calls of supervisors and reapers: forking, starting a program under limits, reaping any child. They rely on
//! the process having a single thread. This file contains unsafe code.

use std::ffi::CStr;
use std::io::{self, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::ptr;
use std::time::Duration;

use libc::{c_char, c_int};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use crate::exit::ProgramExit;
use crate::limits::ResourceLimits;
use crate::spawn::{ChildDescriptors, SpawnRequest, null_terminated_pointers};

/// The namespaces of a confined supervisor, besides one for users: mounts, network and System V IPC.
pub(crate) const CONFINED_NAMESPACES: c_int =
    libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC;

/// The descriptor of a supervisor's control socket.
const CONTROL_FD: c_int = 3;

/// A child that was reaped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReapedChild {
    pub(crate) pid: Pid,
    pub(crate) exit: ProgramExit,
    /// Processor time of the child and of the children that it reaped.
    pub(crate) cpu_time: Duration,
}

/// Returns the control socket that this process was started with.
///
/// # Errors
/// There is none: this process wasn't started by a host.
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

/// Blocks all signals, and returns a descriptor from which SIGCHLD and SIGCONT are read. (A SIGCONT that nobody read would
/// be the last of [`resume_periodically`].)
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

/// Makes the system resume this process (SIGCONT) at this interval, in case something stops it. A fork isn't resumed.
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

/// Starts a program as [`spawn`](crate::spawn::spawn) does, but under its limits, which it can't lift.
///
/// # Errors
/// The operating system's error number. Nothing ran.
pub(crate) fn spawn_limited(
    request: &SpawnRequest,
    descriptors: &ChildDescriptors<'_>,
) -> Result<Pid, c_int> {
    let errno_of = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    let (argv, env) = (
        null_terminated_pointers(&request.argv),
        null_terminated_pointers(&request.env),
    );
    let (mut error_reader, error_writer) = UnixStream::pair().map_err(errno_of)?;
    let Some(pid) = fork().map_err(errno_of)? else {
        let errno = exec_program(request, descriptors, &argv, &env).raw_os_error();
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

/// Keeps a process that is about to be killed from forking: it runs only when nothing else does, and, unless it is
/// privileged, may not have more processes. Its children inherit both.
pub(crate) fn slow_down(process: Pid) {
    let no_more = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // It may have exited, or belong to another user. Then the next look finds out.
    let _ = prlimit(Some(process), Resource::Nproc, no_more);
    set_scheduling(process.as_raw_nonzero().get(), libc::SCHED_IDLE, 0);
}

/// Until this is dropped, this process runs before all that have no real-time scheduling, if it is privileged.
///
/// A program that forks all the time in new sessions would leave it hardly any CPU time: with autogroups (sched(7)),
/// each session gets an equal share, whatever its processes' policy is.
pub(crate) struct RealTimeSpan {
    is_real_time: bool,
}

impl RealTimeSpan {
    pub(crate) fn begin() -> Self {
        // SAFETY: this takes no pointers.
        let policy = unsafe { libc::sched_getscheduler(0) };
        // Processes that it forks don't inherit it. A policy that somebody chose stays.
        let is_real_time = policy == libc::SCHED_OTHER
            && set_scheduling(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1);
        Self { is_real_time }
    }
}

impl Drop for RealTimeSpan {
    fn drop(&mut self) {
        if self.is_real_time {
            set_scheduling(0, libc::SCHED_OTHER, 0);
        }
    }
}

/// Sets the scheduling policy of a process (0: this one). Returns whether the system allowed it.
fn set_scheduling(process: i32, policy: c_int, priority: c_int) -> bool {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `parameters` is valid for reading.
    unsafe { libc::sched_setscheduler(process, policy, &raw const parameters) == 0 }
}

/// Gives this process namespaces of its own.
pub(crate) fn unshare(namespaces: c_int) -> io::Result<()> {
    // SAFETY: this process has a single thread, and shares no descriptors.
    check_result(unsafe { libc::unshare(namespaces) }).map(drop)
}

/// Makes the mount at `path` and all mounts below it read-only.
pub(crate) fn make_mounts_read_only(path: &CStr) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the kernel only reads the path and the attributes, whose size is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Enables the loopback interface of this process's network namespace.
pub(crate) fn enable_loopback() -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // SAFETY: all zeros are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    for (character, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *character = byte.cast_signed() as c_char;
    }
    let flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING);
    request.ifr_ifru.ifru_flags = flags.map_err(io::Error::other)?;
    // SAFETY: the kernel only reads the request.
    check_result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) })
        .map(drop)
}

fn check_result(result: c_int) -> io::Result<c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
