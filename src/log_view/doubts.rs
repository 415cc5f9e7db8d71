//! The calls in doubt of a log or of a run, each with the command that settles it.

use std::iter;
use std::path::{Path, PathBuf};

use toolq_core::text::{
    escape, format_time, quote_for_shell, quote_path_for_shell, truncate_to_columns, wrap_words,
};
use toolq_core::types::{AcceptedCall, DoubtCause, Event, EventSink, Outcome, Reach};
use toolq_log::LogError;
use toolq_log::memory::{RememberedIn, SettledCall, calls_in_doubt, settled_calls};

use crate::context::CommandContext;

/// Maximum number of calls that are listed.
const MAX_LISTED_CALLS: usize = 5;
/// Maximum width of an id, a name or an input, in columns.
const MAX_COLUMNS: usize = 60;

/// What people read about a run that has no end and no process.
pub(crate) const KILLED: &str = "killed: no end in the log; run its input again";

/// What people read about a call in doubt.
pub(crate) struct DoubtNotice {
    /// The call, and what to do.
    text: String,
    /// The command that settles it, up to the flags that say how, if it has one.
    command: Option<String>,
}

impl DoubtNotice {
    /// Returns the notice in one line.
    pub(crate) fn line(&self) -> String {
        let command = self.command.as_ref();
        let command = command
            .map(|command| format!(" `{command}`, adding `--done --result TEXT` or `--not-done`"));
        format!("{}{}", self.text, command.unwrap_or_default())
    }

    /// Returns the notice in lines of at most `columns` columns, and each of the two commands in a line of its own, to be copied.
    pub(crate) fn lines(&self, columns: usize) -> String {
        let commands = self.command.iter().flat_map(|command| {
            ["--done --result TEXT", "--not-done"].map(|flags| format!("  {command} {flags}"))
        });
        let text = wrap_words(&self.text, columns, "  ");
        let lines: Vec<String> = iter::once(text).chain(commands).collect();
        lines.join("\n")
    }
}

/// Returns a notice for each call in doubt that runs in the log at `path` started, and one that says how many more there are.
///
/// # Errors
/// The log can't be read.
pub(crate) fn doubt_notices(
    path: &Path,
    context: &CommandContext,
) -> Result<Vec<DoubtNotice>, LogError> {
    let state_dir = toolq_log::state_dir(&context.environment).ok();
    let place = RememberedIn::of_log(path, state_dir.as_deref());
    let calls = calls_in_doubt(path, &place)?;
    let shown = calls.iter().take(MAX_LISTED_CALLS);
    let shown = shown.map(|call| {
        let words = [
            &*call.tool,
            &call.tool_use_id,
            call.input.as_deref().unwrap_or_default(),
        ];
        let settled_by = (&*call.settle_id, named_log(path, &place));
        DoubtNotice::new((IN_DOUBT, words), call.started_ms, Some(settled_by))
    });
    let mut notices: Vec<DoubtNotice> = shown.collect();
    let more = calls.len().saturating_sub(MAX_LISTED_CALLS);
    if more > 0 {
        notices.push(DoubtNotice::of_more(more));
    }
    Ok(notices)
}

/// Returns a line for each of these calls of the log that was settled later, as its memory knows: `resolved pay toolu_1 2026-01-01
/// 12:00:00 UTC: not done`. What can't be read was reported before.
pub(crate) fn settlement_lines(
    path: &Path,
    context: &CommandContext,
    is_shown: impl Fn(&SettledCall) -> bool,
) -> Vec<String> {
    let state_dir = toolq_log::state_dir(&context.environment).ok();
    let place = RememberedIn::of_log(path, state_dir.as_deref());
    let calls = settled_calls(path, &place).unwrap_or_default().into_iter();
    let lines = calls.filter(is_shown).map(|call| {
        let (tool, id) = (escape(&call.tool), escape(&call.tool_use_id));
        let settled = &call.settlement;
        let time = format_time(settled.timestamp);
        format!("resolved {tool} {id} {time}: {settled}")
    });
    lines.collect()
}

