//! What a run does, apart from its session.

use crate::args::run::RunArguments;
use crate::otlp::OtlpSettings;
use crate::output::AnswerPrinter;
use crate::settings::{LogSettings, SessionSettings, WatchSettings};
use crate::terminal::ProgressScreen;
use toolq_core::os::Environment;
use toolq_core::types::{AnswerForm, InputLayout};

/// The settings of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunSettings {
    /// Calls that already have a result in the input run, too.
    pub(crate) include_answered: bool,
    /// Lines are answered as they arrive, each with one line.
    pub(crate) follow: bool,
    /// The form of the answers; `None` mirrors the input.
    pub(crate) form: Option<AnswerForm>,
    /// An error result makes the run fail.
    pub(crate) fail_on_error: bool,
}

impl From<&RunArguments> for RunSettings {
    fn from(arguments: &RunArguments) -> Self {
        Self {
            include_answered: arguments.input.all,
            follow: arguments.follow,
            form: arguments.to,
            fail_on_error: arguments.fail_on_error,
        }
    }
}

/// Returns the settings of the session of a run.
pub(crate) fn session_settings(
    arguments: &RunArguments,
    environment: &Environment,
) -> SessionSettings {
    let files = arguments.input.files.iter().chain(&arguments.plan);
    let watch = WatchSettings {
        inputs: files.cloned().collect(),
        ..(&arguments.watch).into()
    };
    let log = LogSettings::new(&arguments.log, environment);
    SessionSettings {
        jobs: arguments.input.jobs,
        approval: (&arguments.approval).into(),
        otlp: OtlpSettings::new(&arguments.watch.otlp, environment),
        prints_results: true,
        ..SessionSettings::new(log, watch, &arguments.budgets)
    }
}

impl RunSettings {
    /// Returns a printer for an input of `layout` with `turns` turns.
    pub(crate) fn new_printer(
        self,
        layout: InputLayout,
        turns: usize,
        screen: Option<ProgressScreen>,
    ) -> AnswerPrinter {
        let printer = AnswerPrinter::new(self.form, layout, turns, screen);
        if self.follow {
            return printer.with_compact_output();
        }
        printer
    }
}
