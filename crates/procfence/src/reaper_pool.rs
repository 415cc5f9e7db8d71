//! The host's idle reapers, and when to fork more.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use std::{io, mem, thread};

use rustix::process::Pid;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::descendants;
use crate::program::SpawnRequest;
use crate::protocol::{REPLY_BYTES, ReaperReply, ReaperRequest, send_with_fds};
use crate::sandbox::ProgramSandbox;
use crate::supervisor::SupervisorClient;
use crate::system_call_filter::SandboxShape;

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
        if !program.exists() || !descendants::shows_own_pid_namespace() {
            return None;
        }
        let new_pool = |lenient| {
            Arc::new(ReaperPool {
                program: program.to_owned(),
                owner: owner.to_owned(),
                lenient,
                supervisors: Mutex::default(),
                idle: Mutex::new(Vec::new()),
                held: OnceLock::new(),
            })
        };
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
        let number = lock(&self.supervisors).spawn_reaper(&theirs, || {
            SupervisorClient::start(&self.program, &self.owner, self.lenient)
        })?;
        Ok(Arc::new(ReaperClient {
            number,
            shape,
            socket: ours,
        }))
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
            let _ = tokio::task::spawn_blocking(|| descendants::kill_and_reap(&[])).await;
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

// The host's connection to one reaper.

/// A connection to a reaper that is idle or serves one call. When it is dropped, the reaper kills what it started at
/// once. If it is closed in any other way, the host has died, and the programs get a grace period.
#[derive(Debug)]
pub struct ReaperClient {
    pub(crate) number: u64,
    /// The shape of the sandboxes that the reaper prepares, if it confines programs.
    pub(crate) shape: Option<SandboxShape>,
    pub(crate) socket: UnixStream,
}

impl ReaperClient {
    /// Sends an encoded request, with descriptors if it starts a program.
    ///
    /// # Errors
    /// The reaper is gone.
    pub async fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            let attached = if sent == 0 { descriptors } else { &[] };
            let send = || send_with_fds(&self.socket, &bytes[sent..], attached);
            match self.socket.try_io(Interest::WRITABLE, send) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.writable().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends a short request without waiting.
    pub fn try_send(&self, request: &ReaperRequest) {
        let send = || send_with_fds(&self.socket, &request.encode(), &[]);
        // If the reaper doesn't read anymore, its call is ended by other means.
        let _ = self.socket.try_io(Interest::WRITABLE, send);
    }

    /// Waits for the next reply. Cancel safe.
    ///
    /// # Errors
    /// The reaper is gone, or its reply is malformed.
    pub async fn receive_reply(&self) -> io::Result<ReaperReply> {
        let mut bytes = [0; REPLY_BYTES];
        loop {
            match self.socket.try_read(&mut bytes) {
                // A reaper writes each reply as a whole.
                Ok(REPLY_BYTES) => {
                    return ReaperReply::parse(bytes)
                        .ok_or_else(|| io::ErrorKind::InvalidData.into());
                }
                Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.readable().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for ReaperClient {
    fn drop(&mut self) {
        let request = ReaperRequest::Terminate(Duration::ZERO).encode();
        // An idle reaper ignores this. A reaper that is gone, or no longer reads, can't receive it, which is fine.
        let _ = send_with_fds(&self.socket, &request, &[]);
    }
}

// The supervisors of a pool: the one that forks its reapers, and those that a program has killed.

/// The supervisor of a pool, and those before it.
#[derive(Debug, Default)]
struct PoolSupervisors {
    current: Option<SupervisorClient>,
    /// Supervisors that were killed. Their reapers continue without them.
    killed: Vec<Pid>,
    /// Never starts again, so that a reaper's number means nothing to a supervisor that didn't fork it.
    reapers_spawned: u64,
}

impl PoolSupervisors {
    /// Requests a reaper that is connected to `socket`, from a new supervisor if there is none or it was killed. Returns
    /// the reaper's number.
    ///
    /// # Errors
    /// The system is out of resources, or can't start the supervisor.
    pub(crate) fn spawn_reaper(
        &mut self,
        socket: &net::UnixStream,
        start: impl FnOnce() -> io::Result<SupervisorClient>,
    ) -> io::Result<u64> {
        self.reapers_spawned += 1;
        let number = self.reapers_spawned;
        if let Some(current) = &self.current {
            match current.spawn_reaper(number, socket) {
                Err(error) if is_disconnect(&error) => self.retire_killed(),
                // Another error is a lack of resources: the supervisor lives, and so do the programs under it.
                sent => return sent.map(|()| number),
            }
        }
        let current = self.current.insert(start()?);
        current.spawn_reaper(number, socket)?;
        Ok(number)
    }

    /// Kills the processes that the killed supervisor would have killed. That takes as long as they need to disappear, so
    /// it happens on a thread of its own, while other programs start.
    fn retire_killed(&mut self) {
        if let Some(mut killed) = self.current.take() {
            self.killed.push(killed.pid());
            let thread = thread::Builder::new().stack_size(256 << 10);
            // If no thread can be started, what is left is killed when the pool closes.
            let _ = thread.spawn(move || {
                killed.wait_until_killed();
                descendants::kill_and_reap(&[]);
            });
        }
    }

    /// Returns whether a supervisor of the pool was killed. It can't clean up after its reapers, so the pool has to.
    fn any_was_killed(&mut self) -> bool {
        let current = self.current.as_mut();
        !self.killed.is_empty() || current.is_some_and(SupervisorClient::was_killed)
    }

    /// Kills a reaper that doesn't respond, along with everything it started.
    pub(crate) fn kill_reaper(&self, number: u64) {
        if let Some(current) = &self.current {
            current.kill_reaper(number);
        }
    }

    /// Takes the supervisors out of the pool, to close them.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            current: self.current.take(),
            killed: mem::take(&mut self.killed),
            reapers_spawned: self.reapers_spawned,
        }
    }

    /// Ends the supervisor, waits for the reapers of those that were killed, and kills what they left.
    pub(crate) fn close(mut self) {
        if let Some(mut current) = self.current.take()
            && current.was_killed()
        {
            self.killed.push(current.pid());
        }
        if !self.killed.is_empty() {
            descendants::kill_and_reap(&self.killed);
        }
    }
}

/// Returns whether the other end of a socket is closed. A supervisor closes it only by exiting.
fn is_disconnect(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}
