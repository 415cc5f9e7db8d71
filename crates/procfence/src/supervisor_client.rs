//! The host's connection to a supervisor.

use std::ffi::{CString, OsString};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open,
    set_dumpable_behavior, waitpid,
};

use crate::protocol::{ResourceLimits, send_with_fds};
use crate::reaper_supervisor::{self, FAILURE_EXIT_CODE, SupervisorRequest};
use crate::spawn::{SpawnRequest, spawn};
use crate::timing::SUPERVISOR_EXIT_TIMEOUT;
use crate::{descendants, forked_child};

/// A running supervisor. When this is dropped, the supervisor ends.
#[derive(Debug)]
pub(crate) struct SupervisorClient {
    control: UnixStream,
    pid: Pid,
    has_exited: bool,
}

/// The name of this program, under which `ps` shows its supervisors.
fn program_name() -> io::Result<CString> {
    let path = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&path).file_name().unwrap_or_default();
    Ok(CString::new(name.as_bytes())?)
}

impl SupervisorClient {
    /// Starts a supervisor from `program`, the host's own executable, with the argument `owner`. If it is `lenient`, its
    /// reapers may release what they started.
    ///
    /// # Errors
    /// The system is out of resources, or can't start the program.
    pub(crate) fn start(program: &Path, owner: &str, lenient: bool) -> io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        let theirs = dup_above_child_fds(&theirs.into())?;
        let dev_null =
            rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let dev_null = dup_above_child_fds(&dev_null)?;
        let path = CString::new(program.as_os_str().as_bytes())?;
        let mut argv = vec![program_name()?, CString::new(SUPERVISE_ARGUMENT)?];
        if lenient {
            argv.push(CString::new(LENIENT_ARGUMENT)?);
        }
        argv.push(CString::new(owner)?);
        let request = SpawnRequest {
            path,
            argv,
            env: forked_child::supervisor_environment()?,
            cwd: c"/".to_owned(),
            limits: ResourceLimits::default(),
            sandbox: None,
            host_exit_grace: Duration::ZERO,
            reports_pid: false,
        };
        let dev_null = dev_null.as_fd();
        let descriptors = [dev_null, dev_null, dev_null, theirs.as_fd()];
        let pid = descendants::spawn_supervisor(|| spawn(&request, &descriptors))
            .map_err(io::Error::from_raw_os_error)?;
        descendants::become_subreaper(lenient);
        Ok(Self {
            control,
            pid,
            has_exited: false,
        })
    }

    /// Asks the supervisor to fork a reaper with this number, connected to `socket`.
    ///
    /// # Errors
    /// The supervisor is gone, or the system is out of resources.
    pub(crate) fn spawn_reaper(&self, number: u64, socket: &UnixStream) -> io::Result<()> {
        // A program may have stopped the supervisor.
        let _ = kill_process(self.pid, Signal::CONT);
        let request = SupervisorRequest::SpawnReaper(number).encode();
        send_with_fds(&self.control, &request, &[socket.as_fd()])?;
        Ok(())
    }

    /// Kills a reaper that doesn't respond, along with everything it started.
    pub(crate) fn kill_reaper(&self, number: u64) {
        // A program may have stopped the supervisor, too.
        let _ = kill_process(self.pid, Signal::CONT);
        let request = SupervisorRequest::KillReaper(number).encode();
        let _ = send_with_fds(&self.control, &request, &[]);
    }

    /// Returns whether the supervisor has exited. While its socket is open, it only does so if it fails or is killed.
    pub(crate) fn was_killed(&mut self) -> bool {
        self.has_exited =
            self.has_exited || !matches!(waitpid(Some(self.pid), WaitOptions::NOHANG), Ok(None));
        self.has_exited
    }

    /// Waits for the exit of a supervisor that has closed its socket.
    pub(crate) fn wait_until_killed(&mut self) {
        self.has_exited = self.has_exited || waitpid(Some(self.pid), WaitOptions::empty()).is_ok();
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }
}

impl Drop for SupervisorClient {
    fn drop(&mut self) {
        if self.was_killed() {
            return;
        }
        // A program may have stopped the supervisor.
        let _ = kill_process(self.pid, Signal::CONT);
        // To the supervisor, this means that the host is gone.
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        if let Ok(pidfd) = pidfd_open(self.pid, PidfdFlags::empty()) {
            let mut watched = [PollFd::new(&pidfd, PollFlags::IN)];
            let timeout = Timespec::try_from(SUPERVISOR_EXIT_TIMEOUT).ok();
            while poll(&mut watched, timeout.as_ref()) == Err(Errno::INTR) {}
        }
        if !self.was_killed() {
            // It still kills orphans. If no thread can be started, it becomes a zombie until this process exits.
            let pid = self.pid;
            let thread = thread::Builder::new().stack_size(64 << 10);
            let _ = thread.spawn(move || waitpid(Some(pid), WaitOptions::empty()));
        }
    }
}

/// Duplicates a descriptor to a number above those that become the child's own.
fn dup_above_child_fds(descriptor: &OwnedFd) -> io::Result<OwnedFd> {
    Ok(fcntl_dupfd_cloexec(descriptor, 4)?)
}

// The entry point of supervisors: the host's own executable, started again with a hidden argument.
//
// Supervisors and reapers have a single thread and little memory, so they fork quickly no matter how much memory the
// host uses.

/// The first argument of a supervisor. It isn't the name of a command, and people have no use for it.
const SUPERVISE_ARGUMENT: &str = "__supervise";
/// The second argument of a supervisor whose reapers may release what they started.
const LENIENT_ARGUMENT: &str = "lenient";

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
    let served = forked_child::restore_limit().and_then(|()| reaper_supervisor::serve(!is_lenient));
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
