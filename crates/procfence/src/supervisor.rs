//! The process that forks reapers, and kills what outlives one; and the connection of the host to it.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{DupFlags, Errno, fcntl_dupfd_cloexec};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, kill_process,
    pidfd_open, set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal,
    setrlimit, waitpid,
};
use serde::{Deserialize, Serialize};

use crate::program::{ProgramExit, ResourceLimits, SpawnRequest};
use crate::protocol::{ReaperReply, receive_with_fds, send_with_fds};
use crate::reaper::Reaper;
use crate::signal_fd::SignalFd;
use crate::spawn::{self, spawn};
use crate::timing::{
    ORPHAN_KILL_TIMEOUT, REAPER_EXIT_TIMEOUT, RESUME_INTERVAL, SUPERVISOR_EXIT_TIMEOUT,
};
use crate::{descendants, forked_child, sys};

/// Size of a request to a supervisor. One that needs less ends with zeros.
const REQUEST_BYTES: usize = 11;

/// Exit code of a supervisor or a reaper that failed.
pub(crate) const FAILURE_EXIT_CODE: u8 = 2;

/// A request of the host to a supervisor.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum SupervisorRequest {
    /// Fork a reaper with this number. Its socket is attached.
    SpawnReaper(u64),
    /// Kill this reaper, which doesn't respond.
    KillReaper(u64),
}

impl SupervisorRequest {
    pub(crate) fn encode(self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        // The longest one fits.
        let _ = postcard::to_slice(&self, &mut bytes);
        bytes
    }
}

struct ReaperSupervisor {
    control: OwnedFd,
    signals: SignalFd,
    /// By the number that the host gave them.
    reapers: BTreeMap<u64, Pid>,
    /// Whether orphans are killed.
    strict: bool,
}

/// Runs a supervisor until the host is gone and nothing is left of what it started. If it isn't `strict`, processes
/// that reapers released are left alone.
///
/// # Errors
/// A system call failed, or this process wasn't started by a host.
pub(crate) fn serve(strict: bool) -> io::Result<()> {
    let control = sys::control_socket()?.into();
    // Other processes must not inspect its memory, and no core dump may write it to disk.
    let _ = rustix::thread::set_name(c"reapers");
    resume_at_parent_exit()?;
    sys::resume_periodically(RESUME_INTERVAL)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )?;
    if strict {
        become_subreaper()?;
    }
    let signals = SignalFd::new()?;
    // Before it forks, so that not every reaper has to look them up.
    spawn::find_functions();
    let supervisor = ReaperSupervisor {
        control,
        signals,
        reapers: BTreeMap::new(),
        strict,
    };
    supervisor.serve()
}

/// Replies in place of a reaper that couldn't be forked, so that only its call fails.
fn reply_not_started(socket: OwnedFd, error: &io::Error) {
    let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
    // If the host has closed the socket, it doesn't need the reply.
    let _ = UnixStream::from(socket).write_all(&ReaperReply::NotStarted(errno).encode());
}

/// Makes this process a child subreaper: orphaned descendants are reparented to it (`PR_SET_CHILD_SUBREAPER`).
fn become_subreaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Makes the end of the parent process resume this process, which a program may have stopped (SIGSTOP).
fn resume_at_parent_exit() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::CONT))?)
}

impl ReaperSupervisor {
    fn serve(mut self) -> io::Result<()> {
        loop {
            let wakeup = self.signals.wait(self.control.as_fd(), None)?;
            if wakeup.child_exited {
                self.reap_exited()?;
            }
            if wakeup.socket_ready {
                let mut bytes = [0; REQUEST_BYTES];
                let (read, descriptors) = receive_with_fds(&self.control, &mut bytes)?;
                if read == 0 {
                    return self.shut_down();
                }
                let request = postcard::from_bytes(&bytes);
                match (request, descriptors.into_iter().next()) {
                    (Ok(SupervisorRequest::SpawnReaper(number)), Some(socket)) => {
                        match forked_child::fork() {
                            Ok(None) => self.become_reaper(socket),
                            Ok(Some(reaper)) => {
                                self.reapers.insert(number, reaper);
                            }
                            Err(error) => reply_not_started(socket, &error),
                        }
                    }
                    (Ok(SupervisorRequest::KillReaper(number)), _) => self.kill_reaper(number),
                    _ => {}
                }
            }
        }
    }

    /// Runs this fork as a reaper, and exits without exit handlers: those belong to the supervisor, and for a short call they
    /// take longer than everything else that the reaper does.
    fn become_reaper(self, socket: OwnedFd) -> ! {
        sys::exit_at_once(match self.serve_as_reaper(socket) {
            Ok(()) => 0,
            Err(_) => FAILURE_EXIT_CODE,
        })
    }

    /// Serves calls. The reaper's socket replaces the supervisor's control socket.
    fn serve_as_reaper(self, socket: OwnedFd) -> io::Result<()> {
        let Self {
            mut control,
            signals,
            ..
        } = self;
        rustix::io::dup3(&socket, &mut control, DupFlags::CLOEXEC)?;
        drop(socket);
        // It isn't inherited by a fork.
        resume_at_parent_exit()?;
        become_subreaper()?;
        Reaper::new(UnixStream::from(control), signals).serve()
    }

    fn kill_reaper(&mut self, number: u64) {
        if let Some(reaper) = self.reapers.get(&number) {
            let _ = kill_process(*reaper, Signal::KILL);
        }
    }

    /// Reaps exited children. In strict mode, kills all orphans if one of the children was an orphan or a reaper that
    /// didn't exit cleanly.
    fn reap_exited(&mut self) -> io::Result<()> {
        let Self {
            reapers, signals, ..
        } = self;
        let mut has_orphans = false;
        descendants::reap_exited(signals, |child| {
            let mut entries = reapers.iter();
            let number = entries
                .find(|(_, reaper)| **reaper == child.pid)
                .map(|(number, _)| *number);
            let reaper = number.and_then(|number| reapers.remove(&number));
            has_orphans |= reaper.is_none() || child.exit != ProgramExit::Code(0);
        });
        if has_orphans && self.strict {
            self.kill_orphans(ORPHAN_KILL_TIMEOUT)?;
        }
        Ok(())
    }

    fn kill_orphans(&mut self, timeout: Duration) -> io::Result<()> {
        let reapers: Vec<Pid> = self.reapers.values().copied().collect();
        let mut reaped = Vec::new();
        descendants::kill_until_gone(
            &self.signals,
            timeout,
            |pid| !reapers.contains(&pid),
            |child| reaped.push(child.pid),
        )?;
        self.reapers.retain(|_, reaper| !reaped.contains(reaper));
        Ok(())
    }

    /// The host is gone. Waits for the reapers, which notice it as well, and kills what they leave.
    fn shut_down(mut self) -> io::Result<()> {
        let started = Instant::now();
        // A program may have stopped its reaper.
        for reaper in self.reapers.values() {
            let _ = kill_process(*reaper, Signal::CONT);
        }
        while !self.reapers.is_empty() && started.elapsed() < REAPER_EXIT_TIMEOUT {
            self.signals
                .wait_for_child(REAPER_EXIT_TIMEOUT.saturating_sub(started.elapsed()))?;
            self.reap_exited()?;
        }
        if self.strict {
            self.reapers.clear();
            // Nothing comes after this process, so it doesn't give up.
            self.kill_orphans(Duration::MAX)?;
        }
        Ok(())
    }
}

// The host's connection to a supervisor.

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
    let served = forked_child::restore_limit().and_then(|()| serve(!is_lenient));
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
