//! The host's idle reapers, and when to fork more.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::net::UnixStream;

use crate::orphans;
use crate::pool_supervisors::PoolSupervisors;
use crate::proc_tree;
use crate::reaper_client::ReaperClient;
use crate::sandbox::ProgramSandbox;
use crate::spawn::SpawnRequest;
use crate::supervisor_client::SupervisorClient;

/// The reapers of a host, in two pools: strict ones, and lenient ones, which may release what they started. Clones share
/// the pools.
///
/// Starting the first program makes the host a child subreaper as well, unless the program may be released. If a program
/// then kills both its reaper and the supervisor, the host adopts what the program leaves, and kills it. It can't be told
/// from a daemon of the host's own, so all children in another session than the host's are killed then, except those that
/// the host had before its first program: start daemons earlier, or keep them in the host's session.
#[derive(Debug, Clone)]
pub struct ReaperPools {
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
    supervisors: Mutex<PoolSupervisors>,
    idle: Mutex<Vec<Arc<ReaperClient>>>,
    /// What stays open as long as any process of a call is left, even if the host is gone.
    held: OnceLock<OwnedFd>,
}

impl ReaperPools {
    /// Creates both pools. `program` is the host's own executable, and `owner` becomes an argument of the supervisors
    /// and reapers, by which they can be found. Returns `None` if `program` doesn't exist, or if `/proc` is missing or
    /// belongs to another pid namespace.
    pub fn new(program: &Path, owner: &str) -> Option<Self> {
        if !program.exists() || !proc_tree::shows_own_pid_namespace() {
            return None;
        }
        let new_pool = |lenient| Arc::new(ReaperPool::new(program, owner, lenient));
        Some(Self {
            strict: new_pool(false),
            lenient: new_pool(true),
        })
    }

    /// Keeps the open file of this descriptor open as long as any process of a call is left, even if the host is gone: a lock on it
    /// lasts until then. For calls from now on, once.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn hold(&self, file: impl AsFd) -> io::Result<()> {
        for pool in [&self.strict, &self.lenient] {
            let file = file.as_fd().try_clone_to_owned()?;
            let _ = pool.held.set(file);
        }
        Ok(())
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
    fn new(program: &Path, owner: &str, lenient: bool) -> Self {
        Self {
            program: program.to_owned(),
            owner: owner.to_owned(),
            lenient,
            supervisors: Mutex::default(),
            idle: Mutex::new(Vec::new()),
            held: OnceLock::new(),
        }
    }

    /// Returns what a reaper keeps open while it serves a call. It is sent behind the descriptors of the program.
    pub fn held(&self) -> Option<BorrowedFd<'_>> {
        self.held.get().map(AsFd::as_fd)
    }

    /// Takes an idle reaper that can start the program out of the pool, or requests a new one.
    ///
    /// # Errors
    /// The system is out of resources, or can't start the supervisor.
    pub fn take_reaper(&self, request: &SpawnRequest) -> io::Result<Arc<ReaperClient>> {
        let shape = request.sandbox.as_ref().map(ProgramSandbox::shape);
        let mut idle = lock(&self.idle);
        if let Some(last) = idle.iter().rposition(|reaper| reaper.shape == shape) {
            return Ok(idle.swap_remove(last));
        }
        drop(idle);
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = theirs.into_std()?;
        theirs.set_nonblocking(false)?;
        let number = lock(&self.supervisors).spawn_reaper(&theirs, || self.start_supervisor())?;
        Ok(Arc::new(ReaperClient {
            number,
            shape,
            socket: ours,
        }))
    }

    fn start_supervisor(&self) -> io::Result<SupervisorClient> {
        SupervisorClient::start(&self.program, &self.owner, self.lenient)
    }

    /// Returns a reaper to the pool when nothing is left of its call.
    pub fn return_reaper(&self, reaper: Arc<ReaperClient>) {
        lock(&self.idle).push(reaper);
    }

    /// Kills a reaper that doesn't respond, along with everything it started.
    pub fn kill_reaper(&self, reaper: &ReaperClient) {
        lock(&self.supervisors).kill_reaper(reaper.number);
    }

    fn close(&self) {
        lock(&self.idle).clear();
        // Not while it is locked: this waits until they have exited.
        let supervisors = lock(&self.supervisors).take();
        supervisors.close();
    }

    /// Cleans up after a reaper that died unexpectedly. Its supervisor kills the descendants it left; if a supervisor
    /// was killed, too, the host does.
    pub async fn on_reaper_killed(&self) {
        let was_killed = lock(&self.supervisors).any_was_killed();
        if was_killed {
            // If no thread can be started, closing the pool looks again.
            let _ = tokio::task::spawn_blocking(|| orphans::kill_and_reap(&[])).await;
        }
    }
}

impl Drop for ReaperPool {
    fn drop(&mut self) {
        self.close();
    }
}

/// Locks a mutex, even if it is poisoned: every change is a single step, so a panic can't have left one half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
