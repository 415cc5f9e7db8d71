//! The end of a session: the summary, the failures, and the exit code.

use std::sync::Arc;

use crate::output::{CommandError, Exit, StderrWriter};
use crate::session::run_session::{CallSource, RunSession};
use toolq_core::text::{escape, quote_path_for_shell};
use toolq_log::exceeds_size;
use toolq_log::memory::Remembered;

/// From these sizes of the default directory on, the summary suggests to remove old logs.
const MAX_SESSION_BYTES: u64 = 1 << 30;
const MAX_SESSION_FILES: usize = 10_000;

impl RunSession<'_> {
    /// Closes the session and prints the summary. Returns the most severe of `exits` and of what stopped the run.
    pub fn finish(mut self, exits: impl IntoIterator<Item = Exit>) -> Exit {
        let of_calls = self.sinks.summary().exit();
        let exits = exits.into_iter().chain([of_calls]);
        let exit = self.close_sinks(exits);
        if exit != Exit::Output {
            self.print_summary(exit);
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
            let again = if takes_new {
                "; `--new` runs the input again"
            } else {
                ""
            };
            stderr.print_note(&format!("{note}{again}"));
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
        if self.source.remembered() != Remembered::ById {
            return;
        }
        let summary = self.sinks.summary();
        if exit == Exit::NeedsApproval {
            stderr.print_note("to approve what is missing: `toolq approvals`, then the same command; or at once, with `--approve ask` or `--approve-with PROGRAM`");
        }
        if summary.has_unanswered_calls() && matches!(exit, Exit::Signal(_) | Exit::Log) {
            stderr.print_note("the same command runs what is missing");
        }
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
