//! The command line with which a person repeats a call.

use std::fmt::Write as _;

use crate::settings::LogTarget;
use redact::Mask;
use toolq_core::json::{Input, to_json_line};
use toolq_core::text::{is_hidden, quote_for_shell, quote_path_for_shell};
use toolq_core::types::{Backing, Call, CallRequest, Effect, Outcome, Reach};

/// Longer inputs are no help on a command line.
const MAX_INPUT_BYTES: usize = 1_000;

/// What a line begins with that a person may run.
const REPEAT_LABEL: &str = "repeat";
/// What it begins with if the call may have had an effect.
const CHECK_LABEL: &str = "may have done part of its work; after checking";
/// What follows if running the line isn't enough.
const TOOLS_ON_STDIN: &str = ", with the tools file on stdin";

/// Makes command lines for POSIX shells: `toolq call fetch '{"url":"…"}'`.
#[derive(Debug, Clone)]
pub(crate) struct RepeatCommand {
    /// The command line without the name of the tool and its input.
    start: String,
    /// What has to be done besides running the line.
    condition: &'static str,
    /// Where the run remembers its calls.
    pub(crate) memory: LogTarget,
}

impl RepeatCommand {
    /// `tools_flag` is the flag that names the tools file, with a space before it, if a flag is needed.
    pub(crate) fn new(tools_flag: &str) -> Self {
        Self {
            start: format!("toolq call{tools_flag}"),
            condition: "",
            memory: LogTarget::DefaultDirectory,
        }
    }

    /// For a tools file that came through a pipe: no flag names it, so whoever repeats the call has to provide it again.
    pub(crate) fn with_tools_on_stdin() -> Self {
        Self {
            condition: TOOLS_ON_STDIN,
            ..Self::new(" -c -")
        }
    }

    /// Returns the command line for a call. `None` if it was rejected, only the host process can run it, or its input has a secret or
    /// is too long.
    pub(crate) fn repeat_of(&self, request: CallRequest<'_>, mask: &Mask) -> Option<CallRepeat> {
        let tool = &request.accepted?.tool;
        if matches!(tool.backing, Some(Backing::Host)) {
            return None;
        }
        // In any memory, a call without `once` is a new one.
        let memory_flag = match &self.memory {
            _ if tool.once.is_none() => String::new(),
            LogTarget::File(log) => format!(" --log {}", quote_path_for_shell(log)),
            LogTarget::Disabled => " --no-log".to_owned(),
            LogTarget::DefaultDirectory => String::new(),
        };
        Some(CallRepeat {
            command: self.command(request.call, &memory_flag, mask)?,
            condition: self.condition,
            is_write: tool.effect == Effect::Write,
            is_settled_first: request.accepted?.is_settled_by_people()
                && self.memory != LogTarget::Disabled,
        })
    }

    fn command(&self, call: &Call, memory_flag: &str, mask: &Mask) -> Option<String> {
        let input = call.input.as_ref().map_or("", Input::text);
        let name = &call.name;
        if input.len() > MAX_INPUT_BYTES || name.starts_with('-') || name.contains(is_hidden) {
            return None;
        }
        let input = printable_json(&to_json_line(input));
        let line = format!(
            "{}{} {} {}",
            self.start,
            memory_flag,
            quote_for_shell(name),
            quote_for_shell(&input)
        );
        // Quotes can split a secret, so the parts are looked at, too.
        let has_secret = [&*line, &input, name]
            .iter()
            .any(|text| mask.apply(text) != **text);
        (!has_secret).then_some(line)
    }
}

/// The command line that repeats a call, safe to show.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallRepeat {
    command: String,
    condition: &'static str,
    /// Whether repeating it may repeat an effect.
    is_write: bool,
    /// The memory refuses to repeat it if its result leaves its effect open.
    is_settled_first: bool,
}

impl CallRepeat {
    /// Returns the line for a call that ended like this. It says so if the call may have done part of its work.
    pub(crate) fn line_after(&self, outcome: &Outcome) -> Option<String> {
        if self.is_settled_first && outcome.reach() == Reach::Open {
            return None;
        }
        let may_have_worked = matches!(outcome.reach(), Reach::Open | Reach::Done);
        let label = if self.is_write && may_have_worked {
            CHECK_LABEL
        } else {
            REPEAT_LABEL
        };
        is_repeatable(outcome).then(|| format!("{label}{}: {}", self.condition, self.command))
    }
}

/// Returns whether a call that ended like this ran, or would have, and is surely over.
fn is_repeatable(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Failed { .. }
            | Outcome::BadOutput { .. }
            | Outcome::TimedOut { .. }
            | Outcome::NotStarted(_)
            | Outcome::TransportFailed(_)
            | Outcome::AgentFailed { .. }
            | Outcome::MissingVariable(_)
    )
}

