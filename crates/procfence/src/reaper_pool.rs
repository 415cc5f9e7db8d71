//! The host's side: idle reapers, and the supervisor that forks more.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream as Blocking;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use tokio::net::UnixStream;

use crate::copy_confinement::CopyConfinement;
use crate::fd_passing::send_with_fds;
use crate::limits::ResourceLimits;
use crate::open_files;
use crate::orphans;
use crate::proc_tree;
use crate::reaper_client::ReaperClient;
use crate::reaper_supervisor;
use crate::reexec::{LENIENT_ARGUMENT, SUPERVISE_ARGUMENT};
use crate::spawn::{SpawnRequest, spawn};
use crate::timing::SUPERVISOR_EXIT_TIMEOUT;

/// The reapers of a host, in two pools: strict ones, and lenient ones, which may release what they started.
#[derive(Debug)]
pub struct Supervisor {
    strict: Arc<ReaperPool>,
    lenient: Arc<ReaperPool>,
}

/// Reapers of one kind. Their supervisor is started when the first reaper is needed.
#[derive(Debug)]
pub struct ReaperPool {
    /// The host's executable.
    program: PathBuf,
    /// An argument of the supervisor and its reapers, by which they can be found.
    owner: String,
    lenient: bool,
    confinement: Option<CopyConfinement>,
    supervisor: Mutex<Option<SupervisorClient>>,
    idle: Mutex<Vec<Arc<ReaperClient>>>,
}

#[derive(Debug)]
struct SupervisorClient {
    control: Blocking,
    pid: Pid,
    reapers_spawned: u64,
    has_exited: bool,
}

impl Supervisor {
    /// Creates both pools. `program` is the host's own executable, and `owner` becomes an argument of the supervisors
    /// and reapers, by which they can be found. Returns `None` if `program` doesn't exist, or if `/proc` is missing or
    /// belongs to another pid namespace.
    pub fn new(program: &Path, owner: &str) -> Option<Self> {
        if !program.exists() || !proc_tree::shows_own_pid_namespace() {
            return None;
        }
        let new_pool = |lenient| Arc::new(ReaperPool::new(program, owner, lenient, None));
        Some(Self {
            strict: new_pool(false),
            lenient: new_pool(true),
        })
    }

    /// Confines all programs that this supervisor starts. [`CopyConfinement::check`] tells beforehand whether the system
    /// allows it; if it turns out not to, no program starts.
    #[must_use]
    pub fn confined(self, confinement: &CopyConfinement) -> Self {
        let new_pool = |pool: &ReaperPool| {
            let confinement = Some(confinement.clone());
            let pool = ReaperPool::new(&pool.program, &pool.owner, pool.lenient, confinement);
            Arc::new(pool)
        };
        Self {
            strict: new_pool(&self.strict),
            lenient: new_pool(&self.lenient),
        }
    }

    /// Returns the pool for programs whose leftovers are killed, or, if `lenient`, may be released.
    pub fn pool(&self, lenient: bool) -> &Arc<ReaperPool> {
        if lenient { &self.lenient } else { &self.strict }
    }

    /// Stops the idle reapers and the supervisors.
    pub fn close(&self) {
        self.strict.close();
        self.lenient.close();
    }
}

