//! The event sinks of a run: session log, `--events`, progress display, and summary.

use std::num::NonZeroUsize;
use std::path::Path;
use std::slice;
use std::sync::Arc;

use indicatif::ProgressDrawTarget;

use crate::args::ProgressFlag;
use crate::context::CommandContext;
use crate::events::{NdjsonSink, show_to_all, target};
use crate::log_view::DoubtCollector;
use crate::otlp::OtlpSink;
use crate::output::{CommandError, Exit, StderrStream, StderrTerminal, StderrWriter};
use crate::session::describe::discovery_warnings;
use crate::settings::{CallSetup, LogTarget, SessionSettings};
use crate::terminal::{
    BarOptions, FailureList, MAX_FRAMES_PER_SECOND, ProgressBars, ProgressLines, ProgressScreen,
    RepeatCommand, RunSummary,
};
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::types::{CallRef, EmitError, Event, EventSink, TraceContext};
use toolq_log::SessionLog;

/// The event sinks of one run.
pub struct RunSinks {
    log: Option<SessionLog>,
    removes_unused_log: bool,
    events: Option<NdjsonSink>,
    otlp: Option<OtlpSink>,
    display: Option<ProgressDisplay>,
    summary: RunSummary,
    doubts: Option<DoubtCollector>,
    stderr: StderrWriter,
}

impl RunSinks {
    /// Opens the sinks that the settings name, on the runtime that is entered. Events don't reach the session log until
    /// [`attach_log`](Self::attach_log) is called.
    ///
    /// # Errors
    /// The target of `--events` can't be written.
    pub fn new(
        settings: &SessionSettings,
        context: &CommandContext,
        setup: &CallSetup,
        clock: Clock,
    ) -> Result<Self, CommandError> {
        let (mask, jobs) = (&setup.mask, setup.jobs);
        let log = settings.log.target.path();
        let events = settings.events.as_deref();
        let (inputs, tools_files) = (&settings.inputs, &setup.tools.own_files);
        let events = events.map(|to| target::open(to, log, inputs, tools_files));
        let events = events.transpose()?;
        let events = events.map(|to| NdjsonSink::new(to, Arc::clone(mask), clock.clone()));
        let events = events.transpose().map_err(|error| {
            CommandError::usage(format!("failed to start writing --events: {error}"))
        })?;
        let otlp = settings.otlp.as_ref();
        let otlp = otlp.map(|otlp| {
            let (endpoint, captures) = (otlp.endpoint.as_deref(), otlp.captures_content);
            OtlpSink::open(endpoint, captures, &context.environment, mask, &clock)
        });
        let progress = settings.progress;
        let memory = &settings.log.target;
        let display = ProgressDisplay::open(progress, context, memory, jobs, mask, &clock);
        let mut summary = RunSummary::new(clock, &setup.tools, Arc::clone(mask));
        summary.name_calls(settings.named_calls());
        Ok(Self {
            otlp: otlp.transpose()?,
            display,
            summary,
            doubts: Some(DoubtCollector::new(log.map(Path::to_owned))),
            events,
            stderr: context.stderr.clone(),
            log: None,
            removes_unused_log: false,
        })
    }

    /// Records events in `log` from now on. Called last, so that an error in other setup doesn't leave an empty log
    /// behind. With `removes_unused`, the file is removed at the end if nothing was recorded.
    pub fn attach_log(&mut self, log: Option<SessionLog>, removes_unused: bool) {
        self.log = log;
        self.removes_unused_log = removes_unused;
    }

    /// Begins the trace of the run, if it is traced.
    pub(super) fn begin_trace(&mut self, trace: &TraceContext) {
        if let Some(otlp) = &mut self.otlp {
            otlp.begin(trace.clone());
        }
    }

    /// Returns the screen to suspend while something else is written to the terminal.
    pub fn screen(&self) -> Option<ProgressScreen> {
        self.display.as_ref()?.screen()
    }

    /// Returns the summary of the run so far.
    pub fn summary(&self) -> &RunSummary {
        &self.summary
    }

    /// Removes the bars for good, for the messages at the end of the run.
    pub fn close_screen(&mut self) {
        if let Some(ProgressDisplay::Bars(_)) = self.display {
            self.display = None;
        }
    }

