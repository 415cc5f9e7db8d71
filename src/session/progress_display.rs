//! The display of progress on stderr: which one there is, and what it shows.

use std::num::NonZeroUsize;
use std::sync::Arc;

use indicatif::ProgressDrawTarget;

use crate::args::values::ProgressFlag;
use crate::context::CommandContext;
use crate::output::{StderrStream, StderrTerminal, StderrWriter};
use crate::terminal::{
    BarOptions, FailureList, MAX_FRAMES_PER_SECOND, ProgressBars, ProgressLines, ProgressScreen,
    RepeatCommand,
};
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::types::EventSink;

/// The progress display on stderr.
pub(super) enum ProgressDisplay {
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
        jobs: NonZeroUsize,
        mask: &Arc<Mask>,
        clock: &Clock,
    ) -> Option<Self> {
        let repeat = if context.has_piped_tools() {
            RepeatCommand::with_tools_on_stdin()
        } else {
            RepeatCommand::new(&context.tools_flag())
        };
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
            let bars = ProgressBars::new(target, bar_options, Arc::clone(mask));
            Self::Bars(bars.with_repeat_command(repeat.clone()))
        };
        let lines = || {
            let stderr = Box::new(StderrStream);
            let lines = ProgressLines::new(stderr, jobs, Arc::clone(mask), clock.clone());
            let lines = lines
                .with_characters(context.stderr.is_unicode)
                .with_columns(StderrWriter::is_terminal().then(StderrWriter::width));
            Self::Lines(lines.with_repeat_command(repeat.clone()))
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

    pub(super) fn as_sink(&mut self) -> &mut dyn EventSink {
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

    pub(super) fn shows_running_calls(&self) -> bool {
        match self {
            Self::Bars(_) | Self::Lines(_) => true,
            Self::AtEnd(_) => false,
        }
    }
}
