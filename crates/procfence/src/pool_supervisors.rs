//! The supervisors of a pool: the one that forks its reapers, and those that a program has killed.

use std::io;
use std::mem;
use std::os::unix::net::UnixStream;
use std::thread;

use rustix::process::Pid;

use crate::orphans;
use crate::supervisor_client::SupervisorClient;

/// The supervisor of a pool, and those before it.
#[derive(Debug, Default)]
pub(crate) struct PoolSupervisors {
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
        socket: &UnixStream,
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
                orphans::kill_and_reap(&[]);
            });
        }
    }

    /// Returns whether a supervisor of the pool was killed. It can't clean up after its reapers, so the pool has to.
    pub(crate) fn any_was_killed(&mut self) -> bool {
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
            orphans::kill_and_reap(&self.killed);
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