    /// Returns the failures that no display of progress has shown.
    pub fn unseen_failures(&self) -> Option<&FailureList> {
        self.display.as_ref()?.unseen_failures()
    }

    /// Returns the path of the log, if there is one.
    pub fn log_path(&self) -> Option<&Path> {
        self.log.as_ref().map(SessionLog::path)
    }

    /// Returns whether another process deleted, replaced or changed the log.
    pub fn has_lost_log(&self) -> bool {
        self.log.as_ref().is_some_and(SessionLog::is_lost)
    }

    /// Closes all sinks but the summary. Returns `exit`, or a more severe one if the log can't be closed.
    pub fn close(&mut self, mut exit: Exit, stderr: &StderrWriter) -> Exit {
        // Remove the bars before printing anything.
        self.close_screen();
        let exit_before_log = exit;
        if self.removes_unused_log {
            self.discard_unused_log(stderr);
        }
        if let Some(Err(error)) = self.log.as_mut().map(|log| log.finish(exit.code())) {
            exit = exit.max(stderr.print_error(&CommandError::new(Exit::Log, error)));
        }
        let doubts = self.doubts.take().map(DoubtCollector::into_notices);
        for notice in doubts.unwrap_or_default() {
            stderr.print_needed_warning(&notice.line());
        }
        if let Some(warning) = self.events.take().and_then(NdjsonSink::finish) {
            stderr.print_warning(&warning);
        }
        let otlp = self.otlp.take();
        if let Some(warning) = otlp.and_then(|otlp| otlp.close(exit_before_log)) {
            stderr.print_warning(&format!("--otlp: {warning}"));
        }
        exit
    }

    /// Removes the log if nothing is in it but the beginning of the session.
    fn discard_unused_log(&mut self, stderr: &StderrWriter) {
        let Some(log) = &mut self.log else { return };
        match log.remove_if_unused() {
            Ok(true) => self.log = None,
            Ok(false) => {}
            // It is closed like any other.
            Err(error) => stderr.print_warning(&format!(
                "the empty log {} can't be removed: {error}",
                log.path().display()
            )),
        }
    }
}

impl EventSink for RunSinks {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let recorded = match &mut self.log {
            Some(log) => log.emit(events),
            None => Ok(()),
        };
        self.show(events, recorded)
    }

    fn emit_later(&mut self, event: &Event<'_>) -> Result<(), EmitError> {
        let events = slice::from_ref(event);
        // What people and programs see while calls run is on record before.
        let is_watched = self.is_watched();
        let recorded = match &mut self.log {
            Some(log) if is_watched => log.emit(events),
            Some(log) => log.emit_later(event),
            None => Ok(()),
        };
        self.show(events, recorded)
    }

    fn shows_progress(&self, _: &CallRef) -> bool {
        self.is_watched()
    }
}

impl RunSinks {
    /// Returns whether anybody sees calls while they run.
    fn is_watched(&self) -> bool {
        let display = self.display.as_ref();
        display.is_some_and(ProgressDisplay::shows_running_calls) || self.events.is_some()
    }

    /// Shows events to everybody else, once the log has been told. Returns what it said.
    fn show(
        &mut self,
        events: &[Event<'_>],
        recorded: Result<(), EmitError>,
    ) -> Result<(), EmitError> {
        let log = self.log.clone();
        let events_sink = self.events.as_mut();
        let mut durable_events = events_sink.map(|sink| DurableEvents { sink, log });
        let mut readers = [
            Some(&mut self.summary as &mut dyn EventSink),
            durable_events
                .as_mut()
                .map(|events| events as &mut dyn EventSink),
            self.otlp.as_mut().map(|otlp| otlp as &mut dyn EventSink),
            self.display.as_mut().map(ProgressDisplay::as_sink),
            self.doubts
                .as_mut()
                .map(|doubts| doubts as &mut dyn EventSink),
        ];
        show_to_all(events, recorded.is_ok(), &mut readers);
        for warning in events.iter().flat_map(discovery_warnings) {
            let print = || self.stderr.print_warning(&warning);
            match self.screen() {
                Some(screen) => screen.suspend(print),
                None => print(),
            }
        }
        recorded
    }
}

/// Passes results on to other programs once they are durable.
struct DurableEvents<'s> {
    sink: &'s mut NdjsonSink,
    log: Option<SessionLog>,
}

