//! The process that makes keepers, and ends what outlives one.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::DupFlags;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, kill_process, set_child_subreaper,
    set_dumpable_behavior, setrlimit,
};

use crate::descendants;
use crate::exit::ProgramExit;
use crate::fd_passing::receive_with;
use crate::protocol::Reply;
use crate::reaper::Keeper;
use crate::signals::Signals;
use crate::sys;

/// How long keepers may take to end what they keep once toolq is gone.
const KEEPERS_PATIENCE: Duration = Duration::from_millis(800);
/// How long orphans may take to be gone once they are killed.
const ORPHANS_PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of a request to a root: a letter and a keeper's number.
pub(crate) const REQUEST: usize = 9;

/// What toolq wants of a root.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    /// Make a keeper of this number; its socket comes beside.
    Keeper(u64),
    /// This keeper doesn't answer: end it.
    Kill(u64),
}

impl Request {
    pub(crate) fn bytes(self) -> [u8; REQUEST] {
        let (letter, number) = match self {
            Self::Keeper(number) => (b'N', number),
            Self::Kill(number) => (b'K', number),
        };
        let mut bytes = [letter; REQUEST];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    fn parse([letter, number @ ..]: [u8; REQUEST]) -> Option<Self> {
        let number = u64::from_le_bytes(number);
        match letter {
            b'N' => Some(Self::Keeper(number)),
            b'K' => Some(Self::Kill(number)),
            _ => None,
        }
    }
}

struct Root {
    control: OwnedFd,
    signals: Signals,
    /// By the number that toolq gave them.
    keepers: BTreeMap<u64, Pid>,
    /// Whether it ends what comes to it.
    strict: bool,
}

/// Serves until toolq is gone and nothing is left of what it started. Where it is not `strict`, nothing is left but what
/// keepers were told to let go.
///
/// # Errors
/// It can't do its work, or was not started by toolq.
pub(crate) fn serve(strict: bool) -> io::Result<()> {
    let control = sys::control()?.into();
    // Nobody looks into it, and no program leaves its memory on the disk.
    let _ = rustix::thread::set_name(c"toolq-keeper");
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )?;
    if strict {
        adopt()?;
    }
    let signals = Signals::new()?;
    let root = Root {
        control,
        signals,
        keepers: BTreeMap::new(),
        strict,
    };
    root.serve()
}

/// There is no keeper: the call that it was for is answered in its place. Other calls go on.
fn refuse(socket: OwnedFd, why: &io::Error) {
    let errno = why.raw_os_error().unwrap_or(libc::EAGAIN);
    // Where nobody listens any more, nobody waits for it.
    let _ = UnixStream::from(socket).write_all(&Reply::NotStarted(errno).bytes());
}

/// From now on, who loses his parent below this process becomes its child.
fn adopt() -> io::Result<()> {
    Ok(set_child_subreaper(Some(rustix::process::getpid()))?)
}

impl Root {
    fn serve(mut self) -> io::Result<()> {
        loop {
            let awake = self.signals.wait(self.control.as_fd(), None)?;
            if awake.ended {
                self.reap()?;
            }
            if awake.said {
                let mut bytes = [0; REQUEST];
                let (read, descriptors) = receive_with(&self.control, &mut bytes)?;
                if read == 0 {
                    return self.finish();
                }
                match (Request::parse(bytes), descriptors.into_iter().next()) {
                    (Some(Request::Keeper(number)), Some(socket)) => match sys::fork() {
                        Ok(None) => return self.keep(socket),
                        Ok(Some(keeper)) => {
                            self.keepers.insert(number, keeper);
                        }
                        Err(error) => refuse(socket, &error),
                    },
                    (Some(Request::Kill(number)), _) => self.kill(number),
                    _ => {}
                }
            }
        }
    }

    /// Is a keeper from now on. Its socket takes the place of the root's.
    fn keep(self, socket: OwnedFd) -> io::Result<()> {
        let Self {
            mut control,
            signals,
            ..
        } = self;
        rustix::io::dup3(&socket, &mut control, DupFlags::CLOEXEC)?;
        drop(socket);
        adopt()?;
        Keeper::new(UnixStream::from(control), signals).serve()
    }

    fn kill(&mut self, number: u64) {
        if let Some(keeper) = self.keepers.get(&number) {
            let _ = kill_process(*keeper, Signal::KILL);
        }
    }

    /// Waits for who has ended. What a keeper that didn't end by itself has left is ended.
    fn reap(&mut self) -> io::Result<()> {
        let Self { keepers, .. } = self;
        let mut orphans = false;
        descendants::reap(|ended| {
            let mut known = keepers.iter();
            let number = known
                .find(|(_, keeper)| **keeper == ended.pid)
                .map(|(number, _)| *number);
            let keeper = number.and_then(|number| keepers.remove(&number));
            orphans |= keeper.is_none() || ended.ending != ProgramExit::Code(0);
        });
        if orphans && self.strict {
            self.kill_orphans()?;
        }
        Ok(())
    }

    fn kill_orphans(&mut self) -> io::Result<()> {
        let keepers: Vec<Pid> = self.keepers.values().copied().collect();
        let mut gone = Vec::new();
        descendants::kill(
            &self.signals,
            ORPHANS_PATIENCE,
            |pid| !keepers.contains(&pid),
            |ended| gone.push(ended.pid),
        )?;
        self.keepers.retain(|_, keeper| !gone.contains(keeper));
        Ok(())
    }

    /// toolq is gone. Keepers know it, too.
    fn finish(mut self) -> io::Result<()> {
        let since = Instant::now();
        while !self.keepers.is_empty() && since.elapsed() < KEEPERS_PATIENCE {
            self.signals
                .wait_for_child(KEEPERS_PATIENCE.saturating_sub(since.elapsed()))?;
            self.reap()?;
        }
        if self.strict {
            self.keepers.clear();
            self.kill_orphans()?;
        }
        Ok(())
    }
}