/// Returns the log, if commands have to name it.
fn named_log<'p>(path: &'p Path, place: &RememberedIn) -> Option<&'p Path> {
    matches!(place, RememberedIn::Log { .. }).then_some(path)
}

const IN_DOUBT: &str = "in doubt";

/// What settles a call, with the log that commands have to name.
type SettledBy<'a> = (&'a str, Option<&'a Path>);

impl DoubtNotice {
    /// What it says begins with a state and the words that name the call, which nothing settles if nothing remembers it.
    fn new(
        (state, words): (&str, [&str; 3]),
        started_ms: Option<u64>,
        settled_by: Option<SettledBy<'_>>,
    ) -> Self {
        let shorten = |text: &str| escape(&truncate_to_columns(text, MAX_COLUMNS)).into_owned();
        let words = words.into_iter().filter(|word| !word.is_empty());
        let words: Vec<String> = words.map(shorten).collect();
        let started = started_ms.map(format_time);
        let started = started.map_or_else(String::new, |time| format!(", started {time}"));
        let command = settled_by.map(|(id, log)| {
            let log = log.map(|log| format!(" {}", quote_path_for_shell(log)));
            let id = quote_for_shell(id);
            format!("toolq log resolve {id}{}", log.unwrap_or_default())
        });
        let then = match command {
            Some(_) => "Check whether it happened, then:",
            None => "Check whether it happened",
        };
        Self {
            text: format!("{state}: {}{started}. {then}", words.join(" ")),
            command,
        }
    }

    fn of_more(count: usize) -> Self {
        Self {
            text: format!("in doubt: {count} more, see `toolq log show`"),
            command: None,
        }
    }
}

/// Collects the calls of a run that are in doubt.
pub(crate) struct DoubtCollector {
    /// The log of the run, if commands have to name it.
    named_log: Option<PathBuf>,
    notices: Vec<DoubtNotice>,
    more: usize,
}

impl DoubtCollector {
    /// Collects for a run whose log was named, if it was.
    pub(crate) fn new(named_log: Option<PathBuf>) -> Self {
        Self {
            named_log,
            notices: Vec::new(),
            more: 0,
        }
    }

    /// Adds a call in doubt with its outcome. `settle_id` is what settles it, unless the outcome says so.
    pub(crate) fn add(
        &mut self,
        (tool, tool_use_id): (&str, &str),
        outcome: &Outcome,
        settle_id: Option<&str>,
    ) {
        if self.notices.len() == MAX_LISTED_CALLS {
            self.more += 1;
            return;
        }
        let (state, earlier) = match outcome {
            Outcome::InDoubt {
                cause: DoubtCause::EndNotLogged(start),
                ..
            } => (IN_DOUBT, start.as_deref()),
            Outcome::InDoubt { .. } => (IN_DOUBT, None),
            // Asked for again, it would be in doubt. Now it has failed, and the run hasn't.
            _ => ("may have worked", None),
        };
        let settle_id = earlier.map(|start| &*start.settle_id).or(settle_id);
        self.notices.push(DoubtNotice::new(
            (state, [tool, tool_use_id, ""]),
            earlier.and_then(|start| start.started_ms),
            settle_id.map(|id| (id, self.named_log.as_deref())),
        ));
    }

    /// Returns the notices about all calls.
    pub(crate) fn into_notices(mut self) -> Vec<DoubtNotice> {
        if self.more > 0 {
            self.notices.push(DoubtNotice::of_more(self.more));
        }
        self.notices
    }
}

impl EventSink for DoubtCollector {
    fn handle_event(&mut self, event: &Event<'_>) {
        if let Event::Finished {
            call,
            request,
            outcome,
            claim,
            ..
        } = event
            && (outcome.is_in_doubt()
                || claim.is_some()
                    && outcome.reach() == Reach::Open
                    && request
                        .accepted
                        .is_some_and(AcceptedCall::is_settled_by_people))
        {
            let settle_id = claim.map(|claim| claim.settle_id.as_str());
            self.add((&call.tool_name, &call.tool_use_id), outcome, settle_id);
        }
    }
}