impl EventSink for DurableEvents<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let is_claimed =
            |event: &Event<'_>| matches!(event, Event::Finished { claim: Some(_), .. });
        if let Some(log) = &self.log
            && events.iter().any(is_claimed)
        {
            self.sink.wait_for(log.wait_until_durable());
        }
        self.sink.emit(events)
    }
}

// The display of progress on stderr: which one there is, and what it shows.

/// The progress display on stderr.
enum ProgressDisplay {
    Bars(ProgressBars),
    Lines(ProgressLines),
    /// Nothing while calls run. Their failures are listed at the end.
    AtEnd(FailureList),
}

impl ProgressDisplay {
    /// Chooses the display. There is none with `--quiet`.
    pub(super) fn open(
        progress: ProgressFlag,
        context: &CommandContext,
        memory: &LogTarget,
        jobs: NonZeroUsize,
        mask: &Arc<Mask>,
        clock: &Clock,
    ) -> Option<Self> {
        let mut repeat = if context.has_piped_tools() {
            RepeatCommand::with_tools_on_stdin()
        } else {
            RepeatCommand::new(&context.tools_flag())
        };
        repeat.memory = memory.clone();
        let bars = || {
            let bar_options = BarOptions {
                color: context.stderr.is_colored(),
                is_unicode: context.stderr.is_unicode,
                terminal_size: StderrWriter::size,
                jobs,
            };
            let target = ProgressDrawTarget::term_like_with_hz(
                Box::new(StderrTerminal::default()),
                MAX_FRAMES_PER_SECOND,
            );
            let mut bars = ProgressBars::new(target, bar_options, Arc::clone(mask));
            bars.repeat = Some(repeat.clone());
            Self::Bars(bars)
        };
        let lines = || {
            let stderr = Box::new(StderrStream);
            let mut lines = ProgressLines::new(stderr, jobs, Arc::clone(mask), clock.clone());
            lines.is_unicode = context.stderr.is_unicode;
            lines.columns = StderrWriter::is_terminal().then(StderrWriter::width);
            lines.repeat = Some(repeat.clone());
            Self::Lines(lines)
        };
        let at_end = || Self::AtEnd(FailureList::new(Arc::clone(mask), repeat.clone()));
        let in_ci = || {
            context
                .environment
                .get_os("CI")
                .is_some_and(|value| !value.is_empty())
        };
        match progress {
            _ if context.stderr.quiet => None,
            // A build log may come from a terminal, too.
            ProgressFlag::Auto if in_ci() => Some(lines()),
            ProgressFlag::Auto | ProgressFlag::Bar if context.stderr.can_redraw() => Some(bars()),
            ProgressFlag::Bar | ProgressFlag::Plain => Some(lines()),
            ProgressFlag::Auto if StderrWriter::is_terminal() => Some(lines()),
            ProgressFlag::None | ProgressFlag::Auto => Some(at_end()),
        }
    }

    fn as_sink(&mut self) -> &mut dyn EventSink {
        match self {
            Self::Bars(bars) => bars,
            Self::Lines(lines) => lines,
            Self::AtEnd(failures) => failures,
        }
    }

    /// Returns the screen, if it is drawn again and again.
    pub(super) fn screen(&self) -> Option<ProgressScreen> {
        match self {
            Self::Bars(bars) => Some(bars.screen()),
            Self::Lines(_) | Self::AtEnd(_) => None,
        }
    }

    /// Returns the failures that it hasn't shown.
    pub(super) fn unseen_failures(&self) -> Option<&FailureList> {
        match self {
            Self::AtEnd(failures) => Some(failures),
            Self::Bars(_) | Self::Lines(_) => None,
        }
    }

    fn shows_running_calls(&self) -> bool {
        match self {
            Self::Bars(_) | Self::Lines(_) => true,
            Self::AtEnd(_) => false,
        }
    }
}
