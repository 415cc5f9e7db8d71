//! The entry point of supervisors: the host's own executable, started again with a hidden argument.
//!
//! Supervisors and reapers have a single thread and little memory, so they fork quickly no matter how much memory the
//! host uses.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::process::ExitCode;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::copy_confinement::CopyConfinement;
use crate::open_files;
use crate::reaper_supervisor::{self, FAILURE_EXIT_CODE};

/// The first argument of a supervisor. It isn't the name of a command, and people have no use for it.
pub(crate) const SUPERVISE_ARGUMENT: &str = "__supervise";
/// The second argument of a supervisor whose reapers may release what they started.
pub(crate) const LENIENT_ARGUMENT: &str = "lenient";

/// Introduces the confinement of a supervisor.
pub(crate) const CONFINE_ARGUMENT: &str = "confine";
/// The last argument of a process that only checks whether it can be confined.
pub(crate) const CHECK_ARGUMENT: &str = "check";

/// What the arguments of a supervisor say.
#[derive(Debug, Default)]
struct SupervisorArguments {
    is_lenient: bool,
    confinement: Option<CopyConfinement>,
    only_checks: bool,
}

/// Runs a supervisor if `arguments` (of this process, with its name first) request one, and returns the exit code when
/// it's done. Otherwise returns `None` at once.
pub fn supervise(arguments: &[OsString]) -> Option<ExitCode> {
    if arguments.get(1).map(OsString::as_os_str) != Some(OsStr::new(SUPERVISE_ARGUMENT)) {
        return None;
    }
    let served = parse_arguments(arguments.get(2..).unwrap_or_default()).and_then(|arguments| {
        // Before anything starts: a supervisor that can't be confined must not run programs.
        if let Some(confinement) = &arguments.confinement {
            confinement.enter()?;
        }
        if arguments.only_checks {
            return Ok(());
        }
        open_files::restore_limit()?;
        reaper_supervisor::serve(!arguments.is_lenient)
    });
    Some(match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Only a check has a stderr. If it can't be written, the exit code says enough.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::from(FAILURE_EXIT_CODE)
        }
    })
}

/// Parses what follows [`SUPERVISE_ARGUMENT`]. The owner is ignored: it's only there to be seen.
fn parse_arguments(arguments: &[OsString]) -> io::Result<SupervisorArguments> {
    let mut parsed = SupervisorArguments::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some(LENIENT_ARGUMENT) => parsed.is_lenient = true,
            Some(CHECK_ARGUMENT) => parsed.only_checks = true,
            Some(CONFINE_ARGUMENT) => {
                let confinement = CopyConfinement::from_arguments(&mut arguments);
                let confinement = confinement.ok_or(io::ErrorKind::InvalidInput)?;
                parsed.confinement = Some(confinement);
            }
            _ => {}
        }
    }
    Ok(parsed)
}

/// Makes this process non-dumpable: processes of the same user, such as the programs that it starts, can't read its memory
/// or environment, nor open its files through `/proc`. Its children aren't affected, because `execve` resets it.
///
/// # Errors
/// The kernel refuses it.
pub fn make_non_dumpable() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
