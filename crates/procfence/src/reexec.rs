//! The entry point of supervisors: the host's own executable, started again with a hidden argument.
//!
//! Supervisors and reapers have a single thread and little memory, so they fork quickly no matter how much memory the
//! host uses.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::open_files;
use crate::reaper_supervisor::{self, FAILURE_EXIT_CODE};

/// The first argument of a supervisor. It isn't the name of a command, and people have no use for it.
pub(crate) const SUPERVISE_ARGUMENT: &str = "__supervise";
/// The second argument of a supervisor whose reapers may release what they started.
pub(crate) const LENIENT_ARGUMENT: &str = "lenient";

/// Runs a supervisor if `arguments` (of this process, with its name first) request one, and returns the exit code when
/// it's done. Otherwise returns `None` at once.
pub fn supervise(arguments: &[OsString]) -> Option<ExitCode> {
    let is_argument =
        |at: usize, name: &str| arguments.get(at).is_some_and(|argument| argument == name);
    if !is_argument(1, SUPERVISE_ARGUMENT) {
        return None;
    }
    // The owner, which comes last, is only there to be seen.
    let is_lenient = is_argument(2, LENIENT_ARGUMENT);
    let served = open_files::restore_limit().and_then(|()| reaper_supervisor::serve(!is_lenient));
    Some(match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FAILURE_EXIT_CODE),
    })
}

/// Makes this process non-dumpable: processes of the same user, such as the programs that it starts, can't read its memory
/// or environment, nor open its files through `/proc`. Its children aren't affected, because `execve` resets it.
///
/// # Errors
/// The kernel refuses it.
pub fn make_non_dumpable() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
