//! `toolq log prune`: removes old sessions of the default folder. Others are their owners' to remove.

use std::path::Path;
use std::time::Duration;

use crate::args::LogPrune as Arguments;
use crate::commands::log::counted;
use crate::context::Context;
use crate::output::stdout;
use crate::output::{Exit, Failure};
use toolq_core::os::Clock;
use toolq_core::text::{escape, format_bytes, format_duration};
use toolq_log::{LogError, Prune, Pruned, Wish};

/// From then on an age is told in days.
const TWO_DAYS: Duration = Duration::from_hours(48);

/// Removes them, and prints a line for each and one for all.
///
/// # Errors
/// The folder can't be read, or stdout takes no more. A session that can't be removed is told of, and is not the last.
pub fn prune(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let refused = |error| Failure::of_log(&error, Wish::Prune);
    let folder = toolq_log::sessions_folder(&context.environment).map_err(refused)?;
    let logs = toolq_log::sessions(&folder).map_err(refused)?;
    let torn = toolq_log::torn_ends(&folder).map_err(refused)?;
    let remains = toolq_log::stale_blob_dirs(&folder).map_err(refused)?;
    let now = Clock::system().ms();
    let older = u64::try_from(arguments.older.as_millis()).unwrap_or(u64::MAX);
    let prune = Prune {
        before: now.saturating_sub(older),
        unfinished: arguments.unfinished,
        dry_run: arguments.dry_run,
    };
    let mut tally = Tally::default();
    let sessions = logs.iter().map(|log| (log, prune.session(log, &torn)));
    let folders = remains.iter().map(|folder| (folder, prune.remains(folder)));
    for (path, pruned) in sessions.chain(folders) {
        match pruned {
            Ok(Pruned::Removed { written, bytes }) => {
                let of = if remains.contains(path) {
                    &mut tally.folders
                } else {
                    &mut tally.sessions
                };
                *of += 1;
                tally.bytes += bytes;
                let age = Duration::from_millis(now.saturating_sub(written));
                stdout::line(&line(path, age, bytes, prune.dry_run))?;
            }
            Ok(Pruned::Foreign) => context.stderr.warning(&format!(
                "left as it is: the log of {} is gone, and it holds files that toolq did not make",
                path.display()
            )),
            Ok(Pruned::Unfinished) => tally.unfinished += 1,
            Ok(Pruned::InDoubt) => tally.in_doubt += 1,
            Ok(Pruned::InUse) => tally.in_use += 1,
            Ok(Pruned::Young) => {}
            Err(error) => {
                tally.failed |= matches!(error, LogError::Io { .. });
                context.stderr.warning(&format!("left as it is: {error}"));
            }
        }
    }
    tally.tell(context, prune.dry_run)
}

/// What became of all sessions together.
#[derive(Default)]
struct Tally {
    sessions: u64,
    /// Those of logs that were gone.
    folders: u64,
    bytes: u64,
    unfinished: u64,
    in_doubt: u64,
    in_use: u64,
    failed: bool,
}

impl Tally {
    fn tell(&self, context: &Context, dry_run: bool) -> Result<Exit, Failure> {
        let folders = counted(self.folders, "folder");
        let of = [
            (self.sessions, counted(self.sessions, "session")),
            (self.folders, format!("{folders} without a log")),
        ];
        let removed: Vec<String> = of
            .into_iter()
            .filter_map(|(number, words)| (number > 0).then_some(words))
            .collect();
        let (removed, bytes) = (removed.join(" and "), format_bytes(self.bytes));
        stdout::line(&match (&*removed, dry_run) {
            ("", _) => "nothing to remove".to_owned(),
            (_, true) => format!("would remove {removed}, {bytes}"),
            (_, false) => format!("removed {removed}, {bytes}"),
        })?;
        if self.unfinished > 0 {
            let sessions = counted(self.unfinished, "unfinished session");
            context.stderr.note(&format!(
                "left {sessions}, which can be resumed; `--unfinished` removes them, too"
            ));
        }
        if self.in_doubt > 0 {
            let sessions = counted(self.in_doubt, "session");
            context.stderr.note(&format!(
                "left {sessions} with a call in doubt, which `toolq log resolve` settles; `--unfinished` removes them, too"
            ));
        }
        if self.in_use > 0 {
            let sessions = counted(self.in_use, "session");
            context.stderr.note(&format!("left {sessions} in use"));
        }
        Ok(if self.failed { Exit::Log } else { Exit::Ok })
    }
}

/// `removed /…/20260101T000000Z-00000000.jsonl (45 days old, 1.2 MiB)`.
fn line(path: &Path, age: Duration, bytes: u64, dry_run: bool) -> String {
    let done = if dry_run { "would remove" } else { "removed" };
    let age = if age < TWO_DAYS {
        format_duration(age)
    } else {
        format!("{} days", age.as_secs() / 86_400)
    };
    let path = path.display().to_string();
    format!(
        "{done} {} ({age} old, {})",
        escape(&path),
        format_bytes(bytes)
    )
}
