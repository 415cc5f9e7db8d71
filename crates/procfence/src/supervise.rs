//! The processes that stand between toolq and what it starts, so that nobody is left behind however anything ends.
//!
//! ```text
//! toolq ── control ──► root ── forks ──► keeper ──► program ──► …
//!   └───────────── one socket each ─────────┘
//! ```
//!
//! A keeper serves one call after another, one at a time. It is the subreaper of what it starts: whatever leaves its
//! group, session and parent comes back to its keeper, so that who belongs to a call is never a guess. When toolq ends,
//! in whatever way, the system closes the sockets, and keepers end what they keep. The root makes keepers, and ends
//! what comes to it because a keeper was killed. All of them are this same program, each of one small thread, so that
//! they start others fast, whatever toolq has in its memory.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use crate::supervisor;

/// The argument that makes this program a root: no command's name, and of no use to a person.
pub(crate) const ARGUMENT: &str = "__supervise";
/// The second argument of a root whose keepers may let go what they started.
pub(crate) const LENIENT: &str = "lenient";

/// Serves as supervisor if that is what the arguments ask for; else none.
pub fn supervise(arguments: &[OsString]) -> Option<ExitCode> {
    let asked = |at: usize, word: &str| {
        arguments.get(at).map(OsString::as_os_str) == Some(OsStr::new(word))
    };
    if !asked(1, ARGUMENT) {
        return None;
    }
    Some(match supervisor::serve(!asked(2, LENIENT)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(2),
    })
}
