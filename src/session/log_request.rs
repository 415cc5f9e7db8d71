//! Opens the session log of a run: chooses the file, and decides whether the run begins, resumes an earlier one, or is
//! answered from the log. All of this is decided before anything runs or is written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use crate::call_setup::CallSetup;
use crate::context::CommandContext;
use crate::log_view::resolve_command;
use crate::output::CommandError;
use crate::plan_file::PlannedCalls;
use crate::session::history_comparison::compare_with_history;
use crate::session::log_subject::LogSubject;
use crate::session::{previous_run, repetition, resumption};
use crate::settings::{LogSettings, LogTarget};
use toolq_core::os::Clock;
use toolq_core::text::truncate_to_columns;
use toolq_core::types::{Tool, Turn};
use toolq_log::{
    Access, BeginMode, KeptResults, PreparedLog, SessionHeader, SessionLog, TaskHistory, TaskKey,
};

/// Maximum number of calls in doubt that a warning lists.
const MAX_LISTED_CALLS: usize = 5;
/// Maximum length of a tool name in a warning, in columns.
const MAX_NAME_CHARS: usize = 60;

/// What opening the log of a run depends on.
pub struct LogRequest<'a> {
    pub settings: &'a LogSettings,
    pub context: &'a CommandContext,
    pub setup: &'a CallSetup,
    pub subject: LogSubject<'a>,
    /// The plan that the run applies.
    pub plan: Option<&'a Arc<PlannedCalls>>,
}

impl LogRequest<'_> {
    /// Returns what the log is opened for.
    pub(super) fn access(&self) -> Access {
        match (self.subject, self.settings.mode) {
            (LogSubject::Recordings, _) => Access::Replay,
            (_, BeginMode::Resume) => Access::Resume,
            (_, BeginMode::NewTask | BeginMode::ForceNewTask) => Access::Run,
        }
    }

    fn session_header(&self) -> SessionHeader {
        SessionHeader {
            input_sha256: self.subject.digest(),
            plan: self.plan.map(|plan| plan.id().to_owned()),
            sync: self.settings.sync,
            ..self.setup.session_header(&self.context.tools_path)
        }
    }

    /// Returns whether results of earlier runs in the log may answer calls. They may only if the path of the log was given.
    pub(super) fn uses_earlier_results(&self) -> bool {
        let is_over_runs = |tool: &Arc<Tool>| tool.cache.is_some_and(|cache| cache.over_runs);
        !matches!(self.subject, LogSubject::Recordings)
            && self.settings.target.path().is_some()
            && self.setup.tools.tools.iter().any(is_over_runs)
    }
}

/// The log of a run that is about to start.
#[derive(Default)]
pub struct OpenedLog {
    /// `None` with `--no-log`, and if nothing is going to run.
    pub log: Option<SessionLog>,
    /// The earlier run that has all results of this input, so that nothing runs.
    pub answers: Option<Arc<TaskHistory>>,
    /// The results of earlier runs that may answer calls.
    pub kept_results: KeptResults,
    /// The only turn of the input, if it was already read for the comparison with the log.
    pub compared_turn: Option<Turn>,
}

/// Opens the log of a run and writes its session record, unless the log already has the results of this input.
///
/// # Errors
/// The log can't be opened, the input doesn't match the run to resume, or an earlier run would be repeated. Nothing ran.
pub fn begin_log(request: &LogRequest<'_>, clock: &Clock) -> Result<OpenedLog, CommandError> {
    let (context, mode) = (request.context, request.settings.mode);
    if request.settings.target == LogTarget::Disabled {
        return Ok(OpenedLog::default());
    }
    let header = request.session_header();
    let mut log = open_log(request, &header, clock)?;
    if let Some(warning) = log.durability_warning() {
        context.stderr.print_warning(&warning);
    }
    if mode == BeginMode::Resume {
        resumption::choose_run(&mut log, request)?;
    }
    warn_in_doubt(&log, context);
    let mut compared_turn = None;
    match mode {
        BeginMode::Resume => {
            compared_turn = compare_with_history(log.history(), request)?;
            previous_run::wait_for_exit(log.history())?;
        }
        BeginMode::NewTask if repetition::is_answered_by(&log, request)? => {
            note_why_nothing_runs(&log, request);
            return Ok(OpenedLog {
                answers: Some(Arc::new(log.into_history())),
                ..OpenedLog::default()
            });
        }
        BeginMode::ForceNewTask => repetition::check_plan_is_new(&log, request)?,
        BeginMode::NewTask => {}
    }
    if mode != BeginMode::ForceNewTask {
        repetition::check_no_doubt_is_repeated(&log, request)?;
    }
    // Only now: an old plan that was applied in time is answered from the log.
    if let Some(plan) = request.plan
        && let Err(error) = plan.check_time(current_time(clock))
    {
        log.discard();
        return Err(error);
    }
    let kept_results = log.take_kept_results();
    let log = log.begin_session(&header, Arc::clone(&request.setup.mask), clock.clone())?;
    for recovered in log.recovered() {
        context.stderr.print_note(&recovered.message(log.path()));
    }
    Ok(OpenedLog {
        log: Some(log),
        compared_turn,
        kept_results,
        answers: None,
    })
}

