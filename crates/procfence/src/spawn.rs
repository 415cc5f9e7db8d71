//! Starts programs, and watches for their exit. This file contains unsafe code.
//!
//! Don't `fork` in the host unless the C library is too old for `posix_spawn`: with a gigabyte in memory, copying the page
//! tables would take longer than most programs run. `posix_spawn` doesn't copy them, but it can't run code of this crate
//! in the child before the program starts.

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;

use std::ffi::CString;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::ffi::c_void;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::mem;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::Once;
use std::time::Duration;
use std::{io, ptr};

use libc::{c_char, c_int, c_short, posix_spawn_file_actions_t};
use rustix::io::{Errno, fcntl_dupfd_cloexec, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::forked_child::{ProgramPointers, close_on_exec_from, exec_program};
use crate::protocol::ResourceLimits;
use crate::sandbox::ProgramSandbox;

/// A program to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SpawnRequest {
    /// The executable file.
    pub path: CString,
    /// The arguments, starting with the program's own name.
    pub argv: Vec<CString>,
    /// The whole environment, as `NAME=value`.
    pub env: Vec<CString>,
    /// The working directory.
    pub cwd: CString,
    /// Applied by reapers before the program starts; ignored by [`spawn`].
    pub limits: ResourceLimits,
    /// What the program can reach. Applied by reapers; ignored by [`spawn`].
    pub sandbox: Option<ProgramSandbox>,
    /// The time between SIGTERM and SIGKILL if the host is gone, at most [`MAX_HOST_EXIT_GRACE`]. Used by reapers;
    /// ignored by [`spawn`].
    ///
    /// [`MAX_HOST_EXIT_GRACE`]: crate::timing::MAX_HOST_EXIT_GRACE
    pub host_exit_grace: Duration,
    /// Whether the reaper replies with the program's process id once it runs.
    pub reports_pid: bool,
}

/// What becomes descriptors 0, 1, 2 and 3 of the program, the only ones it gets. All must be 4 or higher.
pub type ChildDescriptors<'a> = [BorrowedFd<'a>; 4];

/// Starts a program as the leader of its own session and process group, with default signals. Doesn't apply its
/// limits or its sandbox, since no code can run in the child before the program starts.
///
/// # Errors
/// The operating system's error number. Nothing ran.
pub fn spawn(request: &SpawnRequest, descriptors: &ChildDescriptors<'_>) -> Result<Pid, c_int> {
    static SIGCHLD: Once = Once::new();
    SIGCHLD.call_once(restore_default_sigchld);
    match FileActionFunctions::find() {
        Some(functions) => posix_spawn(request, descriptors, functions),
        #[cfg(target_os = "linux")]
        None => fork_spawn(request, descriptors),
        #[cfg(not(target_os = "linux"))]
        None => Err(libc::ENOSYS),
    }
}

/// Looks up what [`spawn`] needs of the C library. Otherwise the first program that this process starts does it.
#[cfg(target_os = "linux")]
pub(crate) fn find_functions() {
    FileActionFunctions::find();
}

