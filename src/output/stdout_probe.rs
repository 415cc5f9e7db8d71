//! Whether this program was started without a stdout, as by `>&-`. Rust's runtime opens /dev/null in its place before
//! `main`, where results would vanish as if somebody had taken them. Hence this looks before the runtime does. It only
//! asks; one of the files that are not safe Rust.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// What the system's loader calls before `main`.
// SAFETY: the section is a list of such functions, and this one is called once, before any thread is there.
#[cfg_attr(
    target_vendor = "apple",
    unsafe(link_section = "__DATA,__mod_init_func")
)]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[used]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: it takes numbers, and changes nothing.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Whether there was no stdout when this program began.
pub(crate) fn stdout() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
