//! Detects that toolq was started without a stdout, as with `>&-`. Rust's runtime opens /dev/null in its place before
//! `main`, and results would be lost silently. So this probe runs before the runtime does. It changes nothing, but it
//! needs unsafe code.

use std::sync::atomic::{AtomicBool, Ordering};

static STARTED_WITHOUT_STDOUT: AtomicBool = AtomicBool::new(false);

/// Called by the system's loader before `main`.
// SAFETY: the section is a list of such functions, and this one is called once, before any thread exists.
#[cfg_attr(
    target_vendor = "apple",
    unsafe(link_section = "__DATA,__mod_init_func")
)]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[used]
static PROBE_BEFORE_MAIN: extern "C" fn() = probe_stdout;

extern "C" fn probe_stdout() {
    // SAFETY: `F_GETFD` only reads the flags of a descriptor, and reports an invalid one as an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    STARTED_WITHOUT_STDOUT.store(flags == -1, Ordering::Relaxed);
}

/// Returns whether stdout was missing when the program started.
pub(crate) fn started_without_stdout() -> bool {
    STARTED_WITHOUT_STDOUT.load(Ordering::Relaxed)
}
