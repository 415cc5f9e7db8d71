//! The session in which commands run calls. Everything that they need is wired up here once, because
//! the order matters.

use std::panic;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::approval::build_approver;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, StderrWriter};
use crate::session::runtime::{build_runtime, halt_when_stdout_closes, set_up_calls, spawn_ticker};
use crate::session::signals::SignalHandler;
use crate::session::sinks::RunSinks;
use crate::settings::{CallSetup, LogTarget, SessionSettings};
use toolq_core::check::undescribed_tools;
use toolq_core::os::Clock;
use toolq_core::text::{escape, quote_path_for_shell};
use toolq_core::types::{Call, Tool, ToolsConfig, TraceContext};
use toolq_engine::{Engine, EngineSettings, RememberedWrites};
use toolq_log::memory::{MemoryUse, Remembered, RememberedIn, WaitingCall, waiting_calls};
use toolq_log::{LockedLog, SessionLog, SessionRecord, exceeds_size};

/// A session that has begun: its log is open, and calls may run.
pub struct RunSession<'a> {
    pub context: &'a CommandContext,
    pub setup: CallSetup,
    pub engine: Engine,
    pub sinks: RunSinks,
    /// The writes of the current input that had run or may have when it was last looked.
    pub writes: RememberedWrites,
    runtime: Arc<Runtime>,
    /// `None` once the handlers run.
    signals: Option<SignalHandler>,
    /// The signal that stopped the run.
    termination_signal: Arc<OnceLock<u8>>,
    prints_results: bool,
    source: CallSource,
    /// The log is in the default directory.
    has_default_log: bool,
}

/// What a session does until its calls are answered.
type SessionWork<'s, T> = Pin<Box<dyn Future<Output = T> + Send + 's>>;

/// Where the calls of a session come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallSource {
    /// The inputs of `toolq run`.
    Inputs,
    /// The arguments of `toolq call`.
    Command,
    /// The recordings of `toolq replay`.
    Recordings,
    /// The host process of `toolq run --follow --control`.
    Host,
    /// The client of `toolq serve`.
    Client,
}

impl CallSource {
    /// Which calls the memory keeps. Those of a command, of a recording and of a client have no ids that last.
    fn remembered(self) -> Remembered {
        match self {
            Self::Inputs | Self::Host => Remembered::ById,
            Self::Command | Self::Recordings | Self::Client => Remembered::ByValues,
        }
    }
}

