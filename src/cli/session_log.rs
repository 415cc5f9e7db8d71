//! The session log of a run: which file it is, what is resumed in it, and whether that fits the input. All of it is
//! known before anything runs, and before anything is written.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use super::arguments::LogFlags;
use super::commands::inputs::Incoming;
use super::context::Context;
use super::failure::Failure;
use crate::model::{Begun, Call, Checked, Clock, Effect, Mask, Past, Tools, Verdict};
use crate::record::{self, Begin, History, OpenLog, Session, SessionLog};
use crate::validate::Checker;

/// What a run is about to do, as far as its log depends on it.
pub struct Intent<'a> {
    pub log: &'a LogFlags,
    pub begin: Begin,
    /// What is missing runs by the tools of today.
    pub accept_changes: bool,
    /// Calls that have a result in the input are meant, too.
    pub all: bool,
    pub jobs: NonZeroUsize,
    pub context: &'a Context,
    pub tools: &'a Tools,
    pub checker: &'a Checker,
    pub mask: &'a Arc<Mask>,
    pub inputs: &'a [Incoming],
}

/// Begins the log of a run; none where it keeps none.
///
/// # Errors
/// There can be no log, or what is resumed is another task than the input's. Nothing ran, and nothing was written.
pub fn begin(intent: &Intent<'_>, clock: &Clock) -> Result<Option<SessionLog>, Failure> {
    let Intent {
        log: flags,
        begin,
        context,
        tools,
        mask,
        ..
    } = *intent;
    if flags.no_log {
        return Ok(None);
    }
    let input_sha256 = digest(intent.inputs);
    let log = open(intent, input_sha256.as_deref(), clock)?;
    if let Some(warning) = log.warning() {
        context.stderr.warning(&warning);
    }
    tell_doubts(&log, context);
    if begin == Begin::Resume {
        compare(log.history(), intent)?;
        super::orphans::wait(log.history())?;
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
    Ok(Some(log))
}

/// What is in doubt from before is no part of another run, and not to be forgotten for that.
fn tell_doubts(log: &OpenLog, context: &Context) {
    let calls: Vec<String> = log.doubts().all().map(ToString::to_string).collect();
    let Some(first) = calls.first() else { return };
    let (path, calls) = (log.path().display(), calls.join(", "));
    let id = first.split(' ').next().unwrap_or_default();
    context.stderr.warning(&format!(
        "an earlier run in {path} left in doubt: {calls}. `toolq log resolve {id} {path}` settles it"
    ));
}

fn open(
    intent: &Intent<'_>,
    input_sha256: Option<&str>,
    clock: &Clock,
) -> Result<OpenLog, Failure> {
    let Intent { begin, context, .. } = *intent;
    if let Some(path) = &intent.log.file {
        return Ok(OpenLog::open(path, begin)?);
    }
    let latest: Option<PathBuf> = match begin {
        Begin::Resume => {
            let Some(input_sha256) = input_sha256 else {
                let message = "what still arrives is not known yet, so its session can't be found";
                return Err(Failure::usage(message).with_hint("name it with `--log FILE`"));
            };
            let folder = record::sessions_folder(&context.environment)?;
            record::latest_of_input(&folder, input_sha256)?
        }
        Begin::Next | Begin::New => None,
    };
    if let Some(path) = latest {
        if context.verbose {
            context.stderr.note(&format!("resumes {}", path.display()));
        }
        return Ok(OpenLog::open(&path, begin)?);
    }
    if begin == Begin::Resume {
        context
            .stderr
            .note("there is no session of this input to resume, so this is the first");
    }
    let path = record::default_path(&context.environment, clock)?;
    Ok(OpenLog::open_default(&path, begin)?)
}

/// Compares the input with the task that it is to resume.
fn compare(history: &History, intent: &Intent<'_>) -> Result<(), Failure> {
    let frozen = is_frozen(history, intent);
    let mut known = 0;
    let mut missing = BTreeSet::new();
    let mut turns = 0;
    let all = intent.all;
    for input in intent.inputs {
        // Behind what still arrives nobody knows the numbers of turns; it is compared call by call.
        let Incoming::Recording(recording) = input else {
            return Ok(());
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
    Ok(())
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
    Some(record::digest_of(digests.into_iter()))
}

/// Whether nothing may run, since tools.yaml is not as it was, or elsewhere, and nobody accepted that.
fn is_frozen(history: &History, intent: &Intent<'_>) -> bool {
    let changed = history.tools_sha256() != intent.tools.digest || moved(history, intent).is_some();
    changed && !history.is_empty() && !intent.accept_changes
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

/// What is known of the calls of a run from before it.
pub struct Earlier {
    history: Option<Arc<History>>,
    mask: Arc<Mask>,
    /// Nothing may run.
    frozen: bool,
}

impl Earlier {
    pub fn new(history: Option<Arc<History>>, intent: &Intent<'_>) -> Self {
        let frozen = history.as_ref();
        let frozen = frozen.is_some_and(|history| is_frozen(history, intent));
        Self {
            history,
            mask: Arc::clone(intent.mask),
            frozen,
        }
    }

    /// Those of `calls` of which today's tools have to say what becomes. None where nothing may run: the log has another
    /// call in the place of one, or tools.yaml is not as it was.
    pub fn open<'c>(&self, calls: &'c [Call]) -> Vec<&'c Call> {
        let Some(history) = &self.history else {
            return calls.iter().collect();
        };
        let conflicts = |call: &Call| history.check(call, &self.mask).is_err();
        if self.frozen || calls.iter().any(conflicts) {
            return Vec::new();
        }
        let open = calls.iter().filter(|call| history.is_open(call));
        open.collect()
    }

    /// What is known of a call. `started` says that the input itself, a log, tells of its start and of no end.
    ///
    /// # Errors
    /// The log has another call in its place, its answer can't be read any more, or it is missing and nothing may run.
    pub fn past(&self, checked: &Checked, started: bool) -> Result<Past, Failure> {
        if let Some(history) = &self.history {
            let known = history.check(&checked.call, &self.mask)?;
            if self.frozen && history.is_missing(checked) {
                let message = "tools.yaml, or the folder in which its commands run, is not as it was when this run began, and calls are still to run";
                return Err(Failure::usage(message)
                    .with_hint("`--accept-changes` runs them by the tools of today"));
            }
            if known {
                return Ok(history.past(checked)?);
            }
        }
        Ok(if started { orphan(checked) } else { Past::None })
    }
}

/// A call that another log tells of: it was started there, and nobody knows how it ended.
fn orphan(checked: &Checked) -> Past {
    let writes = match &checked.verdict {
        Verdict::Accepted(accepted) => accepted.tool.effect == Effect::Write,
        Verdict::Rejected(_) => true,
    };
    let begun = |attempts| Begun {
        attempts,
        key: None,
    };
    match &checked.verdict {
        _ if !writes => Past::Started(begun(0)),
        Verdict::Accepted(accepted) if accepted.probe.is_some() => Past::Unsure(begun(0)),
        _ => Past::InDoubt(begun(1)),
    }
}