/// Returns a descriptor that becomes readable when the process exits (a pidfd), or `None` if the system doesn't support
/// that or can't provide one now.
pub fn watch_for_exit(pid: Pid) -> Option<AsyncFd<OwnedFd>> {
    #[cfg(target_os = "linux")]
    {
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
        // SAFETY: an owned descriptor stays open and unchanged as long as its owner lives.
        unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }.ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// Restores the default action of SIGCHLD, which a parent may have passed on as ignored: exit codes would be lost.
fn restore_default_sigchld() {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call only returns the current one; setting the default runs no code of ours.
    unsafe {
        let result = libc::sigaction(libc::SIGCHLD, ptr::null(), action.as_mut_ptr());
        if result == 0 && action.assume_init().sa_sigaction == libc::SIG_IGN {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// Returns pointers to the strings, followed by a null pointer, as C expects.
pub(crate) fn null_terminated_pointers(strings: &[CString]) -> Vec<*mut c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr().cast_mut());
    pointers.chain([ptr::null_mut()]).collect()
}

// Starts programs with `posix_spawn`, if the C library has everything that this needs. This file contains unsafe code.

#[cfg(target_vendor = "apple")]
unsafe extern "C" {
    /// Declared in `<spawn.h>`; the libc crate lacks it on this system.
    fn posix_spawn_file_actions_addchdir_np(
        actions: *mut posix_spawn_file_actions_t,
        path: *const c_char,
    ) -> c_int;
}

/// The program gets its own session and process group.
#[cfg(not(target_vendor = "apple"))]
const OWN_SESSION_FLAGS: c_short = libc::POSIX_SPAWN_SETSID;
/// The same (`POSIX_SPAWN_SETSID` of `<sys/spawn.h>`, which the libc crate lacks), and no other descriptors.
#[cfg(target_vendor = "apple")]
const OWN_SESSION_FLAGS: c_short = 0x0400 | libc::POSIX_SPAWN_CLOEXEC_DEFAULT as c_short;

#[expect(
    clippy::cast_possible_truncation,
    reason = "POSIX defines the flags field as a short"
)]
const SPAWN_FLAGS: c_short =
    OWN_SESSION_FLAGS | (libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK) as c_short;

/// Signals that a program expects to have their default action, whatever the host or its parent ignores.
const DEFAULTED_SIGNALS: [c_int; 10] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGPIPE,
    libc::SIGTERM,
    libc::SIGCHLD,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGXFSZ,
];

type AddChangeDir = unsafe extern "C" fn(*mut posix_spawn_file_actions_t, *const c_char) -> c_int;
type AddCloseFrom = unsafe extern "C" fn(*mut posix_spawn_file_actions_t, c_int) -> c_int;

/// Extensions of `posix_spawn` that older C libraries lack.
#[derive(Clone, Copy)]
struct FileActionFunctions {
    /// Sets the working directory.
    add_change_dir: AddChangeDir,
    /// Closes this descriptor and those above it, where the system needs that.
    add_close_from: Option<AddCloseFrom>,
}

impl FileActionFunctions {
    /// Returns the functions, or `None` if the C library lacks one: glibc has them since 2.29 and 2.34. They are looked
    /// up, because a program that names them doesn't start with an older glibc.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    pub(crate) fn find() -> Option<Self> {
        static FOUND: std::sync::OnceLock<Option<FileActionFunctions>> = std::sync::OnceLock::new();
        *FOUND.get_or_init(|| {
            // SAFETY: the names are strings of C. The functions, where they exist, have these types, and a null pointer
            // becomes `None`.
            unsafe {
                let add_change_dir = libc::dlsym(
                    libc::RTLD_DEFAULT,
                    c"posix_spawn_file_actions_addchdir_np".as_ptr(),
                );
                let add_close_from = libc::dlsym(
                    libc::RTLD_DEFAULT,
                    c"posix_spawn_file_actions_addclosefrom_np".as_ptr(),
                );
                Some(Self {
                    add_change_dir: mem::transmute::<*mut c_void, Option<AddChangeDir>>(
                        add_change_dir,
                    )?,
                    add_close_from: Some(mem::transmute::<*mut c_void, Option<AddCloseFrom>>(
                        add_close_from,
                    )?),
                })
            }
        })
    }

    /// Returns the functions.
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    #[expect(clippy::unnecessary_wraps, reason = "the signature is that with glibc")]
    pub(crate) fn find() -> Option<Self> {
        Some(Self {
            #[cfg(target_vendor = "apple")]
            add_change_dir: posix_spawn_file_actions_addchdir_np,
            #[cfg(not(target_vendor = "apple"))]
            add_change_dir: libc::posix_spawn_file_actions_addchdir_np,
            add_close_from: None,
        })
    }
}

