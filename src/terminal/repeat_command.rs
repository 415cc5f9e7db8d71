//! The command line with which a person repeats a call.

use std::fmt::Write as _;
use std::path::Path;

use crate::output::quote_for_shell;
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::text::is_hidden;
use toolq_core::types::{CheckedCall, Outcome, Verdict};

/// Longer inputs are no help on a command line.
const MAX_INPUT_BYTES: usize = 1_000;

/// Makes command lines for POSIX shells: `toolq call fetch '{"url":"…"}'`.
#[derive(Debug, Clone)]
pub(crate) struct RepeatCommand(String);

impl RepeatCommand {
    /// Creates it for the tools of this file. `is_default` says that toolq finds the file by itself.
    pub(crate) fn new(tools_path: &Path, is_default: bool) -> Self {
        Self(if is_default {
            "toolq call".to_owned()
        } else {
            let path = tools_path.to_string_lossy();
            format!("toolq call -c {}", quote_for_shell(&path))
        })
    }

    /// Returns the command line. `None` if the call was rejected, or its input has a secret or is too long.
    pub(crate) fn line(&self, checked: &CheckedCall, mask: &Mask) -> Option<String> {
        let Verdict::Accepted(_) = &checked.verdict else {
            return None;
        };
        let input = checked.call.input.as_ref().map_or("", Input::text);
        let name = &checked.call.name;
        if input.len() > MAX_INPUT_BYTES || name.starts_with('-') || name.contains(is_hidden) {
            return None;
        }
        let input = printable_json(input);
        let line = format!(
            "{} {} {}",
            self.0,
            quote_for_shell(name),
            quote_for_shell(&input)
        );
        // Quotes can split a secret, so the parts are looked at, too.
        let has_secret = [&line, &input, name]
            .iter()
            .any(|text| mask.apply(text).as_ref() != text.as_str());
        (!has_secret).then_some(line)
    }
}

/// Returns whether a call that ended like this ran, or would have, and is surely over.
pub(crate) fn is_repeatable(outcome: &Outcome) -> bool {
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

    use super::*;

    use toolq_core::testing::{accepted_call, rejected_call, sample_tool};

    fn line(input: &str) -> Option<String> {
        let call = accepted_call(0, sample_tool("read"), true, input);
        let command = RepeatCommand::new(Path::new("my tools.yaml"), false);
        command.line(&call, &Mask::new(["s3cr3t-value", "it's-secret"]))
    }

    /// A shell gets the same JSON, whatever is in it.
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

    #[test]
    fn a_secret_a_long_input_and_a_rejected_call_have_no_line() {
        assert_eq!(line(r#"{"key":"s3cr3t-value"}"#), None);
        assert_eq!(line(r#"{"key":"it's-secret"}"#), None);
        assert_eq!(
            line(&format!(r#"{{"text":"{}"}}"#, "x".repeat(1_000))),
            None
        );
        let command = RepeatCommand::new(Path::new("tools.yaml"), true);
        assert_eq!(
            command.line(&rejected_call(0, "nobody"), &Mask::default()),
            None
        );
    }
}