fn current_time(clock: &Clock) -> Timestamp {
    let now = i64::try_from(clock.now_ms()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(now).unwrap_or(Timestamp::MAX)
}

/// Says that the log has the results already.
fn note_why_nothing_runs(log: &PreparedLog, request: &LogRequest<'_>) {
    let path = log.path().display();
    request.context.stderr.print_note(&match request.plan {
        Some(plan) if log.has_applied_plan() => format!(
            "nothing runs: the plan {} was already applied, and {path} has its results",
            plan.id()
        ),
        _ => format!("nothing runs: {path} has the results of this input (`--new` runs it again)"),
    });
}

/// Warns about calls that earlier runs left in doubt. They aren't part of a new run, but must not be forgotten.
fn warn_in_doubt(log: &PreparedLog, context: &CommandContext) {
    let Some(in_doubt_calls) = log.in_doubt_calls() else {
        return;
    };
    let path = log.path().display();
    let calls = in_doubt_calls.in_log_order();
    let Some(first) = calls.first() else { return };
    let resolve = resolve_command(&in_doubt_calls.resolve_id(first), log.path());
    let shown = calls.iter().take(MAX_LISTED_CALLS);
    let shown = shown.map(|call| {
        format!(
            "{} ({})",
            in_doubt_calls.resolve_id(call),
            truncate_to_columns(&call.tool_name, MAX_NAME_CHARS)
        )
    });
    let more = calls.len().saturating_sub(MAX_LISTED_CALLS);
    let more = (more > 0).then(|| format!("{more} more"));
    let listed = shown.chain(more).collect::<Vec<_>>().join(", ");
    let (count, advice) = match calls.len() {
        1 => ("1 call".to_owned(), "settle it with"),
        count => (format!("{count} calls"), "settle them, starting with"),
    };
    context.stderr.print_warning(&format!(
        "an earlier run in {path} left {count} in doubt: {listed}; {advice} `{resolve}`, adding `--done --result TEXT` or `--not-done`"
    ));
}

fn open_log(
    request: &LogRequest<'_>,
    header: &SessionHeader,
    clock: &Clock,
) -> Result<PreparedLog, CommandError> {
    let (context, mode) = (request.context, request.settings.mode);
    let input_sha256 = header.input_sha256.as_deref();
    let key = TaskKey {
        input_sha256,
        plan: header.plan.as_deref(),
        keeps_results: request.uses_earlier_results(),
    };
    let open = |path: &Path| {
        let opened = PreparedLog::open(path, mode, key);
        opened.map_err(|error| error.for_command(request.access()))
    };
    if let Some(path) = request.settings.target.path() {
        return open(path);
    }
    if let Some(plan) = request.plan {
        let created = plan.created().as_millisecond();
        let path = toolq_log::plan_log_path(&context.environment, created, plan.id())?;
        let opened = PreparedLog::open_default(&path, mode, key);
        return opened.map_err(|error| error.for_command(request.access()));
    }
    match mode {
        BeginMode::Resume => {
            if let Some(path) = find_session_to_resume(request, input_sha256)? {
                return open(&path);
            }
            context
                .stderr
                .print_note("this input has no session to resume; starting a new one");
        }
        BeginMode::NewTask => repetition::check_unsettled_session(request, header)?,
        BeginMode::ForceNewTask => {}
    }
    let path = toolq_log::default_log_path(&context.environment, clock, input_sha256)?;
    Ok(PreparedLog::open_default(&path, mode, TaskKey::default())?)
}

/// Returns the log of the latest session with this input in the default directory.
fn find_session_to_resume(
    request: &LogRequest<'_>,
    input_sha256: Option<&str>,
) -> Result<Option<PathBuf>, CommandError> {
    let context = request.context;
    let Some(input_sha256) = input_sha256 else {
        let message =
            "can't look up the session of a streaming input: its contents aren't known yet";
        return Err(CommandError::usage(message).with_hint("name it with `--log FILE`"));
    };
    let directory = toolq_log::sessions_dir(&context.environment)?;
    let latest = toolq_log::find_latest_session_for_input(&directory, input_sha256)?;
    if let Some(path) = latest.as_ref().filter(|_| context.verbose) {
        let note = format!("resuming {}", path.display());
        context.stderr.print_note(&note);
    }
    Ok(latest)
}
