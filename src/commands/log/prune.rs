//! `toolq log prune`: removes old sessions from the default directory. Logs elsewhere are left to their owners.

use std::path::Path;
use std::time::Duration;

use crate::args::LogPruneArguments as Arguments;
use crate::context::CommandContext;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use toolq_core::os::Clock;
use toolq_core::text::format_count;
use toolq_core::text::{escape, format_bytes, format_duration};
use toolq_log::{Access, LogError, PruneOptions, PruneResult};

/// Ages from this on are shown in days.
const MIN_AGE_IN_DAYS: Duration = Duration::from_hours(48);

/// Removes old sessions, and prints a line for each and a summary. A session that can't be removed only causes a
/// warning.
///
/// # Errors
/// The directory can't be read, or stdout can't be written.
pub fn prune_sessions(
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let log_error = |error: LogError| error.for_command(Access::Prune);
    let directory = toolq_log::sessions_dir(&context.environment).map_err(log_error)?;
    let logs = toolq_log::list_sessions(&directory).map_err(log_error)?;
    let torn = toolq_log::list_torn_copies(&directory).map_err(log_error)?;
    let stale_dirs = toolq_log::list_stale_blob_dirs(&directory).map_err(log_error)?;
    let now = Clock::system().now_ms();
    let older = u64::try_from(arguments.older.as_millis()).unwrap_or(u64::MAX);
    let prune = PruneOptions {
        written_before_ms: now.saturating_sub(older),
        include_unfinished: arguments.unfinished,
        dry_run: arguments.dry_run,
    };
    let mut stats = PruneStats::default();
    let sessions = logs
        .iter()
        .map(|log| (log, prune.prune_session(log, &torn)));
    let pruned_dirs = stale_dirs
        .iter()
        .map(|directory| (directory, prune.prune_stale_blob_dir(directory)));
    for (path, pruned) in sessions.chain(pruned_dirs) {
        match pruned {
            Ok(PruneResult::Removed {
                last_written_ms: written,
                bytes,
            }) => {
                let count = if stale_dirs.contains(path) {
                    &mut stats.stale_dirs
                } else {
                    &mut stats.sessions
                };
                *count += 1;
                stats.bytes += bytes;
                let age = Duration::from_millis(now.saturating_sub(written));
                stdout::write_line(&removed_line(path, age, bytes, prune.dry_run))?;
            }
            Ok(PruneResult::ForeignFiles) if stale_dirs.contains(path) => {
                context.stderr.print_warning(&format!(
                    "not removed: {} has no log, but contains files that toolq did not create",
                    path.display()
                ));
            }
            Ok(PruneResult::ForeignFiles) => context.stderr.print_warning(&format!(
                "not removed: the directory of outputs next to {} contains files that toolq did not create",
                path.display()
            )),
            Ok(PruneResult::Unfinished) => stats.unfinished += 1,
            Ok(PruneResult::InDoubt) => stats.in_doubt += 1,
            Ok(PruneResult::InUse) => stats.in_use += 1,
            Ok(PruneResult::TooRecent) => {}
            Err(error) => {
                stats.failed |= matches!(error, LogError::Io { .. });
                context
                    .stderr
                    .print_warning(&format!("not removed: {error}"));
            }
        }
    }
    stats.print_summary(context, prune.dry_run)
}

/// Counts of removed and kept sessions.
#[derive(Default)]
struct PruneStats {
    sessions: u64,
    /// Directories whose log is gone.
    stale_dirs: u64,
    bytes: u64,
    unfinished: u64,
    in_doubt: u64,
    in_use: u64,
    failed: bool,
}

impl PruneStats {
    fn print_summary(&self, context: &CommandContext, dry_run: bool) -> Result<Exit, CommandError> {
        let directories = match self.stale_dirs {
            1 => "1 directory".to_owned(),
            count => format!("{count} directories"),
        };
        let removed_counts = [
            (self.sessions, format_count(self.sessions, "session")),
            (self.stale_dirs, format!("{directories} without a log")),
        ];
        let removed: Vec<String> = removed_counts
            .into_iter()
            .filter_map(|(number, label)| (number > 0).then_some(label))
            .collect();
        let (removed, bytes) = (removed.join(" and "), format_bytes(self.bytes));
        stdout::write_line(&match (&*removed, dry_run) {
            ("", _) => "nothing to remove".to_owned(),
            (_, true) => format!("would remove {removed}, {bytes}"),
            (_, false) => format!("removed {removed}, {bytes}"),
        })?;
        if self.unfinished > 0 {
            let sessions = format_count(self.unfinished, "unfinished session");
            context.stderr.print_note(&format!(
                "kept {sessions} that can still be resumed; add `--unfinished` to remove such sessions"
            ));
        }
        if self.in_doubt > 0 {
            let sessions = format_count(self.in_doubt, "session");
            context.stderr.print_note(&format!(
                "kept {sessions} with calls in doubt (`toolq log resolve` settles them); add `--unfinished` to remove such sessions"
            ));
        }
        if self.in_use > 0 {
            let sessions = format_count(self.in_use, "session");
            context
                .stderr
                .print_note(&format!("kept {sessions} in use"));
        }
        Ok(if self.failed { Exit::Log } else { Exit::Ok })
    }
}

/// Formats a line such as `removed /…/20260101T000000Z-00000000.jsonl (45 days old, 1.2 MiB)`.
fn removed_line(path: &Path, age: Duration, bytes: u64, dry_run: bool) -> String {
    let done = if dry_run { "would remove" } else { "removed" };
    let age = if age < MIN_AGE_IN_DAYS {
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