/// Starts a program as [`spawn`](crate::spawn::spawn) does.
///
/// # Errors
/// The operating system's error number. Nothing ran.
fn posix_spawn(
    request: &SpawnRequest,
    descriptors: &ChildDescriptors<'_>,
    functions: FileActionFunctions,
) -> Result<Pid, c_int> {
    let actions = FileActions::new(request, descriptors, functions)?;
    let attributes = SpawnAttributes::new()?;
    let argv = null_terminated_pointers(&request.argv);
    let env = null_terminated_pointers(&request.env);
    let mut pid = 0;
    // SAFETY: `actions` and `attributes` are initialized; `argv` and `env` end with a null pointer and point to strings
    // that `request` keeps alive; the system only reads them.
    check_errno(unsafe {
        libc::posix_spawn(
            &raw mut pid,
            request.path.as_ptr(),
            &raw const actions.0,
            &raw const attributes.0,
            argv.as_ptr(),
            env.as_ptr(),
        )
    })?;
    Pid::from_raw(pid).ok_or(libc::ESRCH)
}

/// What happens to the child's descriptors and working directory before the program starts.
struct FileActions(posix_spawn_file_actions_t);

impl FileActions {
    fn new(
        request: &SpawnRequest,
        descriptors: &ChildDescriptors<'_>,
        functions: FileActionFunctions,
    ) -> Result<Self, c_int> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: the call initializes its argument or fails.
        check_errno(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
        // SAFETY: it succeeded.
        let mut actions = Self(unsafe { actions.assume_init() });
        let this = &raw mut actions.0;
        for (number, descriptor) in (0..).zip(descriptors) {
            // SAFETY: `this` is initialized; descriptors are plain numbers here.
            check_errno(unsafe {
                libc::posix_spawn_file_actions_adddup2(this, descriptor.as_raw_fd(), number)
            })?;
        }
        // Our own descriptors are all close-on-exec; this closes those that the host inherited from its parent.
        if let Some(add_close_from) = functions.add_close_from {
            // SAFETY: `this` is initialized.
            check_errno(unsafe { add_close_from(this, 4) })?;
        }
        // SAFETY: `this` is initialized; the path is copied.
        check_errno(unsafe { (functions.add_change_dir)(this, request.cwd.as_ptr()) })?;
        Ok(actions)
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: it is initialized, and not used afterwards.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

/// The session and the signals of the child.
struct SpawnAttributes(libc::posix_spawnattr_t);

impl SpawnAttributes {
    fn new() -> Result<Self, c_int> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the call initializes its argument or fails.
        check_errno(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: it succeeded.
        let mut attributes = Self(unsafe { attributes.assume_init() });
        let this = &raw mut attributes.0;
        let (default_signals, no_signals) = (signal_set(&DEFAULTED_SIGNALS), signal_set(&[]));
        // SAFETY: `this` is initialized; the sets are copied.
        unsafe {
            check_errno(libc::posix_spawnattr_setflags(this, SPAWN_FLAGS))?;
            check_errno(libc::posix_spawnattr_setsigdefault(
                this,
                &raw const default_signals,
            ))?;
            check_errno(libc::posix_spawnattr_setsigmask(
                this,
                &raw const no_signals,
            ))?;
        }
        Ok(attributes)
    }
}

impl Drop for SpawnAttributes {
    fn drop(&mut self) {
        // SAFETY: it is initialized, and not used afterwards.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

fn signal_set(members: &[c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initializes the set, and can't fail on a valid pointer; the members are signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in members {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

fn check_errno(errno: c_int) -> Result<(), c_int> {
    if errno == 0 { Ok(()) } else { Err(errno) }
}

// Starts programs where the C library lacks what `posix_spawn` needs, as in distributions before 2022. A fork copies the
// host's page tables, which takes longer, but is safe in a process with threads. This file contains unsafe code.

/// Starts a program as [`spawn`](crate::spawn::spawn) does.
///
/// # Errors
/// The operating system's error number. Nothing ran.
fn fork_spawn(request: &SpawnRequest, descriptors: &ChildDescriptors<'_>) -> Result<Pid, c_int> {
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
