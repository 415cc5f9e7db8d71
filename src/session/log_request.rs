//! Opens the session log of a run: chooses the file, finds the task to resume, and checks that it matches the input.
//! All of this is decided before anything runs or is written.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::context::CommandContext;
use crate::input::CommandInput;
use crate::output::CommandError;
use crate::session::{previous_run, repetition, resumption};
use crate::settings::{LogSettings, LogTarget};
use redact::Mask;
use toolq_core::check::CallChecker;
use toolq_core::json::Input;
use toolq_core::os::Clock;
use toolq_core::text::truncate_to_columns;
use toolq_core::types::{Call, CheckedCall, ToolsConfig, Turn};
use toolq_log::{Access, BeginMode, PreparedLog, SessionHeader, SessionLog, TaskHistory};

/// Maximum number of calls in doubt that a warning lists.
const MAX_LISTED_CALLS: usize = 5;
/// Maximum length of a tool name in a warning, in columns.
const MAX_NAME_CHARS: usize = 60;

/// What opening the log of a run depends on.
pub struct LogRequest<'a> {
    pub settings: &'a LogSettings,
    pub jobs: NonZeroUsize,
    pub context: &'a CommandContext,
    pub tools: &'a ToolsConfig,
    pub checker: &'a CallChecker,
    pub mask: &'a Arc<Mask>,
    pub subject: LogSubject<'a>,
}

/// What a session is about, and so what a log that it resumes has to match.
#[derive(Clone, Copy)]
pub enum LogSubject<'a> {
    /// The inputs of `toolq run`.
    Inputs {
        inputs: &'a [CommandInput],
        /// Calls that already have a result in the input are included.
        include_answered: bool,
    },
    /// The single call of `toolq agent`.
    Call(&'a CheckedCall),
    /// The recordings of `toolq replay`, which resumes nothing.
    Recordings,
}

impl LogSubject<'_> {
    /// Returns the digest of the input, or `None` if it isn't known yet.
    pub(super) fn digest(self) -> Option<String> {
        match self {
            Self::Inputs { inputs, .. } => inputs_digest(inputs),
            Self::Call(checked) => Some(call_digest(&checked.call)),
            Self::Recordings => None,
        }
    }

    /// Returns whether calls are known before the run: all of them, or at least the first one of a stream.
    pub(super) fn knows_calls(self) -> bool {
        match self {
            Self::Inputs { inputs, .. } => match inputs {
                [CommandInput::Stream(stream)] => stream.first_call().is_some(),
                inputs => inputs
                    .iter()
                    .all(|input| matches!(input, CommandInput::Recording(_))),
            },
            Self::Call(_) => true,
            Self::Recordings => false,
        }
    }

    /// Passes each call that is known before the run to `visit`, if [`knows_calls`](Self::knows_calls).
    pub(super) fn for_each_known_call(
        self,
        mut visit: impl FnMut(&Call),
    ) -> Result<(), CommandError> {
        let (inputs, include_answered) = match self {
            _ if !self.knows_calls() => return Ok(()),
            Self::Inputs {
                inputs,
                include_answered,
            } => (inputs, include_answered),
            Self::Call(checked) => {
                visit(&checked.call);
                return Ok(());
            }
            Self::Recordings => return Ok(()),
        };
        let mut turns = 0;
        for input in inputs {
            match input {
                CommandInput::Recording(recording) => {
                    for index in 0..recording.len() {
                        let turn = recording.turn(index, include_answered)?;
                        turn.with_number(turns + index)
                            .calls
                            .iter()
                            .for_each(&mut visit);
                    }
                    turns += recording.len();
                }
                CommandInput::Stream(stream) => {
                    stream.first_call().into_iter().for_each(&mut visit);
                }
                CommandInput::Follow(_) => {}
            }
        }
        Ok(())
    }
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
}

/// The log of a run that is about to start.
#[derive(Default)]
pub struct OpenedLog {
    /// `None` with `--no-log`, and if nothing is going to run.
    pub log: Option<SessionLog>,
    /// The earlier run that has all results of this input, so that nothing runs.
    pub answers: Option<Arc<TaskHistory>>,
    /// The only turn of the input, if it was already read for the comparison with the log.
    pub compared_turn: Option<Turn>,
}

