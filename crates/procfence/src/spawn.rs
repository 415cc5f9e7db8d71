//! Starting a program by `posix_spawn`, and watching for its end: one of the files that are not safe Rust.
//!
//! Never `fork`: with a transcript of a gigabyte in memory it copies page tables for longer than most tools run. Hence
//! nothing of ours runs between the start of the child and its order.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::Once;

use libc::{c_char, c_int, c_short};
use rustix::process::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::limits::ResourceLimits;

/// A session and group of its own.
#[cfg(not(target_vendor = "apple"))]
const OWN: c_short = libc::POSIX_SPAWN_SETSID;
/// The same (from <sys/spawn.h>: the libc crate doesn't have it), and no descriptors but those that it is given.
#[cfg(target_vendor = "apple")]
const OWN: c_short = 0x0400 | libc::POSIX_SPAWN_CLOEXEC_DEFAULT as c_short;

#[expect(
    clippy::cast_possible_truncation,
    reason = "flags of a field that is a c_short by POSIX"
)]
const FLAGS: c_short =
    OWN | (libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK) as c_short;

/// Signals that a program expects to find as the system gave them, whatever toolq or its parent ignores.
const DEFAULTS: [c_int; 10] = [
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

/// What is started.
#[derive(Debug)]
pub struct Order {
    /// The file.
    pub path: CString,
    /// With its own name as the first.
    pub argv: Vec<CString>,
    /// `NAME=value`; nothing else is passed on.
    pub env: Vec<CString>,
    /// The working directory.
    pub cwd: CString,
    /// Applied before the program starts.
    pub limits: ResourceLimits,
}

/// What becomes descriptors 0, 1, 2 and 3, the only ones that the program gets. None of them is below 4.
pub type Descriptors<'a> = [BorrowedFd<'a>; 4];

/// Starts a program as the leader of a session and a process group of its own, with default signals. Limits are not
/// set: nothing can be done between its start and the program's.
///
/// # Errors
/// The operating system's error number. Then nothing ran.
pub fn spawn(order: &Order, descriptors: &Descriptors<'_>) -> Result<Pid, c_int> {
    static SIGCHLD: Once = Once::new();
    SIGCHLD.call_once(keep_exit_codes);
    let actions = Actions::new(order, descriptors)?;
    let attributes = Attributes::new()?;
    let argv = pointers(&order.argv);
    let env = pointers(&order.env);
    let mut pid = 0;
    // SAFETY: `actions` and `attributes` are initialised; `argv` and `env` end with a null pointer and point to strings
    // that `program` keeps alive; the system only reads them.
    check(unsafe {
        libc::posix_spawn(
            &raw mut pid,
            order.path.as_ptr(),
            &raw const actions.0,
            &raw const attributes.0,
            argv.as_ptr(),
            env.as_ptr(),
        )
    })?;
    Pid::from_raw(pid).ok_or(libc::ESRCH)
}

/// A descriptor that becomes readable when the program has ended; none where the system has no such thing or can't give
/// one now.
pub fn watch(pid: Pid) -> Option<AsyncFd<OwnedFd>> {
    #[cfg(target_os = "linux")]
    {
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
        // SAFETY: an owned descriptor stays open, and the same, as long as its owner lives.
        unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }.ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// What the child does with its descriptors and its folder before the program begins.
struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new(order: &Order, descriptors: &Descriptors<'_>) -> Result<Self, c_int> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: the call initialises what it is given, or says that it could not.
        check(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
        // SAFETY: it succeeded.
        let mut actions = Self(unsafe { actions.assume_init() });
        let this = &raw mut actions.0;
        for (number, descriptor) in (0..).zip(descriptors) {
            // SAFETY: `this` is initialised; descriptors are numbers to it.
            check(unsafe {
                libc::posix_spawn_file_actions_adddup2(this, descriptor.as_raw_fd(), number)
            })?;
        }
        // Ours are all closed at exec; this closes what toolq itself was handed by its parent.
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        // SAFETY: `this` is initialised.
        check(unsafe { libc::posix_spawn_file_actions_addclosefrom_np(this, 4) })?;
        // SAFETY: `this` is initialised; the path is copied.
        check(unsafe { libc::posix_spawn_file_actions_addchdir_np(this, order.cwd.as_ptr()) })?;
        Ok(actions)
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: it is initialised, and used no more.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

/// How the child is set up.
struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> Result<Self, c_int> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the call initialises what it is given, or says that it could not.
        check(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: it succeeded.
        let mut attributes = Self(unsafe { attributes.assume_init() });
        let this = &raw mut attributes.0;
        let (defaults, none) = (signals(&DEFAULTS), signals(&[]));
        // SAFETY: `this` is initialised; the sets are copied.
        unsafe {
            check(libc::posix_spawnattr_setflags(this, FLAGS))?;
            check(libc::posix_spawnattr_setsigdefault(
                this,
                &raw const defaults,
            ))?;
            check(libc::posix_spawnattr_setsigmask(this, &raw const none))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: it is initialised, and used no more.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

fn signals(members: &[c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set, and can't fail on a valid pointer; the members are signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in members {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// Where SIGCHLD is ignored, which a parent may hand down, children vanish without an exit code.
fn keep_exit_codes() {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with no new action the call only fills in the present one; setting the default runs no code of ours.
    unsafe {
        let asked = libc::sigaction(libc::SIGCHLD, ptr::null(), action.as_mut_ptr());
        if asked == 0 && action.assume_init().sa_sigaction == libc::SIG_IGN {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// The strings as C wants a list: pointers, the last one null.
pub(crate) fn pointers(strings: &[CString]) -> Vec<*mut c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr().cast_mut());
    pointers.chain([ptr::null_mut()]).collect()
}

fn check(errno: c_int) -> Result<(), c_int> {
    if errno == 0 { Ok(()) } else { Err(errno) }
}
