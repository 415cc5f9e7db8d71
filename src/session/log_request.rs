//! The session log of a run: which file it is, what is resumed in it, and whether that fits the input. All of it is
//! known before anything runs, and before anything is written.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use crate::args::LogFlags;
use crate::context::Context;
use crate::input::Incoming;
use crate::output::Failure;
use redact::Mask;
use toolq_core::check::Checker;
use toolq_core::json::Input;
use toolq_core::os::Clock;
use toolq_core::text::cut;
use toolq_core::types::{Call, Checked, Tools, Turn};
use toolq_log::{Begin, History, OpenLog, Session, SessionLog, Wish};

/// Calls in doubt that are named, at most.
const LISTED: usize = 5;
/// Characters of a tool's name that are shown.
const SHOWN: usize = 60;

/// What a run is about to do, as far as its log depends on it.
pub struct Intent<'a> {
    pub log: &'a LogFlags,
    /// Calls that have a result in the input are meant, too.
    pub all: bool,
    pub jobs: NonZeroUsize,
    pub context: &'a Context,
    pub tools: &'a Tools,
    pub checker: &'a Checker,
    pub mask: &'a Arc<Mask>,
    pub inputs: &'a [Incoming],
    /// The one call of `toolq agent`, which has no inputs.
    pub alone: Option<&'a Checked>,
}

/// The log of a run that has begun.
#[derive(Default)]
pub struct BegunLog {
    /// None where the run keeps none.
    pub log: Option<SessionLog>,
    /// The only turn of the input, where it was read to be compared with the log.
    pub turn: Option<Turn>,
}

/// Begins the log of a run.
///
/// # Errors
/// There can be no log, or what is resumed is another task than the input's. Nothing ran, and nothing was written.
pub fn begin(intent: &Intent<'_>, clock: &Clock) -> Result<BegunLog, Failure> {
    let Intent {
        log: flags,
        context,
        tools,
        mask,
        ..
    } = *intent;
    if flags.no_log {
        return Ok(BegunLog::default());
    }
    let input_sha256 = match intent.alone {
        Some(checked) => Some(digest_of_call(&checked.call)),
        None => digest(intent.inputs),
    };
    let begin = flags.begin();
    let log = open(intent, begin, input_sha256.as_deref(), clock)?;
    if let Some(warning) = log.warning() {
        context.stderr.warning(&warning);
    }
    tell_doubts(&log, context);
    let mut turn = None;
    if begin == Begin::Resume {
        if log.history().task().is_none()
            && let Some(path) = &flags.file
        {
            let path = path.display();
            let note = format!("{path} has no session to resume, so this is the first");
            context.stderr.note(&note);
        }
        turn = compare(log.history(), intent)?;
        crate::session::previous_run::wait(log.history())?;
    }
    let here = std::env::current_dir().unwrap_or_default();
    let session = Session {
        tools_path: context.tools_path.display().to_string(),
        tools_sha256: tools.digest.clone(),
        input_sha256,
        cwd: here.display().to_string(),
        root: tools.root.display().to_string(),
        jobs: intent.jobs,
        sync: flags.sync.into(),
    };
    let log = log.begin(&session, Arc::clone(mask), clock.clone())?;
    for recovered in log.recovered() {
        context.stderr.note(&recovered.words(log.path()));
    }
    let log = Some(log);
    Ok(BegunLog { log, turn })
}

/// What is in doubt from before is no part of another run, and not to be forgotten for that.
fn tell_doubts(log: &OpenLog, context: &Context) {
    let (doubts, path) = (log.doubts(), log.path().display());
    let calls = doubts.all();
    let Some(first) = calls.first() else { return };
    let first = doubts.name(first);
    let shown = calls.iter().take(LISTED);
    let shown =
        shown.map(|call| format!("{} ({})", doubts.name(call), cut(&call.tool_name, SHOWN)));
    let more = calls.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("{more} more"));
    let calls = shown.chain(more).collect::<Vec<_>>().join(", ");
    context.stderr.warning(&format!(
        "an earlier run in {path} left in doubt: {calls}. `toolq log resolve {first} {path}` settles it"
    ));
}