/// Opens the log of a run and writes its session record, unless the log already has the results of this input.
///
/// # Errors
/// The log can't be opened, the input doesn't match the run to resume, or an earlier run would be repeated. Nothing ran.
pub fn begin_log(request: &LogRequest<'_>, clock: &Clock) -> Result<OpenedLog, CommandError> {
    let LogRequest {
        settings,
        context,
        tools,
        mask,
        ..
    } = *request;
    if settings.target == LogTarget::Disabled {
        return Ok(OpenedLog::default());
    }
    let header = SessionHeader {
        input_sha256: request.subject.digest(),
        sync: settings.sync,
        ..SessionHeader::new(&context.tools_path, tools, request.jobs)
    };
    let mut log = open_log(request, &header, clock)?;
    if let Some(warning) = log.durability_warning() {
        context.stderr.print_warning(&warning);
    }
    warn_in_doubt(&log, context);
    let mut compared_turn = None;
    match settings.mode {
        BeginMode::Resume => {
            resumption::choose_run(&mut log, request)?;
            compared_turn = compare_with_history(log.history(), request)?;
            previous_run::wait_for_exit(log.history())?;
        }
        BeginMode::NewTask if repetition::is_answered_by(&log, request)? => {
            context.stderr.print_note(&format!(
                "nothing runs: {} has the results of this input (`--new` runs it again)",
                log.path().display()
            ));
            return Ok(OpenedLog {
                answers: Some(Arc::new(log.into_history())),
                ..OpenedLog::default()
            });
        }
        BeginMode::NewTask | BeginMode::ForceNewTask => {}
    }
    let log = log.begin_session(&header, Arc::clone(mask), clock.clone())?;
    for recovered in log.recovered() {
        context.stderr.print_note(&recovered.message(log.path()));
    }
    Ok(OpenedLog {
        log: Some(log),
        compared_turn,
        answers: None,
    })
}

/// Warns about calls that earlier runs left in doubt. They aren't part of a new run, but must not be forgotten.
fn warn_in_doubt(log: &PreparedLog, context: &CommandContext) {
    let (in_doubt_calls, path) = (log.in_doubt_calls(), log.path().display());
    let calls = in_doubt_calls.in_log_order();
    let Some(first) = calls.first() else { return };
    let first = in_doubt_calls.resolve_id(first);
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
        "an earlier run in {path} left {count} in doubt: {listed}; {advice} `toolq log resolve {first} {path}`"
    ));
}

