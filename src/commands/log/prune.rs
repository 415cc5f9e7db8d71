//! `toolq log prune`: takes from old sessions in the default directory all but what the memory needs. Logs elsewhere are left to
//! their owners.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::commands::log::LogPruneArguments;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, stdout};
use toolq_core::os::{Clock, Environment};
use toolq_core::text::{escape, format_bytes, format_count, format_duration, to_millis};
use toolq_core::types::ApprovalDecision;
use toolq_log::memory::{RememberedIn, waiting_calls};
use toolq_log::{Access, LogError, PruneOptions, PruneResult};

/// Ages from this on are shown in days.
const MIN_AGE_IN_DAYS: Duration = Duration::from_hours(48);

/// Prunes old sessions, and prints a line for each and a summary. A session that can't be pruned only causes a warning.
///
/// # Errors
/// The directory can't be read, or stdout can't be written.
pub fn prune_sessions(
    arguments: &LogPruneArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let log_error = |error: LogError| error.for_command(Access::Prune);
    let directory = toolq_log::sessions_dir(&context.environment).map_err(log_error)?;
    let logs = toolq_log::list_sessions(&directory).map_err(log_error)?;
    let waiting = waiting_logs(&context.environment).map_err(log_error)?;
    let torn = toolq_log::list_torn_copies(&directory).map_err(log_error)?;
    let stale_dirs = toolq_log::list_stale_blob_dirs(&directory).map_err(log_error)?;
    let now = Clock::system().now_ms();
    let prune = PruneOptions {
        written_before_ms: now.saturating_sub(to_millis(arguments.older)),
        dry_run: arguments.dry_run,
    };
    let mut stats = PruneStats::default();
    let sessions = logs
        .iter()
        .map(|log| (log, prune.prune_session(log, &torn, waiting.contains(log))));
    let pruned_dirs = stale_dirs
        .iter()
        .map(|directory| (directory, prune.prune_stale_blob_dir(directory)));
    for (path, pruned) in sessions.chain(pruned_dirs) {
        match pruned {
            Ok(PruneResult::Pruned {
                last_written_ms: written,
                bytes,
                keeps_log,
            }) => {
                let count = if stale_dirs.contains(path) {
                    &mut stats.stale_dirs
                } else {
                    &mut stats.sessions
                };
                *count += 1;
                stats.bytes += bytes;
                let age = Duration::from_millis(now.saturating_sub(written));
                let verb = verb(keeps_log, prune.dry_run);
                stdout::write_line(&pruned_line(verb, path, age, bytes))?;
            }
            Ok(PruneResult::ForeignFiles) if stale_dirs.contains(path) => {
                context.stderr.print_warning(&format!(
                    "not pruned: {} has no log, but contains files that toolq did not create",
                    path.display()
                ));
            }
            Ok(PruneResult::ForeignFiles) => context.stderr.print_warning(&format!(
                "not pruned: the directory of outputs next to {} contains files that toolq did not create",
                path.display()
            )),
            Ok(PruneResult::InUse) => stats.in_use += 1,
            Ok(PruneResult::TooRecent | PruneResult::AlreadyPruned) => {}
            Err(error) => {
                stats.failed |= matches!(error, LogError::Io { .. });
                context
                    .stderr
                    .print_warning(&format!("not pruned: {error}"));
            }
        }
    }
    stats.print_summary(context, prune.dry_run)
}

/// Returns the logs with calls that wait for an approval. Whoever has said no doesn't look again.
fn waiting_logs(environment: &Environment) -> Result<Vec<PathBuf>, LogError> {
    let memory = RememberedIn::state(&toolq_log::state_dir(environment)?);
    let calls = waiting_calls(&memory, Path::new(""))?.into_iter();
    let open = calls.filter(|call| call.decision != Some(ApprovalDecision::No));
    Ok(open.map(|call| call.log).collect())
}

/// Counts of pruned and kept sessions.
#[derive(Default)]
struct PruneStats {
    sessions: u64,
    /// Directories whose log is gone.
    stale_dirs: u64,
    bytes: u64,
    in_use: u64,
    failed: bool,
}

impl PruneStats {
    fn print_summary(&self, context: &CommandContext, dry_run: bool) -> Result<Exit, CommandError> {
        let directories = match self.stale_dirs {
            1 => "1 directory".to_owned(),
            count => format!("{count} directories"),
        };
        let counts = [
            (self.sessions, format_count(self.sessions, "session")),
            (self.stale_dirs, format!("{directories} without a log")),
        ];
        let pruned: Vec<String> = counts
            .into_iter()
            .filter_map(|(number, label)| (number > 0).then_some(label))
            .collect();
        let (pruned, bytes) = (pruned.join(" and "), format_bytes(self.bytes));
        stdout::write_line(&match (&*pruned, dry_run) {
            ("", _) => "nothing to prune".to_owned(),
            (_, true) => format!("would prune {pruned}, {bytes}"),
            (_, false) => format!("pruned {pruned}, {bytes}"),
        })?;
        if self.in_use > 0 {
            let sessions = format_count(self.in_use, "session");
            context
                .stderr
                .print_note(&format!("kept {sessions} in use"));
        }
        Ok(if self.failed { Exit::Log } else { Exit::Ok })
    }
}

/// What stays of a session says that its calls were done.
fn verb(keeps_log: bool, dry_run: bool) -> &'static str {
    match (keeps_log, dry_run) {
        (true, true) => "would shorten",
        (true, false) => "shortened",
        (false, true) => "would remove",
        (false, false) => "removed",
    }
}

/// Formats a line such as `removed /…/20260101T000000Z-00000000.jsonl (45 days old, 1.2 MiB)`.
fn pruned_line(verb: &str, path: &Path, age: Duration, bytes: u64) -> String {
    let age = if age < MIN_AGE_IN_DAYS {
        format_duration(age)
    } else {
        format!("{} days", age.as_secs() / 86_400)
    };
    let path = path.display().to_string();
    format!(
        "{verb} {} ({age} old, {})",
        escape(&path),
        format_bytes(bytes)
    )
}
