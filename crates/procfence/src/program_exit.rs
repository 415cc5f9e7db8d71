//! Tells how a program ended from how its process ended, and from its limits.

use rustix::process::Pid;

use crate::exit::{ExceededLimit, ProgramExit};
use crate::forked_child::ReapedChild;
use crate::limits::ResourceLimits;

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
