//! The command that finishes a run that was killed.

use std::path::Path;

use crate::args::DEFAULT_TOOLS_FILE;
use toolq_core::text::{escape, quote_for_shell, quote_path_for_shell};
use toolq_log::records::{SessionRecord, TurnRecord};

/// What the log says about how a session was started.
#[derive(Debug, Default)]
pub(crate) struct ResumeCommand {
    session: Option<SessionRecord>,
    /// Where its first turn comes from: a path, or `-` for stdin.
    input: Option<String>,
}

impl ResumeCommand {
    /// Begins another session. One that resumes another has its input.
    pub(crate) fn begin_session(&mut self, session: SessionRecord) {
        if session.resumes.is_none() {
            self.input = None;
        }
        self.session = Some(session);
    }

    pub(crate) fn add_turn(&mut self, turn: TurnRecord) {
        if turn.agent.is_none() && self.input.is_none() {
            self.input = turn.input;
        }
    }

    /// Says what finishes the session in the log at `path`, with the command in a line of its own. Only a run has inputs.
    pub(crate) fn hint(&self, path: &Path) -> String {
        let Some((session, input)) = self.session.as_ref().zip(self.input.as_deref()) else {
            return "The same `toolq run` or `toolq call` with `--resume` finishes it; a server starts anew"
                .to_owned();
        };
        let mut words = vec!["toolq run --resume".to_owned()];
        let tools = &session.tools.path;
        if tools != DEFAULT_TOOLS_FILE {
            words.push(format!("-c {}", quote_for_shell(tools)));
        }
        if session.plan.is_some() {
            words.push("--plan PLAN".to_owned());
        }
        words.push(format!("--log {}", quote_path_for_shell(path)));
        words.push(match input {
            "-" => "< INPUT".to_owned(),
            input => quote_for_shell(input).into_owned(),
        });
        format!("This finishes it:\n  {}", escape(&words.join(" ")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hint(tools: &str, input: Option<&str>) -> String {
        let session = json!({
            "toolq": "0.1.0", "format": {"major": 1, "minor": 0}, "cwd": "/work", "jobs": 10, "pid": 1,
            "tools": {"path": tools, "sha256": "ab".repeat(32)},
        });
        let mut command = ResumeCommand::default();
        command.begin_session(serde_json::from_value(session).unwrap());
        let turn = |input: Option<&str>| serde_json::from_value(json!({"turn": 0, "input": input}));
        command.add_turn(turn(input).unwrap());
        command.add_turn(turn(Some("later")).unwrap());
        command.hint(Path::new("my log.jsonl"))
    }

    #[test]
    fn the_command_names_what_the_run_was_given() {
        assert_eq!(
            hint("tools.yaml", Some("calls.json")),
            "This finishes it:\n  toolq run --resume --log 'my log.jsonl' calls.json"
        );
        assert_eq!(
            hint("other.yaml", Some("-")),
            "This finishes it:\n  toolq run --resume -c other.yaml --log 'my log.jsonl' < INPUT"
        );
        let unknown = ResumeCommand::default().hint(Path::new("log"));
        assert!(unknown.contains("with `--resume` finishes it"), "{unknown}");
    }
}