fn open(
    intent: &Intent<'_>,
    begin: Begin,
    input_sha256: Option<&str>,
    clock: &Clock,
) -> Result<OpenLog, Failure> {
    let context = intent.context;
    let wish = match begin {
        Begin::Resume => Wish::Resume,
        Begin::Next | Begin::New => Wish::Run,
    };
    let refused = |error| Failure::of_log(&error, wish);
    if let Some(path) = &intent.log.file {
        return OpenLog::open(path, begin).map_err(refused);
    }
    let latest: Option<PathBuf> = match begin {
        Begin::Resume => {
            let Some(input_sha256) = input_sha256 else {
                let message = "what still arrives is not known yet, so its session can't be found";
                return Err(Failure::usage(message).with_hint("name it with `--log FILE`"));
            };
            let folder = toolq_log::sessions_folder(&context.environment)?;
            toolq_log::latest_of_input(&folder, input_sha256)?
        }
        Begin::Next | Begin::New => None,
    };
    if let Some(path) = latest {
        if context.verbose {
            context.stderr.note(&format!("resumes {}", path.display()));
        }
        return OpenLog::open(&path, begin).map_err(refused);
    }
    if begin == Begin::Resume {
        context
            .stderr
            .note("there is no session of this input to resume, so this is the first");
    }
    let path = toolq_log::default_path(&context.environment, clock)?;
    Ok(OpenLog::open_default(&path, begin)?)
}

/// Compares the input with the task that it is to resume. Gives its turn where it has only one, so that what runs is
/// what was compared.
fn compare(history: &History, intent: &Intent<'_>) -> Result<Option<Turn>, Failure> {
    let frozen = is_frozen(history, intent);
    let mut known = 0;
    let mut missing = BTreeSet::new();
    let mut turns = 0;
    let mut only = None;
    let all = intent.all;
    if let Some(checked) = intent.alone {
        known += usize::from(history.check(&checked.call, intent.mask)?);
        if frozen && history.is_missing(checked) {
            missing.insert(checked.call.name.clone());
        }
    }
    for input in intent.inputs {
        // Behind what still arrives nobody knows the numbers of turns; it is compared call by call.
        let Incoming::Recording(recording) = input else {
            return Ok(None);
        };
        for index in 0..recording.len() {
            let turn = recording.turn(index, all)?.numbered(turns + index);
            for call in &turn.calls {
                known += usize::from(history.check(call, intent.mask)?);
            }
            if frozen {
                let calls = intent.checker.turn(turn);
                let calls = calls.into_iter();
                missing.extend(
                    calls
                        .filter(|checked| history.is_missing(checked))
                        .map(|checked| checked.call.name),
                );
            } else if intent.inputs.len() == 1 && recording.len() == 1 {
                only = Some(turn);
            }
        }
        turns += recording.len();
    }
    if !missing.is_empty() {
        return Err(tools_changed(history, intent, &missing));
    }
    let left = history.len().saturating_sub(known);
    if left > 0 && intent.context.verbose {
        let calls = if left == 1 { "call" } else { "calls" };
        let note = format!("{left} {calls} of the log are not in this input");
        intent.context.stderr.note(&note);
    }
    Ok(only)
}

/// The digest of all inputs, where all were read.
fn digest(inputs: &[Incoming]) -> Option<String> {
    let mut digests = Vec::new();
    for input in inputs {
        let Incoming::Recording(recording) = input else {
            return None;
        };
        digests.push(recording.sha256());
    }
    Some(toolq_log::digest_of(digests.into_iter()))
}

/// The same of a call by itself.
fn digest_of_call(call: &Call) -> String {
    let input = call.input.as_ref().map(Input::text).unwrap_or_default();
    toolq_log::digest_of([call.name.as_str(), input].into_iter())
}

/// Whether nothing may run, since tools.yaml is not as it was, or elsewhere, and nobody accepted that.
pub(crate) fn is_frozen(history: &History, intent: &Intent<'_>) -> bool {
    let changed = history.tools_sha256() != intent.tools.digest || moved(history, intent).is_some();
    changed && !history.is_empty() && !intent.log.accept_changes
}

/// The folder in which commands ran, where it is another one today: by the same file, what they and probes look at is
/// not what it was.
fn moved<'h>(history: &'h History, intent: &Intent<'_>) -> Option<&'h str> {
    let today = intent.tools.root.display().to_string();
    history
        .root()
        .filter(|root| *root != intent.mask.text(&today))
}

fn tools_changed(history: &History, intent: &Intent<'_>, missing: &BTreeSet<String>) -> Failure {
    if let Some(root) = moved(history, intent) {
        let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
        let (missing, today) = (missing.join(", "), intent.tools.root.display());
        return Failure::usage(format!(
            "this run began in {root}, and calls are still to run ({missing}), which would run in {today}"
        ))
        .with_hint(format!("`cd {root}` first; or `--accept-changes` runs them here"));
    }
    let path = intent.context.tools_path.display();
    let names = |names: &BTreeSet<String>| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.join(", ")
    };
    let changed = history.changed(intent.tools);
    let changed = if changed.is_empty() {
        String::new()
    } else {
        format!("; changed: {}", names(&changed))
    };
    let missing = names(missing);
    Failure::usage(format!(
        "{path} is not as it was when this run began, and calls are still to run ({missing}){changed}"
    ))
    .with_hint("`--accept-changes` runs them by the tools of today; what has its result keeps it")
}