impl ReaperPool {
    fn new(
        program: &Path,
        owner: &str,
        lenient: bool,
        confinement: Option<CopyConfinement>,
    ) -> Self {
        Self {
            program: program.to_owned(),
            owner: owner.to_owned(),
            lenient,
            confinement,
            supervisor: Mutex::new(None),
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Takes an idle reaper out of the pool, or requests a new one.
    ///
    /// # Errors
    /// The system is out of resources, or can't start the supervisor.
    pub fn take_reaper(&self) -> io::Result<Arc<ReaperClient>> {
        if let Some(reaper) = lock(&self.idle).pop() {
            return Ok(reaper);
        }
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = theirs.into_std()?;
        theirs.set_nonblocking(false)?;
        let mut supervisor = lock(&self.supervisor);
        let number = match supervisor
            .as_mut()
            .map(|supervisor| supervisor.spawn_reaper(&theirs))
        {
            Some(Ok(number)) => number,
            // There is none yet, or a program has killed it, in which case its reapers continue without it.
            _ => supervisor
                .insert(SupervisorClient::start(self)?)
                .spawn_reaper(&theirs)?,
        };
        Ok(Arc::new(ReaperClient {
            number,
            socket: ours,
        }))
    }

    /// Returns a reaper to the pool when nothing is left of its call.
    pub fn return_reaper(&self, reaper: Arc<ReaperClient>) {
        lock(&self.idle).push(reaper);
    }

    /// Kills a reaper that doesn't respond, along with everything it started.
    pub fn kill_reaper(&self, reaper: &ReaperClient) {
        if let Some(supervisor) = &mut *lock(&self.supervisor) {
            // A program may have stopped the supervisor, too.
            let _ = kill_process(supervisor.pid, Signal::CONT);
            let _ = send_with_fds(
                &supervisor.control,
                &reaper_supervisor::SupervisorRequest::KillReaper(reaper.number).encode(),
                &[],
            );
        }
    }

    fn close(&self) {
        lock(&self.idle).clear();
        *lock(&self.supervisor) = None;
    }

    /// Cleans up after a reaper that died unexpectedly. Its supervisor kills the descendants it left; if the supervisor
    /// was killed, too, the host does.
    pub async fn on_reaper_killed(&self) {
        if lock(&self.supervisor)
            .as_mut()
            .is_some_and(SupervisorClient::was_killed)
        {
            // If no thread can be started, closing the pool looks again.
            let _ = tokio::task::spawn_blocking(|| orphans::kill_and_reap(None)).await;
        }
    }
}

impl Drop for ReaperPool {
    fn drop(&mut self) {
        self.close();
    }
}

/// The name of this program, under which `ps` shows its supervisors.
fn program_name() -> io::Result<CString> {
    let path = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&path).file_name().unwrap_or_default();
    Ok(CString::new(name.as_bytes())?)
}

impl SupervisorClient {
    fn start(pool: &ReaperPool) -> io::Result<Self> {
        let (control, theirs) = Blocking::pair()?;
        let theirs = dup_above_child_fds(&theirs.into())?;
        let dev_null =
            rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let dev_null = dup_above_child_fds(&dev_null)?;
        let path = CString::new(pool.program.as_os_str().as_bytes())?;
        let mut argv = vec![program_name()?, CString::new(SUPERVISE_ARGUMENT)?];
        if pool.lenient {
            argv.push(CString::new(LENIENT_ARGUMENT)?);
        }
        if let Some(confinement) = &pool.confinement {
            for argument in confinement.to_arguments() {
                argv.push(CString::new(argument.as_bytes())?);
            }
        }
        argv.push(CString::new(pool.owner.as_str())?);
        let request = SpawnRequest {
            path,
            argv,
            env: open_files::supervisor_environment()?,
            cwd: c"/".to_owned(),
            limits: ResourceLimits::default(),
            host_exit_grace: Duration::ZERO,
        };
        let dev_null = dev_null.as_fd();
        let pid = spawn(&request, &[dev_null, dev_null, dev_null, theirs.as_fd()])
            .map_err(io::Error::from_raw_os_error)?;
        orphans::register_supervisor(pid);
        orphans::become_subreaper(pool.lenient);
        Ok(Self {
            control,
            pid,
            reapers_spawned: 0,
            has_exited: false,
        })
    }

    fn spawn_reaper(&mut self, socket: &Blocking) -> io::Result<u64> {
        self.reapers_spawned += 1;
        // A program may have stopped the supervisor.
        let _ = kill_process(self.pid, Signal::CONT);
        let request =
            reaper_supervisor::SupervisorRequest::SpawnReaper(self.reapers_spawned).encode();
        send_with_fds(&self.control, &request, &[socket.as_fd()])?;
        Ok(self.reapers_spawned)
    }
}

impl SupervisorClient {
    /// Returns whether the supervisor has exited. While its socket is open, it only does so if it fails or is killed.
    fn was_killed(&mut self) -> bool {
        self.has_exited =
            self.has_exited || !matches!(waitpid(Some(self.pid), WaitOptions::NOHANG), Ok(None));
        self.has_exited
    }
}

impl Drop for SupervisorClient {
    fn drop(&mut self) {
        if self.was_killed() {
            return orphans::kill_and_reap(Some(self.pid));
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

/// Locks a mutex, even if it is poisoned: every change is a single step, so a panic can't have left one half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
