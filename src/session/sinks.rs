//! Everybody who is told what happens in a run: the session log, `--events`, the screen, the summary.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressDrawTarget;

use crate::args::{Progress as How, WatchFlags};
use crate::context::Context;
use crate::events::target;
use crate::events::{EventStream, Fanout};
use crate::output::{Exit, Failure, Stderr, Terminal};
use crate::terminal::{Bars, Lines, Look, Screen, Summary};
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::types::{Event, Refused, Sink, Tools};
use toolq_log::SessionLog;

/// Pictures of bars in a second, at most.
const FRAMES: u8 = 20;

/// The observers of one run.
pub struct Observers {
    log: Option<SessionLog>,
    events: Option<EventStream>,
    shown: Option<Shown>,
    summary: Summary,
}

/// What people see while calls run.
enum Shown {
    Bars(Bars),
    Lines(Lines),
}

impl Observers {
    /// Opens what the flags name, beside the log of this name.
    ///
    /// # Errors
    /// `--events` names nothing that can be written.
    pub fn new(
        flags: &WatchFlags,
        log: Option<&Path>,
        context: &Context,
        (tools, jobs): (&Tools, NonZeroUsize),
        mask: &Arc<Mask>,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let events = flags.events.as_deref();
        let events = events.map(|to| target::open(to, log)).transpose()?;
        let events = events.map(|to| EventStream::new(to, Arc::clone(mask), clock.clone()));
        let events = events
            .transpose()
            .map_err(|error| Failure::usage(format!("--events can't begin: {error}")))?;
        Ok(Self {
            shown: show(flags, context, jobs, mask, &clock),
            summary: Summary::new(clock, tools.prices.clone()),
            events,
            log: None,
        })
    }

    /// From now on events are recorded in `log`. It comes last, so that a mistake elsewhere leaves none behind.
    pub fn record(&mut self, log: Option<SessionLog>) {
        self.log = log;
    }

    /// The folder for outputs that were cut; none where there is no log.
    pub fn outputs(&self) -> Option<PathBuf> {
        self.log.as_ref().map(|log| log.folder().to_owned())
    }

    /// What must make room while something is written to the same terminal.
    pub fn screen(&self) -> Option<Screen> {
        match &self.shown {
            Some(Shown::Bars(bars)) => Some(bars.screen()),
            _ => None,
        }
    }

    /// What was counted.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Takes the bars from the screen for good: what is printed now is the last.
    pub fn leave_screen(&mut self) {
        drop(self.shown.take());
    }

    /// Closes everything and says on `stderr` what the run was. Gives the graver of `exit` and what closing came to.
    pub fn finish(mut self, mut exit: Exit, stderr: &Stderr, verbose: bool) -> Exit {
        // Before anything else is said.
        self.leave_screen();
        if let Some(log) = &mut self.log {
            if let Err(refused) = log.finish(exit.code()) {
                exit = exit.max(stderr.failure(&Failure::new(Exit::Log, refused)));
            } else if verbose {
                stderr.note(&format!("session log: {}", log.path().display()));
            }
        }
        if let Some(lost) = self.events.and_then(EventStream::finish) {
            stderr.warning(&lost);
        }
        if exit != Exit::Output {
            stderr.note(&self.summary.text());
        }
        exit
    }
}

impl Sink for Observers {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        let hands_on = self.events.is_some();
        let mut readers: Vec<&mut dyn Sink> = vec![&mut self.summary];
        readers.extend(self.events.as_mut().map(|events| events as &mut dyn Sink));
        match &mut self.shown {
            Some(Shown::Bars(bars)) => readers.push(bars),
            Some(Shown::Lines(lines)) => readers.push(lines),
            None => {}
        }
        let log = self.log.as_mut().map(|log| log as &mut dyn Sink);
        let mut all = Fanout::new(log, readers).handing_on(hands_on);
        all.tell(events)
    }

    fn settle(&mut self) -> Result<(), Refused> {
        self.log.as_mut().map_or(Ok(()), SessionLog::settle)
    }
}

/// Observers whom two tell, both of one task: the dispatcher of a turn that still arrives, and who asks tools of it what
/// they take.
pub struct Shared<'m, 'o>(pub &'m Mutex<&'o mut Observers>);

impl Sink for Shared<'_, '_> {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        let mut observers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        observers.tell(events)
    }

    fn settle(&mut self) -> Result<(), Refused> {
        let mut observers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        observers.settle()
    }
}

fn show(
    flags: &WatchFlags,
    context: &Context,
    jobs: NonZeroUsize,
    mask: &Arc<Mask>,
    clock: &Clock,
) -> Option<Shown> {
    let bars = || {
        let look = Look {
            color: context.stderr.color(),
            size: Stderr::size,
            jobs,
        };
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(Terminal::default()), FRAMES);
        Shown::Bars(Bars::new(target, look, Arc::clone(mask)))
    };
    let lines = || {
        Shown::Lines(Lines::new(
            Box::new(io::stderr()),
            jobs,
            Arc::clone(mask),
            clock.clone(),
        ))
    };
    let in_ci = || {
        context
            .environment
            .raw("CI")
            .is_some_and(|value| !value.is_empty())
    };
    match flags.progress {
        _ if context.stderr.quiet => None,
        How::None => None,
        How::Auto | How::Bar if Stderr::is_terminal() => Some(bars()),
        How::Bar | How::Plain => Some(lines()),
        How::Auto => in_ci().then(lines),
    }
}
