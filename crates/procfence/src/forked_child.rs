//! Forks: children of supervisors and reapers, which have a single thread, and programs of a host whose C library is too old for
//! `posix_spawn`. This file contains unsafe code.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::time::Duration;
use std::{io, ptr};

use libc::{c_char, c_int, c_uint};
use rustix::fs::{Mode, OFlags, RawDir, open};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, getrlimit, setrlimit, waitpid};

use crate::program::{
    ChildDescriptors, ExceededLimit, ProgramExit, ResourceLimits, SpawnRequest,
    null_terminated_pointers,
};
use crate::sandbox::PreparedSandbox;
use crate::sys::check_result;

/// The stack of a child until its program starts.
const CHILD_STACK_BYTES: usize = 256 << 10;
const STACK_ALIGNMENT: usize = 16;

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
    let program = ProgramPointers::new(request);
    let mut failure = None;
    let mut start = || {
        failure = Some(exec_program(
            &program,
            &request.limits,
            sandbox,
            descriptors,
        ));
    };
    let pid = run_in_child(&mut start).map_err(errno_of)?;
    match failure {
        Some(error) => Err(errno_of(error)),
        None => Ok(pid),
    }
}

/// Runs `start` in a child until that replaces itself with a program or returns. Until then, this process waits, and the
/// child uses its memory, which is much cheaper than a copy.
fn run_in_child(mut start: &mut dyn FnMut()) -> io::Result<Pid> {
    let mut stack: Vec<MaybeUninit<u8>> = Vec::with_capacity(CHILD_STACK_BYTES);
    let top = stack.spare_capacity_mut().as_mut_ptr_range().end;
    let top = top.map_addr(|address| address & !(STACK_ALIGNMENT - 1));
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack and `start` live longer than the child uses them, since this process has a single thread, which
    // waits meanwhile. The child never returns from `run_start`.
    let pid = unsafe { libc::clone(run_start, top.cast(), flags, (&raw mut start).cast()) };
    Pid::from_raw(check_result(pid)?).ok_or_else(|| io::ErrorKind::NotFound.into())
}

extern "C" fn run_start(start: *mut libc::c_void) -> c_int {
    // SAFETY: `run_in_child` passes a pointer to this, which nothing else uses meanwhile.
    let start = unsafe { &mut *start.cast::<&mut dyn FnMut()>() };
    start();
    // SAFETY: exits at once, without running exit handlers of the parent.
    unsafe { libc::_exit(127) }
}

/// A program with the pointers to its arguments and variables, which are made before the fork.
pub(crate) struct ProgramPointers<'a> {
    request: &'a SpawnRequest,
    argv: Vec<*mut c_char>,
    env: Vec<*mut c_char>,
}

impl<'a> ProgramPointers<'a> {
    pub(crate) fn new(request: &'a SpawnRequest) -> Self {
        Self {
            request,
            argv: null_terminated_pointers(&request.argv),
            env: null_terminated_pointers(&request.env),
        }
    }
}

/// Replaces this process with a program. Returns only if that fails, with the cause. It allocates nothing, since another
/// thread may have held the allocator's lock at the fork.
pub(crate) fn exec_program(
    program: &ProgramPointers<'_>,
    limits: &ResourceLimits,
    sandbox: Option<&PreparedSandbox>,
    descriptors: &ChildDescriptors<'_>,
) -> io::Error {
    let prepared = (|| {
        // SAFETY: these take numbers, and strings that outlive the calls; this process isn't used for anything else.
        unsafe {
            check_result(libc::setsid())?;
            for (number, descriptor) in (0..).zip(descriptors) {
                check_result(libc::dup2(descriptor.as_raw_fd(), number))?;
            }
            check_result(libc::chdir(program.request.cwd.as_ptr()))?;
            for signal in 1..=libc::SIGRTMAX() {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        apply_limits(limits)?;
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
            program.request.path.as_ptr(),
            program.argv.as_ptr().cast(),
            program.env.as_ptr().cast(),
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

// Keeps descriptors that the host has inherited from programs. This runs between a fork and the start of a program, so
// nothing here allocates. This file contains unsafe code.

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

// The limit on open files. A host that runs many programs at once needs more descriptors than the usual soft limit
// allows. Its programs get the soft limit that the host itself was started with, because some of them can't handle
// descriptors of 1024 and above.

/// The variable that tells a supervisor the soft limit of its programs.
const LIMIT_VARIABLE: &str = "PROCFENCE_OPEN_FILES";

/// The soft limit before it was raised.
static ORIGINAL_LIMIT: OnceLock<u64> = OnceLock::new();

/// Raises this process's soft limit on open files to the hard limit. Programs that are started under a
/// [`ReaperPools`](crate::ReaperPools) aren't affected.
///
/// # Errors
/// The system refuses it.
pub fn raise_open_file_limit() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current else {
        return Ok(());
    };
    if limit.maximum.is_some_and(|maximum| maximum <= current) {
        return Ok(());
    }
    set_soft_limit(limit.maximum)?;
    ORIGINAL_LIMIT.get_or_init(|| current);
    Ok(())
}

/// Returns the environment of a supervisor: the limit of its programs, if the host's own was raised.
pub(crate) fn supervisor_environment() -> io::Result<Vec<CString>> {
    match ORIGINAL_LIMIT.get() {
        Some(limit) => Ok(vec![CString::new(format!("{LIMIT_VARIABLE}={limit}"))?]),
        None => Ok(Vec::new()),
    }
}

/// Applies the limit that the host passed to this supervisor. Its reapers, and their programs, inherit it.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment of a supervisor has no other variable"
)]
pub(crate) fn restore_limit() -> io::Result<()> {
    let limit = std::env::var(LIMIT_VARIABLE);
    match limit.ok().and_then(|limit| limit.parse().ok()) {
        Some(limit) => set_soft_limit(Some(limit)),
        None => Ok(()),
    }
}

fn set_soft_limit(current: Option<u64>) -> io::Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}

/// If `child` is the program, records how it ended, or which limit killed it.
pub(crate) fn record_exit(
    exit: &mut Option<ProgramExit>,
    program: Pid,
    limits: &ResourceLimits,
    too_many_processes: bool,
    child: ReapedChild,
) {
    if child.pid != program {
        return;
    }
    let cpu_exhausted = limits.cpu.is_some_and(|limit| child.cpu_time >= limit);
    *exit = Some(match child.exit {
        ProgramExit::Signal(_) if too_many_processes => {
            ProgramExit::LimitExceeded(ExceededLimit::Processes)
        }
        ProgramExit::Signal(libc::SIGXCPU) if limits.cpu.is_some() => {
            ProgramExit::LimitExceeded(ExceededLimit::Cpu)
        }
        ProgramExit::Signal(libc::SIGKILL) if cpu_exhausted => {
            ProgramExit::LimitExceeded(ExceededLimit::Cpu)
        }
        ProgramExit::Signal(libc::SIGXFSZ) if limits.file_size.is_some() => {
            ProgramExit::LimitExceeded(ExceededLimit::FileSize)
        }
        other => other,
    });
}

// Starts programs where the C library lacks what `posix_spawn` needs, as in distributions before 2022. A fork copies the
// host's page tables, which takes longer, but is safe in a process with threads.

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
