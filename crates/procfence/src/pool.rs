//! toolq's side: keepers that wait for a call, and the root that makes more.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream as Blocking;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use tokio::net::UnixStream;

use crate::fd_passing::send_with;
use crate::limits::ResourceLimits;
use crate::orphans;
use crate::proc_tree;
use crate::reaper_client::Keeper;
use crate::spawn::{Order, spawn};
use crate::supervise::{ARGUMENT, LENIENT};
use crate::supervisor;

/// How long a root may take to end at the end of a run. What it keeps is gone by then; it itself is not to stay a zombie.
const ROOT_PATIENCE: Duration = Duration::from_secs(1);

/// The keepers of a run, by whether they may let go what they started.
#[derive(Debug)]
pub struct Supervisor {
    strict: Arc<Keepers>,
    lenient: Arc<Keepers>,
}

/// Keepers of one kind. Nothing is started before the first is asked for.
#[derive(Debug)]
pub struct Keepers {
    /// This program.
    program: PathBuf,
    /// An argument of the root and its keepers, by which they can be found.
    owner: String,
    lenient: bool,
    root: Mutex<Option<Root>>,
    idle: Mutex<Vec<Arc<Keeper>>>,
}

#[derive(Debug)]
struct Root {
    control: Blocking,
    pid: Pid,
    made: u64,
    ended: bool,
}

impl Supervisor {
    /// Keepers are made out of `program`, which is this one; none where it or its children can't be seen (there may be
    /// no /proc, or another namespace's).
    pub fn new(program: &Path, owner: &str) -> Option<Self> {
        if !program.exists() || !proc_tree::is_visible() {
            return None;
        }
        let keepers = |lenient| {
            Arc::new(Keepers {
                program: program.to_owned(),
                owner: owner.to_owned(),
                lenient,
                root: Mutex::new(None),
                idle: Mutex::new(Vec::new()),
            })
        };
        Some(Self {
            strict: keepers(false),
            lenient: keepers(true),
        })
    }

    /// The pool for programs whose leftovers are killed, or, if `lenient`, may be released.
    pub fn keepers(&self, lenient: bool) -> &Arc<Keepers> {
        if lenient { &self.lenient } else { &self.strict }
    }

    /// Ends the keepers that wait for a call, and their roots.
    pub fn close(&self) {
        self.strict.close();
        self.lenient.close();
    }
}

impl Keepers {
    /// A keeper without a call.
    ///
    /// # Errors
    /// The system has no room for one, or can't start this program.
    pub fn take(&self) -> io::Result<Arc<Keeper>> {
        if let Some(keeper) = locked(&self.idle).pop() {
            return Ok(keeper);
        }
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = theirs.into_std()?;
        theirs.set_nonblocking(false)?;
        let mut root = locked(&self.root);
        let number = match root.as_mut().map(|root| root.make_keeper(&theirs)) {
            Some(Ok(number)) => number,
            // A program may have killed it; its keepers are on their own then, and work on.
            _ => root
                .insert(Root::start(&self.program, &self.owner, self.lenient)?)
                .make_keeper(&theirs)?,
        };
        Ok(Arc::new(Keeper {
            number,
            socket: ours,
        }))
    }

    /// Takes back a keeper of whose call nothing is left.
    pub fn give_back(&self, keeper: Arc<Keeper>) {
        locked(&self.idle).push(keeper);
    }

    /// Ends a keeper that doesn't answer, and all that it has started.
    pub fn kill(&self, keeper: &Keeper) {
        if let Some(root) = &mut *locked(&self.root) {
            // A program may have stopped both.
            let _ = kill_process(root.pid, Signal::CONT);
            let _ = send_with(
                &root.control,
                &supervisor::Request::Kill(keeper.number).bytes(),
                &[],
            );
        }
    }

    fn close(&self) {
        locked(&self.idle).clear();
        *locked(&self.root) = None;
    }

    /// A keeper was killed. The root ends what it kept, unless it was killed, too.
    pub async fn mourn(&self) {
        if locked(&self.root).as_mut().is_some_and(Root::was_killed) {
            // Nothing comes of it where no thread can be had; the end of the run looks again.
            let _ = tokio::task::spawn_blocking(|| orphans::end(None)).await;
        }
    }
}

impl Drop for Keepers {
    fn drop(&mut self) {
        self.close();
    }
}

impl Root {
    fn start(program: &Path, owner: &str, lenient: bool) -> io::Result<Self> {
        let (control, theirs) = Blocking::pair()?;
        let theirs = above_childs(&theirs.into())?;
        let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let nothing = above_childs(&nothing)?;
        let path = CString::new(program.as_os_str().as_bytes())?;
        let mut argv = vec![c"toolq".to_owned(), CString::new(ARGUMENT)?];
        if lenient {
            argv.push(CString::new(LENIENT)?);
        }
        argv.push(CString::new(owner)?);
        let order = Order {
            path,
            argv,
            env: Vec::new(),
            cwd: c"/".to_owned(),
            limits: ResourceLimits::default(),
        };
        let nothing = nothing.as_fd();
        let pid = spawn(&order, &[nothing, nothing, nothing, theirs.as_fd()])
            .map_err(io::Error::from_raw_os_error)?;
        orphans::know(pid);
        orphans::take_in(lenient);
        Ok(Self {
            control,
            pid,
            made: 0,
            ended: false,
        })
    }

    fn make_keeper(&mut self, socket: &Blocking) -> io::Result<u64> {
        self.made += 1;
        let request = supervisor::Request::Keeper(self.made).bytes();
        send_with(&self.control, &request, &[socket.as_fd()])?;
        Ok(self.made)
    }
}

impl Root {
    /// Whether it has ended, which it does only when told to, or killed.
    fn was_killed(&mut self) -> bool {
        self.ended =
            self.ended || !matches!(waitpid(Some(self.pid), WaitOptions::NOHANG), Ok(None));
        self.ended
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if self.was_killed() {
            return orphans::end(Some(self.pid));
        }
        // It reads this as toolq's end.
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        if let Ok(ended) = pidfd_open(self.pid, PidfdFlags::empty()) {
            let mut ended = [PollFd::new(&ended, PollFlags::IN)];
            let time = Timespec::try_from(ROOT_PATIENCE).ok();
            while poll(&mut ended, time.as_ref()) == Err(Errno::INTR) {}
        }
        let _ = waitpid(Some(self.pid), WaitOptions::NOHANG);
    }
}

/// The same descriptor under a number that a child's own don't have.
fn above_childs(descriptor: &OwnedFd) -> io::Result<OwnedFd> {
    Ok(fcntl_dupfd_cloexec(descriptor, 4)?)
}

/// What a panic elsewhere has left is as good as before: each change here is one step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
