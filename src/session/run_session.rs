//! The session in which commands run calls. Everything that they need is wired up here once, because
//! the order matters.

mod session_end;
mod session_start;

use std::panic;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::call_setup::CallSetup;
use crate::context::CommandContext;
use crate::output::CommandError;
use crate::session::describe::DescribeWarningSink;
use crate::session::log_subject::{LogSubject, ResumeFlags};
use crate::session::resume_decisions::ResumeDecisions;
use crate::session::run_session::session_start::SessionStart;
use crate::session::runtime::{build_runtime, halt_when_stdout_closes, set_up_calls, spawn_ticker};
use crate::session::signals::SignalHandler;
use crate::session::sinks::RunSinks;
use crate::settings::{LogTarget, SessionSettings};
use toolq_core::check::{CallChecker, undescribed_tools};
use toolq_core::os::Clock;
use toolq_core::types::{Call, ToolsConfig, Turn};
use toolq_engine::{Engine, EngineSettings, PriorCalls as _};

/// A session that has begun: its log is open, and calls may run.
pub struct RunSession<'a> {
    pub context: &'a CommandContext,
    pub setup: CallSetup,
    pub engine: Engine,
    pub sinks: RunSinks,
    /// What the log says about the task being resumed.
    pub resume: Arc<ResumeDecisions>,
    /// The only turn of the input, if it was already read for the comparison with the log.
    pub compared_turn: Option<Turn>,
    runtime: Arc<Runtime>,
    /// `None` once the handlers run.
    signals: Option<SignalHandler>,
    /// The signal that stopped the run.
    termination_signal: Arc<OnceLock<u8>>,
    prints_results: bool,
    /// The flags with which a later run can finish what this one leaves, if one can.
    resume_flags: Option<ResumeFlags>,
    /// The log is in the default directory.
    has_default_log: bool,
}

/// What a session does until its calls are answered.
pub type SessionWork<'s, T> = Pin<Box<dyn Future<Output = T> + Send + 's>>;

/// The parts of a session that answer a turn.
pub(crate) struct TurnParts<'s> {
    pub(crate) engine: &'s mut Engine,
    pub(crate) sink: DescribeWarningSink<'s>,
    pub(crate) prior: (&'s CallChecker, &'s ResumeDecisions),
}

impl<'a> RunSession<'a> {
    /// Begins a session. `subject` is what the log has to match.
    ///
    /// # Errors
    /// The log or the target of `--events` can't be used, or the system has no resources left. Nothing ran.
    pub fn begin(
        context: &'a CommandContext,
        tools: Arc<ToolsConfig>,
        settings: &SessionSettings,
        subject: LogSubject<'_>,
    ) -> Result<Self, CommandError> {
        let setup = set_up_calls(tools, settings.jobs, context)?;
        let runtime = build_runtime(settings.otlp.is_some())?;
        let entered = runtime.enter();
        // Before the log is opened: from then on, it has to be closed properly.
        let signals = SignalHandler::install()?;
        let start = SessionStart {
            context,
            settings,
            subject,
            setup: &setup,
            clock: Clock::system(),
        };
        let mut sinks = start.open_sinks()?;
        let approver = start.build_approver(&sinks)?;
        // Last of what can fail: it writes that the session has begun.
        let (mut opened, resume) = start.open_log()?;
        let mut engine = EngineSettings {
            approver,
            ..start.engine_settings(&mut opened)
        };
        if let Some(trace) = start.trace(&engine.task_id, opened.log.as_ref()) {
            sinks.begin_trace(&trace);
            engine.trace = Some(Arc::new(trace));
        }
        sinks.attach_log(opened.log, start.removes_unused_log());
        let engine = Engine::new(engine);
        drop(entered);
        Ok(Self {
            context,
            setup,
            engine,
            sinks,
            resume: Arc::new(resume),
            compared_turn: opened.compared_turn,
            runtime: Arc::new(runtime),
            termination_signal: signals.termination_signal(),
            signals: Some(signals),
            prints_results: settings.prints_results,
            resume_flags: ResumeFlags::of(subject, &settings.log),
            has_default_log: settings.log.target == LogTarget::DefaultDirectory,
        })
    }

    /// Runs `work` to its end. A signal or a lost stdout stops running calls, and their answers say so.
    pub fn block_on<T>(&mut self, work: impl AsyncFnOnce(&mut Self) -> T) -> T {
        let runtime = Arc::clone(&self.runtime);
        runtime.block_on(async {
            let ticking = self.begin_tasks();
            let result = work(self).await;
            if let Some(ticking) = ticking {
                ticking.abort();
            }
            result
        })
    }

    /// Makes signals stop the run, and starts the tasks that watch for a lost stdout and redraw the progress bars. Returns
    /// the last. The others continue until the program exits, because it can be interrupted while it closes the log, too.
    fn begin_tasks(&mut self) -> Option<JoinHandle<()>> {
        let (control, screen) = (self.engine.control(), self.sinks.screen());
        if let Some(signals) = self.signals.take() {
            signals.begin(control.clone(), screen.clone());
        }
        if self.prints_results {
            tokio::spawn(halt_when_stdout_closes(control));
        }
        screen.map(spawn_ticker)
    }

    /// Runs the `describe` programs that these calls need and that haven't run yet.
    pub async fn describe_tools(&mut self, calls: &[Call]) {
        let undescribed = undescribed_tools(&self.setup.tools, self.resume.open_calls(calls));
        let discovery = self.engine.schema_discovery();
        let mut sink = self.warning_sink();
        discovery.discover(&undescribed, &mut sink).await;
    }

    /// Returns what answers a turn: the engine, the sink of its events, and what checks and resumes its calls.
    pub(crate) fn turn_parts(&mut self) -> TurnParts<'_> {
        let screen = self.sinks.screen();
        TurnParts {
            engine: &mut self.engine,
            sink: DescribeWarningSink::new(&mut self.sinks, &self.context.stderr, screen),
            prior: (&self.setup.checker, &self.resume),
        }
    }

    /// Returns the sinks, with a warning for each tool that can't describe itself.
    pub fn warning_sink(&mut self) -> DescribeWarningSink<'_> {
        let screen = self.sinks.screen();
        DescribeWarningSink::new(&mut self.sinks, &self.context.stderr, screen)
    }
}

impl RunSession<'static> {
    /// Runs `work` to its end on a worker of the runtime, and returns the session with its result. Otherwise as
    /// [`block_on`](Self::block_on).
    ///
    /// There, `work` shares a thread with the connections to servers. From the main thread, each request and each answer would
    /// have to wake another thread.
    pub fn run_on_worker<T: Send + 'static>(
        mut self,
        work: impl for<'s> FnOnce(&'s mut Self) -> SessionWork<'s, T> + Send + 'static,
    ) -> (Self, T) {
        // If `work` panics, the session is dropped there, which the runtime must outlive.
        let runtime = Arc::clone(&self.runtime);
        let task = runtime.spawn(async move {
            let ticking = self.begin_tasks();
            let result = work(&mut self).await;
            if let Some(ticking) = ticking {
                ticking.abort();
            }
            (self, result)
        });
        match runtime.block_on(task) {
            Ok(done) => done,
            Err(error) => panic::resume_unwind(error.into_panic()),
        }
    }
}