impl<'a> RunSession<'a> {
    /// Begins a session.
    ///
    /// # Errors
    /// The log or the target of `--events` can't be used, or the system has no resources left. Nothing ran.
    pub fn begin(
        context: &'a CommandContext,
        tools: Arc<ToolsConfig>,
        settings: &SessionSettings,
        source: CallSource,
    ) -> Result<Self, CommandError> {
        let setup = set_up_calls(tools, settings.jobs, context)?;
        let runtime = build_runtime(settings.otlp.is_some())?;
        let entered = runtime.enter();
        // Before the log is opened: from then on, it has to be closed properly.
        let signals = SignalHandler::install()?;
        let clock = Clock::system();
        if let Some(otlp) = &settings.otlp {
            otlp.warn_about_parent(&context.stderr);
        }
        let mut sinks = RunSinks::new(settings, context, &setup, clock.clone())?;
        let approver = build_approver(
            &settings.approval,
            settings.plan.as_ref(),
            &setup.mask,
            sinks.screen(),
            &context.environment,
        )?;
        // Last of what can fail: it writes that the session has begun.
        let log = open_log(context, settings, source, &setup, clock)?;
        let mut engine = EngineSettings {
            approver,
            host_tools: settings.host_tools.clone(),
            budget_limits: settings.budgets,
            ..setup.logged_engine_settings(log.as_ref())
        };
        if let Some(otlp) = &settings.otlp {
            let id = &engine.task_id;
            let trace = TraceContext::new(id, id, otlp.parent.clone());
            sinks.begin_trace(&trace);
            engine.trace = Some(Arc::new(trace));
        }
        let has_default_log = settings.log.target == LogTarget::DefaultDirectory;
        // A new log is removed if no call was made: clients often only list the tools.
        let removes_unused =
            has_default_log && matches!(source, CallSource::Host | CallSource::Client);
        sinks.attach_log(log, removes_unused);
        let engine = Engine::new(engine);
        drop(entered);
        Ok(Self {
            context,
            setup,
            engine,
            sinks,
            writes: RememberedWrites::default(),
            runtime: Arc::new(runtime),
            termination_signal: signals.termination_signal(),
            signals: Some(signals),
            prints_results: settings.prints_results,
            source,
            has_default_log,
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

    /// Asks the servers that aren't locked for their tools.
    pub async fn list_unlocked_servers(&mut self) {
        let tools = Arc::clone(&self.setup.tools);
        if !tools.unlocked.is_empty() {
            let discovery = self.engine.schema_discovery();
            discovery
                .list_servers(&tools.unlocked, &mut self.sinks)
                .await;
        }
    }

    /// Runs the `describe` programs of those of these tools whose schema isn't known yet.
    pub async fn describe_all(&mut self, tools: &[Arc<Tool>]) {
        let undescribed = tools.iter().filter(|tool| tool.needs_describe());
        let undescribed: Vec<_> = undescribed.cloned().collect();
        if !undescribed.is_empty() {
            let discovery = self.engine.schema_discovery();
            discovery.discover(&undescribed, &mut self.sinks).await;
        }
    }

    /// Runs the `describe` programs that these calls need and that haven't run yet.
    pub async fn describe_tools(&mut self, calls: &[Call]) {
        let undescribed = undescribed_tools(&self.setup.tools, calls);
        let discovery = self.engine.schema_discovery();
        discovery.discover(&undescribed, &mut self.sinks).await;
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

/// Opens the session log and writes that the session has begun. `None` with `--no-log`.
fn open_log(
    context: &CommandContext,
    settings: &SessionSettings,
    source: CallSource,
    setup: &CallSetup,
    clock: Clock,
) -> Result<Option<SessionLog>, CommandError> {
    let log = match &settings.log.target {
        LogTarget::Disabled => return Ok(None),
        LogTarget::File(path) => LockedLog::open(path)?,
        LogTarget::DefaultDirectory => {
            let path = toolq_log::default_log_path(&context.environment, &clock)?;
            LockedLog::open_default(&path)?
        }
    };
    let Some(place) = settings.log.target.memory(&context.environment)? else {
        return Ok(None);
    };
    if let Some(warning) = log.durability_warning() {
        context.stderr.print_warning(&warning);
    }
    let record = SessionRecord {
        plan: settings.plan.as_ref().map(|plan| plan.id().to_owned()),
        ..SessionRecord::new(&context.tools_path, &setup.tools, setup.jobs)
    };
    let usage = MemoryUse {
        remembered: source.remembered(),
        again: settings.log.again.clone(),
    };
    let log = log.begin_session(record, (place, usage), Arc::clone(&setup.mask), clock)?;
    for recovered in log.recovered() {
        context.stderr.print_note(&recovered.message(log.path()));
    }
    Ok(Some(log))
}

// The end of a session: the summary, the failures, and the exit code.

/// The most calls that a hint names.
const MAX_NAMED_CALLS: usize = 20;
/// From these sizes of the default directory on, the summary suggests to remove old logs.
const MAX_SESSION_BYTES: u64 = 1 << 30;
const MAX_SESSION_FILES: usize = 10_000;

impl RunSession<'_> {
    /// Finishes a session whose work had this result, and returns the most severe exit.
    ///
    /// # Errors
    /// `result` is one. It has that exit, then.
    pub fn conclude(
        self,
        result: Result<(), CommandError>,
        exits: impl IntoIterator<Item = Exit>,
    ) -> Result<Exit, CommandError> {
        let failed = result.as_ref().err().map(|failure| failure.exit);
        let exit = self.finish(exits.into_iter().chain(failed));
        result.map_err(|failure| CommandError { exit, ..failure })?;
        Ok(exit)
    }

    /// Closes the session and prints the summary. Returns the most severe of `exits` and of what stopped the run.
    pub fn finish(mut self, exits: impl IntoIterator<Item = Exit>) -> Exit {
        let of_calls = self.sinks.summary().exit();
        let exits = exits.into_iter().chain([of_calls]);
        let exit = self.close_sinks(exits);
        if exit != Exit::Output {
            self.print_summary(exit);
            if let Some(hint) = self.approval_hint() {
                self.context.stderr.print_needed_note(&hint);
            }
        }
        self.shut_down();
        exit
    }

    fn print_summary(&self, exit: Exit) {
        let stderr = &self.context.stderr;
        if let Some(why) = self.sinks.summary().approver_stop() {
            let message = format!("the run was stopped where a call needs an approval: {why}");
            stderr.print_error(&CommandError::new(Exit::Incomplete, message));
        }
        self.print_failures();
        stderr.print_note(&self.summary_line());
        if let Some(note) = self.sinks.summary().memory_note() {
            let takes_new = !matches!(self.source, CallSource::Client | CallSource::Recordings)
                && self.sinks.summary().may_renew()
                // Nobody should repeat what is in doubt because of a hint.
                && exit != Exit::Incomplete;
            let again = takes_new.then_some("; `--new` runs the input again");
            stderr.print_note(&format!("{note}{}", again.unwrap_or_default()));
        }
        let unknown: Vec<&str> = self.sinks.summary().unknown_ids().collect();
        if !unknown.is_empty() {
            let unknown = escape(&unknown.join(", ")).into_owned();
            stderr.print_warning(&format!(
                "no call of the input has this id, which a flag names: {unknown}"
            ));
        }
        for note in self.sinks.summary().noise_notes() {
            stderr.print_note(&note);
        }
        let Some(log) = self.sinks.log_path() else {
            return;
        };
        if self.sinks.has_lost_log() {
            stderr.print_warning(
                "another process deleted, replaced or changed the session log, so no later run knows what this one did: running its input again may repeat it",
            );
            return;
        }
        if self.source != CallSource::Command {
            stderr.print_note(&format!("session log: {}", log.display()));
        }
        if let Some(dir) = log
            .parent()
            .filter(|_| self.has_default_log && !stderr.quiet)
            && exceeds_size(dir, MAX_SESSION_BYTES, MAX_SESSION_FILES)
        {
            stderr.print_note(&format!(
                "{} has more than 1 GiB or 10,000 files of session logs; `toolq log prune --older 30d` removes old ones",
                dir.display()
            ));
        }
        let is_by_id = self.source.remembered() == Remembered::ById;
        let was_cut_off = matches!(exit, Exit::Signal(_) | Exit::Log);
        if is_by_id && was_cut_off && self.sinks.summary().has_unanswered_calls() {
            stderr.print_note("the same command runs what is missing");
        }
    }

    /// Says in one line how the calls that wait get their approval. Not where a client was asked.
    fn approval_hint(&self) -> Option<String> {
        let summary = self.sinks.summary();
        let asked = summary.waiting();
        let calls = match asked.len() {
            0 if summary.exit() != Exit::NeedsApproval => return None,
            0 => "a call of an agent waits".to_owned(),
            1 => "1 call waits".to_owned(),
            count => format!("{count} calls wait"),
        };
        if summary.approver_stop().is_some() || self.source == CallSource::Client {
            return None;
        }
        // Nobody can decide later about a call that has a new id in each run.
        let lasts = !asked.is_empty() && self.source != CallSource::Command;
        let path = self
            .sinks
            .log_path()
            .filter(|_| lasts && !self.sinks.has_lost_log());
        let Some(path) = path else {
            return Some(format!(
                "{calls} for an approval: add `--approve all`, `--approve ask` or `--approve-with PROGRAM`"
            ));
        };
        let named_log = (!self.has_default_log).then(|| quote_path_for_shell(path));
        let log = named_log.map_or_else(String::new, |log| format!(" --log {log}"));
        // A call of another run may be the same in all that people see. An earlier run of this input may have asked.
        let state_dir = toolq_log::state_dir(&self.context.environment).ok();
        let place = RememberedIn::of_log(path, state_dir.as_deref());
        let waiting = waiting_calls(&place, path).unwrap_or_default();
        let names_of = |is_own: &dyn Fn(&WaitingCall) -> bool| -> Vec<&str> {
            let asks = |call: &&WaitingCall| asked.contains(&call.asked_digest()) && is_own(call);
            waiting.iter().filter(asks).map(|call| &*call.id).collect()
        };
        let named = [names_of(&|call| call.log == path), names_of(&|_| true)]
            .into_iter()
            .find(|named| named.len() == asked.len() && named.len() <= MAX_NAMED_CALLS);
        let named = named.unwrap_or_else(|| vec!["ID…"]);
        let (words, list) = (named.join(" "), named.join(","));
        Some(format!(
            "{calls} for an approval: see `toolq approvals{log}`, say yes with `toolq approvals approve {words}{log}`, \
             and run the same command again, or add `--approve {list}` or `--approve ask` to it"
        ))
    }

    /// Returns what became of the calls. A command has a single one, so that its log fits into the same line.
    fn summary_line(&self) -> String {
        let text = self.sinks.summary().text();
        if self.source != CallSource::Command {
            return text;
        }
        let text = text.strip_prefix("1 call in 1 batch: ").unwrap_or(&text);
        match self.sinks.log_path().filter(|_| !self.sinks.has_lost_log()) {
            Some(log) => format!("{text}; session log: {}", log.display()),
            None => text.to_owned(),
        }
    }

    /// Names each failure, unless a display of progress has done so.
    fn print_failures(&self) {
        let Some(failures) = self.sinks.unseen_failures() else {
            return;
        };
        let (shown, omitted) = failures.failures();
        for failure in shown {
            self.context
                .stderr
                .print_failure(failure.kind, &failure.line);
            if let Some(repeat) = &failure.repeat {
                StderrWriter::print_details(repeat);
            }
        }
        if omitted > 0 {
            let log = self.sinks.log_path().filter(|_| !self.sinks.has_lost_log());
            let log = log.map(quote_path_for_shell);
            let listed = log.map(|log| format!("; `toolq log show --errors {log}` lists them"));
            let listed = listed.unwrap_or_default();
            let line = format!("{omitted} more calls did not succeed{listed}");
            self.context.stderr.print_note(&line);
        }
    }

    /// Closes the session like [`finish`](Self::finish), but prints no summary: the command has its own.
    pub fn finish_quietly(mut self, exits: impl IntoIterator<Item = Exit>) -> Exit {
        let exit = self.close_sinks(exits);
        self.shut_down();
        exit
    }

    fn close_sinks(&mut self, exits: impl IntoIterator<Item = Exit>) -> Exit {
        let signal = self.termination_signal.get().copied().map(Exit::Signal);
        let exit = exits.into_iter().chain(signal).max().unwrap_or(Exit::Ok);
        // If the log can't be written, closing it says so.
        let _ = self.engine.end_servers(&mut self.sinks);
        self.sinks.close(exit, &self.context.stderr)
    }

    fn shut_down(self) {
        self.engine.close();
        // Everything is written and no call is running; don't wait for leftover work such as a DNS lookup.
        if let Some(runtime) = Arc::into_inner(self.runtime) {
            runtime.shutdown_background();
        }
    }
}
