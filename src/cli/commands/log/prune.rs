//! `toolq log prune`: removes old sessions of the default folder. Others are their owners' to remove.

use std::path::Path;
use std::time::Duration;

use super::counted;
use crate::cli::arguments::LogPrune as Arguments;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::stdout;
use crate::model::{Clock, escape, format_bytes, format_duration};
use crate::record::{self, LogError, Prune, Pruned};

/// From then on an age is told in days.
const TWO_DAYS: Duration = Duration::from_hours(48);

/// Removes them, and prints a line for each and one for all.
///
/// # Errors
/// The folder can't be read, or stdout takes no more. A session that can't be removed is told of, and is not the last.
pub fn prune(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let folder = record::sessions_folder(&context.environment)?;
    let (logs, torn) = (record::sessions(&folder)?, record::torn_ends(&folder)?);
    let now = Clock::system().ms();
    let older = u64::try_from(arguments.older.as_millis()).unwrap_or(u64::MAX);
    let prune = Prune {
        before: now.saturating_sub(older),
        unfinished: arguments.unfinished,
        dry_run: arguments.dry_run,
    };
    let mut tally = Tally::default();
    for log in &logs {
        match prune.session(log, &torn) {
            Ok(Pruned::Removed { written, bytes }) => {
                tally.removed += 1;
                tally.bytes += bytes;
                let age = Duration::from_millis(now.saturating_sub(written));
                stdout::line(&line(log, age, bytes, prune.dry_run))?;
            }
            Ok(Pruned::Unfinished) => tally.unfinished += 1,
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
    removed: u64,
    bytes: u64,
    unfinished: u64,
    in_use: u64,
    failed: bool,
}

impl Tally {
    fn tell(&self, context: &Context, dry_run: bool) -> Result<Exit, Failure> {
        let sessions = counted(self.removed, "session");
        let bytes = format_bytes(self.bytes);
        stdout::line(&match (self.removed, dry_run) {
            (0, _) => "nothing to remove".to_owned(),
            (_, true) => format!("would remove {sessions}, {bytes}"),
            (_, false) => format!("removed {sessions}, {bytes}"),
        })?;
        if self.unfinished > 0 {
            let sessions = counted(self.unfinished, "unfinished session");
            context.stderr.note(&format!(
                "left {sessions}, which can be resumed; `--unfinished` removes them, too"
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
fn line(log: &Path, age: Duration, bytes: u64, dry_run: bool) -> String {
    let done = if dry_run { "would remove" } else { "removed" };
    let age = if age < TWO_DAYS {
        format_duration(age)
    } else {
        format!("{} days", age.as_secs() / 86_400)
    };
    let path = log.display().to_string();
    format!(
        "{done} {} ({age} old, {})",
        escape(&path),
        format_bytes(bytes)
    )
}