fn open_log(
    request: &LogRequest<'_>,
    header: &SessionHeader,
    clock: &Clock,
) -> Result<PreparedLog, CommandError> {
    let (context, mode) = (request.context, request.settings.mode);
    let input_sha256 = header.input_sha256.as_deref();
    let open = |path: &Path| {
        let opened = PreparedLog::open(path, mode, input_sha256);
        opened.map_err(|error| CommandError::from_log_error(&error, request.access()))
    };
    if let Some(path) = request.settings.target.path() {
        return open(path);
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
        BeginMode::NewTask => repetition::check_killed_session(request, header)?,
        BeginMode::ForceNewTask => {}
    }
    let path = toolq_log::default_log_path(&context.environment, clock, input_sha256)?;
    Ok(PreparedLog::open_default(&path, mode)?)
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

/// Checks the input against the task that it resumes. If the input has a single turn, returns it, so that exactly what
/// was compared will run.
fn compare_with_history(
    history: &TaskHistory,
    request: &LogRequest<'_>,
) -> Result<Option<Turn>, CommandError> {
    let frozen = is_frozen(history, request);
    let mut known_calls = 0;
    let mut missing = BTreeSet::new();
    let mut turns = 0;
    let mut only_turn = None;
    let (inputs, include_answered): (&[CommandInput], bool) = match request.subject {
        LogSubject::Inputs {
            inputs,
            include_answered,
        } => (inputs, include_answered),
        LogSubject::Call(checked) => {
            known_calls += usize::from(history.check_call(&checked.call, request.mask)?);
            if frozen && history.needs_current_tools(checked) {
                missing.insert(checked.call.name.clone());
            }
            (&[], false)
        }
        LogSubject::Recordings => (&[], false),
    };
    for input in inputs {
        // The number of turns in a stream isn't known yet; its calls are compared as they arrive.
        let CommandInput::Recording(recording) = input else {
            return Ok(None);
        };
        for index in 0..recording.len() {
            let turn = recording
                .turn(index, include_answered)?
                .with_number(turns + index);
            for call in &turn.calls {
                known_calls += usize::from(history.check_call(call, request.mask)?);
            }
            if frozen {
                let calls = request.checker.check_turn(turn);
                let calls = calls.into_iter();
                missing.extend(
                    calls
                        .filter(|checked| history.needs_current_tools(checked))
                        .map(|checked| checked.call.name),
                );
            } else if inputs.len() == 1 && recording.len() == 1 {
                only_turn = Some(turn);
            }
        }
        turns += recording.len();
    }
    if !missing.is_empty() {
        return Err(tools_changed_error(history, request, &missing));
    }
    let left = history.count_input_calls().saturating_sub(known_calls);
    if left > 0 && request.context.verbose {
        let calls = match left {
            1 => "1 call of the log is".to_owned(),
            _ => format!("{left} calls of the log are"),
        };
        let note = format!("{calls} not in this input");
        request.context.stderr.print_note(&note);
    }
    Ok(only_turn)
}

/// Returns the digest of all inputs, or `None` if one is still arriving.
fn inputs_digest(inputs: &[CommandInput]) -> Option<String> {
    let mut digests = Vec::new();
    for input in inputs {
        let CommandInput::Recording(recording) = input else {
            return None;
        };
        digests.push(recording.sha256());
    }
    Some(toolq_log::combine_digests(digests.into_iter()))
}

/// Returns the digest of a single call.
fn call_digest(call: &Call) -> String {
    let input = call.input.as_ref().map(Input::text).unwrap_or_default();
    toolq_log::combine_digests([call.name.as_str(), input].into_iter())
}

/// Returns whether nothing may run because tools.yaml or the root directory changed and `--accept-changes` isn't given.
pub(crate) fn is_frozen(history: &TaskHistory, request: &LogRequest<'_>) -> bool {
    let changed =
        history.tools_sha256() != request.tools.digest || moved_root(history, request).is_some();
    changed && !history.is_empty() && !request.settings.accept_changes
}

/// Returns the root directory of the logged run if the current one differs. With the same tools.yaml, commands and
/// probes would then see different files.
fn moved_root<'h>(history: &'h TaskHistory, request: &LogRequest<'_>) -> Option<&'h str> {
    let today = request.tools.root.display().to_string();
    history
        .root()
        .filter(|root| *root != request.mask.apply(&today))
}

fn tools_changed_error(
    history: &TaskHistory,
    request: &LogRequest<'_>,
    missing: &BTreeSet<String>,
) -> CommandError {
    if let Some(root) = moved_root(history, request) {
        let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
        let (missing, today) = (missing.join(", "), request.tools.root.display());
        return CommandError::usage(format!(
            "this run started in {root}, but the calls that still have to run ({missing}) would run in {today}"
        ))
        .with_hint(format!("`cd {root}` first, or run them here with `--accept-changes`"));
    }
    let path = request.context.tools_path.display();
    let names = |names: &BTreeSet<String>| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.join(", ")
    };
    let changed = history.changed_tools(request.tools);
    let changed = if changed.is_empty() {
        String::new()
    } else {
        format!("; changed: {}", names(&changed))
    };
    let missing = names(missing);
    CommandError::usage(format!(
        "{path} has changed since this run started, and some calls still have to run ({missing}){changed}"
    ))
    .with_hint("`--accept-changes` runs them with the current tools; existing results are kept")
}
