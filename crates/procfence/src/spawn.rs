//! Starts programs, and watches for their exit. This file contains unsafe code.
//!
//! Don't `fork` in the host unless the C library is too old for `posix_spawn`: with a gigabyte in memory, copying the page
//! tables would take longer than most programs run. `posix_spawn` doesn't copy them, but it can't run code of this crate
//! in the child before the program starts.

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::ffi::c_void;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::mem;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Once;
use std::{io, ptr};

use libc::{c_char, c_int, c_short, posix_spawn_file_actions_t};
use rustix::process::Pid;
#[cfg(target_os = "linux")]
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[cfg(target_os = "linux")]
use crate::forked_child::fork_spawn;
use crate::program::{ChildDescriptors, SpawnRequest, null_terminated_pointers};

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

// Starts programs with `posix_spawn`, if the C library has everything that this needs.

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

// Which signals the host blocks and ignores.

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
