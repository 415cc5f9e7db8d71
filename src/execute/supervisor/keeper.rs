//! The process that starts a call's program and keeps all that comes of it, one call after another.

use std::io;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::family;
use super::signals::Signals;
use super::system::{self, Ended};
use super::wire::{Reply, Request};
use crate::execute::spawn::{Order, spawn};
use crate::model::{Ending, Limit, Limits};

/// How long killed processes may take to be gone. Those that the system can't end are left to the root.
const KILL_PATIENCE: Duration = Duration::from_secs(1);
/// Between two counts of a call's processes, where they are limited.
const COUNT: Duration = Duration::from_millis(20);

/// A keeper without a call.
pub(super) struct Keeper {
    socket: UnixStream,
    signals: Signals,
}

/// A call whose program was started.
struct Call<'k> {
    keeper: &'k Keeper,
    program: Pid,
    limits: Limits,
    /// How the program ended. It was waited for.
    ending: Option<Ending>,
    /// More processes lived than may.
    too_many: bool,
}

/// What a keeper does after a call.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Another,
    Leave,
}

impl Keeper {
    pub(super) fn new(socket: UnixStream, signals: Signals) -> Self {
        Self { socket, signals }
    }

    /// Serves calls until the other side is gone.
    pub(super) fn serve(self) -> io::Result<()> {
        while let Some((request, descriptors)) = Request::receive(&self.socket)? {
            // What was said of the last call, too late, means nothing.
            let Request::Start(order) = request else {
                continue;
            };
            match start(&order, &descriptors) {
                Err(errno) => self.reply(Reply::NotStarted(errno))?,
                Ok(program) => {
                    drop(descriptors);
                    let mut call = Call {
                        keeper: &self,
                        program,
                        limits: order.limits,
                        ending: None,
                        too_many: false,
                    };
                    match call.serve() {
                        Ok(Next::Another) => {}
                        Ok(Next::Leave) => break,
                        Err(error) => return call.kill().and(Err(error)),
                    }
                }
            }
        }
        Ok(())
    }

    fn reply(&self, reply: Reply) -> io::Result<()> {
        (&self.socket).write_all(&reply.bytes())
    }
}

/// Starts a program.
///
/// # Errors
/// The operating system's error number. Then nothing ran.
fn start(order: &Order, descriptors: &[OwnedFd]) -> Result<Pid, i32> {
    let [stdin, stdout, stderr, status] = descriptors else {
        return Err(libc::EBADF);
    };
    let descriptors = [stdin, stdout, stderr, status].map(OwnedFd::as_fd);
    if order.limits == Limits::default() {
        spawn(order, &descriptors)
    } else {
        system::start_limited(order, &descriptors)
    }
}

impl Call<'_> {
    /// Serves it until nothing of it is left.
    fn serve(&mut self) -> io::Result<Next> {
        let Keeper { socket, signals } = self.keeper;
        loop {
            let pulse = self
                .limits
                .processes
                .filter(|_| !self.too_many)
                .map(|_| COUNT);
            let awake = signals.wait(socket.as_fd(), pulse)?;
            if awake.ended && self.look()? {
                return Ok(Next::Another);
            }
            if awake.said {
                match Request::receive(socket)? {
                    Some((Request::Signal(signal), _)) => signal_all(signal),
                    Some((Request::End(grace), _)) => return self.end(grace),
                    Some((Request::Start(_), _)) => {}
                    Some((Request::Release, _)) => return Ok(Next::Leave),
                    None => return self.kill().map(|_| Next::Leave),
                }
            }
            self.count()?;
        }
    }

    /// Looks who has ended, and tells it if it was the program. Says whether nothing of the call is left.
    fn look(&mut self) -> io::Result<bool> {
        let running = self.ending.is_none();
        let alone = !self.reap();
        match self.ending {
            Some(ending) if running => self
                .keeper
                .reply(Reply::Exited { ending, alone })
                .map(|()| alone),
            // It was told that there is more to come, and will ask for the end.
            _ => Ok(false),
        }
    }

    /// Waits for all that have ended; says whether anything is left.
    fn reap(&mut self) -> bool {
        family::reap(|ended| {
            note(
                &mut self.ending,
                self.program,
                &self.limits,
                self.too_many,
                ended,
            );
        })
    }

    /// Ends everything: politely, and after `grace` surely.
    fn end(&mut self, grace: Duration) -> io::Result<Next> {
        let leftovers = if self.ending.is_some() {
            family::living()
        } else {
            0
        };
        if self.ending.is_none() && !grace.is_zero() && self.ask_to_end(grace)? == Next::Leave {
            return self.kill().map(|_| Next::Leave);
        }
        let left = self.kill()?;
        let ending = self.ending.unwrap_or(Ending::Signal(libc::SIGKILL));
        let leftovers = leftovers.try_into().unwrap_or(u32::MAX);
        self.keeper.reply(Reply::Gone { ending, leftovers })?;
        Ok(if left { Next::Leave } else { Next::Another })
    }

    /// TERM to everybody, and CONT, since who is stopped can't take another signal than this and KILL. Leaves when the
    /// other side is gone.
    fn ask_to_end(&mut self, grace: Duration) -> io::Result<Next> {
        family::signal(Signal::TERM);
        family::signal(Signal::CONT);
        let Keeper { socket, signals } = self.keeper;
        let until = Instant::now() + grace;
        while self.reap() {
            let Some(rest) = until.checked_duration_since(Instant::now()) else {
                break;
            };
            if signals.wait(socket.as_fd(), Some(rest))?.said {
                match Request::receive(socket)? {
                    Some((Request::Signal(signal), _)) => signal_all(signal),
                    Some((Request::End(_), _)) => break,
                    Some(_) => {}
                    None => return Ok(Next::Leave),
                }
            }
        }
        Ok(Next::Another)
    }

    /// KILL to everybody, until nobody is left or none can be ended. Says whether somebody is left.
    fn kill(&mut self) -> io::Result<bool> {
        let Self {
            keeper,
            program,
            limits,
            ending,
            too_many,
        } = self;
        family::kill(
            &keeper.signals,
            KILL_PATIENCE,
            |_| true,
            |ended| {
                note(ending, *program, limits, *too_many, ended);
            },
        )
    }

    /// Ends everything if there is more of it than may be.
    fn count(&mut self) -> io::Result<()> {
        if let (None, Some(most)) = (self.ending, self.limits.processes)
            && family::living() > most
        {
            self.too_many = true;
            self.kill()?;
            let ending = *self.ending.get_or_insert(Ending::Limit(Limit::Processes));
            self.keeper.reply(Reply::Exited {
                ending,
                alone: false,
            })?;
        }
        Ok(())
    }
}

/// Sends a signal to everybody.
fn signal_all(signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        family::signal(signal);
    }
}

/// Notes how the program ended, by its limits if that was why.
fn note(noted: &mut Option<Ending>, program: Pid, limits: &Limits, too_many: bool, ended: Ended) {
    if ended.pid != program {
        return;
    }
    let spent = limits.cpu.is_some_and(|limit| ended.cpu >= limit);
    *noted = Some(match ended.ending {
        Ending::Signal(_) if too_many => Ending::Limit(Limit::Processes),
        Ending::Signal(libc::SIGXCPU) if limits.cpu.is_some() => Ending::Limit(Limit::Cpu),
        Ending::Signal(libc::SIGKILL) if spent => Ending::Limit(Limit::Cpu),
        Ending::Signal(libc::SIGXFSZ) if limits.file_size.is_some() => {
            Ending::Limit(Limit::FileSize)
        }
        other => other,
    });
}