/// Rewrites JSON so that it has nothing hidden: line breaks between values become spaces, and what else can't be seen can
/// only be in a string, where an escape means the same.
fn printable_json(json: &str) -> String {
    let mut printable = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' | '\r' | '\t' => printable.push(' '),
            c if is_hidden(c) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    // Writing to a string can't fail.
                    let _ = write!(printable, "\\u{unit:04x}");
                }
            }
            c => printable.push(c),
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    use toolq_core::types::{CallEnding, CallOutput, DoubtCause, Tool};
    use toolq_testing::{accepted_call, rejected_call, sample_tool};

    fn line(input: &str) -> Option<String> {
        let call = accepted_call(0, sample_tool("read"), true, input);
        let command = RepeatCommand::new(" -c 'my tools.yaml'");
        let mask = Mask::new(["s3cr3t-value", "it's-secret"]);
        let repeat = command.repeat_of(call.request(), &mask)?;
        Some(repeat.command)
    }

    /// A shell passes on the same JSON, regardless of its characters.
    #[test]
    fn a_shell_reads_the_same_input() {
        for input in [
            "{}",
            r#"{"text":"it's $(id) `id` \\ \" * ~ !"}"#,
            "{\n\t\"path\": \"a\u{202e}b\u{1d173}\"\n}",
            r#"{"n":1.50,"中文":"宽"}"#,
        ] {
            let line = line(input).unwrap();
            assert!(!line.contains(is_hidden), "{line}");
            let words = line
                .strip_prefix("toolq call -c 'my tools.yaml' read ")
                .unwrap();
            let script = format!("printf %s {words}");
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            let value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
            assert_eq!(value(&output.stdout), value(input.as_bytes()));
        }
    }

    /// A write call that was stopped may have had an effect, so it isn't repeated without a look.
    #[test]
    fn only_a_call_that_surely_failed_is_repeated_without_checking() {
        let line_after = |effect, outcome: &Outcome| {
            let tool = Tool {
                effect,
                ..sample_tool("edit")
            };
            let command = RepeatCommand::new("");
            let call = accepted_call(0, tool, true, "{}");
            let repeat = command.repeat_of(call.request(), &Mask::default()).unwrap();
            repeat.line_after(outcome)
        };
        let timeout = |no_calls_started| Outcome::TimedOut {
            limit: Duration::from_secs(2),
            no_calls_started,
            output: CallOutput::default(),
        };
        let failed = |ending| Outcome::Failed {
            output: CallOutput::default(),
            ending,
        };
        let bare = Some("repeat: toolq call edit '{}'".to_owned());
        let checked =
            Some("may have done part of its work; after checking: toolq call edit '{}'".to_owned());
        for outcome in [
            timeout(false),
            failed(CallEnding::Signal(9)),
            failed(CallEnding::HttpStatus(502)),
        ] {
            assert_eq!(line_after(Effect::Write, &outcome), checked);
            assert_eq!(line_after(Effect::Read, &outcome), bare);
            assert_eq!(line_after(Effect::Idempotent, &outcome), bare);
        }
        for outcome in [
            timeout(true),
            failed(CallEnding::ExitCode(1)),
            failed(CallEnding::HttpStatus(404)),
        ] {
            assert_eq!(line_after(Effect::Write, &outcome), bare);
        }
        let doubtful = Outcome::InDoubt {
            cause: DoubtCause::EndNotLogged(None),
            output: CallOutput::default(),
        };
        assert_eq!(line_after(Effect::Write, &doubtful), None);
    }

    #[test]
    fn a_tools_file_from_a_pipe_has_to_be_provided_again() {
        let call = accepted_call(0, sample_tool("read"), true, "{}");
        let command = RepeatCommand::with_tools_on_stdin();
        let repeat = command.repeat_of(call.request(), &Mask::default()).unwrap();
        let failed = Outcome::Failed {
            output: CallOutput::default(),
            ending: CallEnding::ExitCode(1),
        };
        let line = "repeat, with the tools file on stdin: toolq call -c - read '{}'";
        assert_eq!(repeat.line_after(&failed).as_deref(), Some(line));
    }

    #[test]
    fn what_cannot_be_repeated_by_hand_has_no_line() {
        assert_eq!(line(r#"{"key":"s3cr3t-value"}"#), None);
        assert_eq!(line(r#"{"key":"it's-secret"}"#), None);
        assert_eq!(
            line(&format!(r#"{{"text":"{}"}}"#, "x".repeat(1_000))),
            None
        );
        let command = RepeatCommand::new("");
        let of_host = Tool {
            backing: Some(Backing::Host),
            ..sample_tool("read")
        };
        let of_host = accepted_call(0, of_host, true, "{}");
        assert_eq!(command.repeat_of(of_host.request(), &Mask::default()), None);
        assert_eq!(
            command.repeat_of(rejected_call(0, "nobody").request(), &Mask::default()),
            None
        );
    }
}
