//! Starts programs with `posix_spawn`, and watches for their exit. This file contains unsafe code.
//!
//! Never `fork` in the host: with a gigabyte in memory, copying the page tables would take longer than most programs
//! run. `posix_spawn` doesn't copy them, but it can't run code of this crate in the child before the program starts.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::Once;
use std::time::Duration;

use libc::{c_char, c_int, c_short};
use rustix::process::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::limits::ResourceLimits;
use crate::sandbox::ProgramSandbox;

#[cfg(not(target_vendor = "apple"))]
use libc::posix_spawn_file_actions_addchdir_np;

#[cfg(target_vendor = "apple")]
unsafe extern "C" {
    /// Declared in `<spawn.h>`; the libc crate lacks it on this system.
    fn posix_spawn_file_actions_addchdir_np(
        actions: *mut libc::posix_spawn_file_actions_t,
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

/// A program to start.
#[derive(Debug)]
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
    let actions = FileActions::new(request, descriptors)?;
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

/// What happens to the child's descriptors and working directory before the program starts.
struct FileActions(libc::posix_spawn_file_actions_t);

impl FileActions {
    fn new(request: &SpawnRequest, descriptors: &ChildDescriptors<'_>) -> Result<Self, c_int> {
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
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        // SAFETY: `this` is initialized.
        check_errno(unsafe { libc::posix_spawn_file_actions_addclosefrom_np(this, 4) })?;
        // SAFETY: `this` is initialized; the path is copied.
        check_errno(unsafe { posix_spawn_file_actions_addchdir_np(this, request.cwd.as_ptr()) })?;
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

fn check_errno(errno: c_int) -> Result<(), c_int> {
    if errno == 0 { Ok(()) } else { Err(errno) }
}
