//! A call in the hands of its keeper: its program runs, all that comes of it is kept, and in the end nobody is left.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::deadline::Grace;
use crate::descendants;
use crate::exit::{ExceededLimit, ProgramExit};
use crate::limits::ResourceLimits;
use crate::protocol::{Reply, Request};
use crate::reaper::Keeper;
use crate::sys::Ended;

/// How long killed processes may take to be gone. Those that the system can't end are left to the root.
const KILL_PATIENCE: Duration = Duration::from_millis(300);
/// Between two counts of a call's processes, where they are limited.
const COUNT: Duration = Duration::from_millis(20);

/// A call whose program was started.
pub(crate) struct Call<'k> {
    keeper: &'k Keeper,
    program: Pid,
    limits: ResourceLimits,
    /// How the program ended. It was waited for.
    ending: Option<ProgramExit>,
    /// More processes lived than may.
    too_many: bool,
    /// All were stopped, and not yet told to go on.
    held: bool,
}

/// What a keeper does after a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Another,
    Leave,
}

impl<'k> Call<'k> {
    pub(crate) fn new(keeper: &'k Keeper, program: Pid, limits: ResourceLimits) -> Self {
        Self {
            keeper,
            program,
            limits,
            ending: None,
            too_many: false,
            held: false,
        }
    }

    /// Serves it until nothing of it is left.
    pub(crate) fn serve(&mut self) -> io::Result<Next> {
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
                    Some((Request::Signal(signal), _)) => self.pass_on(signal),
                    Some((Request::End(grace), _)) => return self.end(grace),
                    Some((Request::Start(_), _)) => {}
                    Some((Request::Release, _)) => return Ok(Next::Leave),
                    None => return self.kill().map(|_| Next::Leave),
                }
            }
            self.count()?;
        }
    }

    /// Sends a signal to everybody.
    fn pass_on(&mut self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else {
            return;
        };
        descendants::signal(signal);
        match signal {
            Signal::STOP => self.held = true,
            Signal::CONT => self.held = false,
            _ => {}
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
        descendants::reap(|ended| {
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
            descendants::living()
        } else {
            0
        };
        if self.ending.is_none() && !grace.is_zero() && self.ask_to_end(grace)? == Next::Leave {
            return self.kill().map(|_| Next::Leave);
        }
        let leaves = self.kill()?;
        let ending = self.ending.unwrap_or(ProgramExit::Signal(libc::SIGKILL));
        let leftovers = leftovers.try_into().unwrap_or(u32::MAX);
        self.keeper.reply(Reply::Gone {
            ending,
            leftovers,
            leaves,
        })?;
        Ok(if leaves { Next::Leave } else { Next::Another })
    }

    /// TERM to everybody, and CONT, since who is stopped can't take another signal than this and KILL. Where all are held,
    /// that comes when they are let go on. Leaves when the other side is gone.
    fn ask_to_end(&mut self, grace: Duration) -> io::Result<Next> {
        descendants::signal(Signal::TERM);
        if !self.held {
            descendants::signal(Signal::CONT);
        }
        let Keeper { socket, signals } = self.keeper;
        let mut grace = Grace::new(grace);
        while self.reap() {
            if self.held {
                grace.hold();
            } else {
                grace.go_on();
            }
            if grace.is_over() {
                break;
            }
            if signals.wait(socket.as_fd(), grace.rest())?.said {
                match Request::receive(socket)? {
                    Some((Request::Signal(signal), _)) => self.pass_on(signal),
                    Some((Request::End(_), _)) => break,
                    Some(_) => {}
                    None => return Ok(Next::Leave),
                }
            }
        }
        Ok(Next::Another)
    }

    /// KILL to everybody, until nobody is left or none can be ended. Says whether somebody is left.
    pub(crate) fn kill(&mut self) -> io::Result<bool> {
        let Self {
            keeper,
            program,
            limits,
            ending,
            too_many,
            ..
        } = self;
        descendants::kill(
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
            && descendants::living() > most
        {
            self.too_many = true;
            self.kill()?;
            let ending = *self
                .ending
                .get_or_insert(ProgramExit::LimitExceeded(ExceededLimit::Processes));
            self.keeper.reply(Reply::Exited {
                ending,
                alone: false,
            })?;
        }
        Ok(())
    }
}

/// Notes how the program ended, by its limits if that was why.
fn note(
    noted: &mut Option<ProgramExit>,
    program: Pid,
    limits: &ResourceLimits,
    too_many: bool,
    ended: Ended,
) {
    if ended.pid != program {
        return;
    }
    let spent = limits.cpu.is_some_and(|limit| ended.cpu >= limit);
    *noted = Some(match ended.ending {
        ProgramExit::Signal(_) if too_many => ProgramExit::LimitExceeded(ExceededLimit::Processes),
        ProgramExit::Signal(libc::SIGXCPU) if limits.cpu.is_some() => {
            ProgramExit::LimitExceeded(ExceededLimit::Cpu)
        }
        ProgramExit::Signal(libc::SIGKILL) if spent => {
            ProgramExit::LimitExceeded(ExceededLimit::Cpu)
        }
        ProgramExit::Signal(libc::SIGXFSZ) if limits.file_size.is_some() => {
            ProgramExit::LimitExceeded(ExceededLimit::FileSize)
        }
        other => other,
    });
}
