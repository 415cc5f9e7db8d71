//! What a session is about, as its log says it.

use std::path::Path;

use crate::input::CommandInput;
use crate::output::CommandError;
use crate::settings::{LogSettings, LogTarget};
use toolq_core::json::Input;
use toolq_core::text::quote_path_for_shell;
use toolq_core::types::{Call, CheckedCall};
use toolq_log::BeginMode;

/// What a session is about, and so what a log that it resumes has to match.
#[derive(Clone, Copy)]
pub enum LogSubject<'a> {
    /// The inputs of `toolq run`.
    Inputs {
        inputs: &'a [CommandInput],
        /// Calls that already have a result in the input are included.
        include_answered: bool,
    },
    /// The single call of `toolq call`.
    Call(&'a CheckedCall),
    /// The recordings of `toolq replay`, which resumes nothing.
    Recordings,
    /// The host process of `toolq run --follow --control`, whose turns aren't known before they come.
    Host,
    /// The client of `toolq serve`, whose calls aren't known before they come.
    Client,
}

/// The flags with which a later run finishes what a run leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResumeFlags {
    /// `--log` names the log: nothing was known of a stream or of `--follow` when its log got a name. Otherwise `--log` is there
    /// already, or the log is found by the digest of the input in its name.
    names_log: bool,
    /// The command had `--new`, which excludes `--resume`.
    replaces_new: bool,
}

impl ResumeFlags {
    /// Returns the flags for a run, or `None` if no later run can finish it.
    pub(super) fn of(subject: LogSubject<'_>, settings: &LogSettings) -> Option<Self> {
        let has_default_log = settings.target == LogTarget::DefaultDirectory;
        subject.is_resumable().then(|| Self {
            names_log: has_default_log && subject.digest().is_none(),
            replaces_new: settings.mode == BeginMode::ForceNewTask,
        })
    }

    /// Returns `--resume`, with `--log` if it is needed.
    pub(super) fn text(self, log: &Path) -> String {
        if self.names_log {
            format!("--resume --log {}", quote_path_for_shell(log))
        } else {
            "--resume".to_owned()
        }
    }

    /// Returns which flag these flags replace, as the end of a sentence.
    pub(super) fn replaced(self) -> &'static str {
        if self.replaces_new {
            " in place of `--new`"
        } else {
            ""
        }
    }
}

impl LogSubject<'_> {
    /// Returns the digest of the input, or `None` if it isn't known yet.
    pub(super) fn digest(self) -> Option<String> {
        match self {
            Self::Inputs { inputs, .. } => inputs_digest(inputs),
            Self::Call(checked) => Some(call_digest(&checked.call)),
            Self::Recordings | Self::Host | Self::Client => None,
        }
    }

    /// Returns whether a later run of the same command can finish what this one leaves.
    pub(super) fn is_resumable(self) -> bool {
        matches!(self, Self::Inputs { .. } | Self::Call(_) | Self::Host)
    }

    /// Returns whether calls are known before the run: all of them, or at least the first one of a stream.
    pub(super) fn knows_calls(self) -> bool {
        match self {
            Self::Inputs { inputs, .. } => match inputs {
                [CommandInput::Stream(stream)] => stream.first_call().is_some(),
                inputs => inputs
                    .iter()
                    .all(|input| matches!(input, CommandInput::Recording(_))),
            },
            Self::Call(_) => true,
            Self::Recordings | Self::Host | Self::Client => false,
        }
    }

    /// Passes each call that is known before the run to `visit`, if [`knows_calls`](Self::knows_calls).
    pub(super) fn for_each_known_call(
        self,
        mut visit: impl FnMut(&Call),
    ) -> Result<(), CommandError> {
        let (inputs, include_answered) = match self {
            _ if !self.knows_calls() => return Ok(()),
            Self::Inputs {
                inputs,
                include_answered,
            } => (inputs, include_answered),
            Self::Call(checked) => {
                visit(&checked.call);
                return Ok(());
            }
            Self::Recordings | Self::Host | Self::Client => return Ok(()),
        };
        let mut turns = 0;
        for input in inputs {
            match input {
                CommandInput::Recording(recording) => {
                    for index in 0..recording.len() {
                        let turn = recording.turn(index, include_answered)?;
                        turn.with_number(turns + index)
                            .calls
                            .iter()
                            .for_each(&mut visit);
                    }
                    turns += recording.len();
                }
                CommandInput::Stream(stream) => {
                    stream.first_call().into_iter().for_each(&mut visit);
                }
                CommandInput::Follow(_) => {}
            }
        }
        Ok(())
    }
}

/// Returns the digest of all inputs, or `None` if one is still arriving.
fn inputs_digest(inputs: &[CommandInput]) -> Option<String> {
    let mut digests = Vec::new();
    for input in inputs {
        let CommandInput::Recording(recording) = input else {
            return None;
        };
        digests.push(recording.sha256());
    }
    Some(toolq_log::combine_digests(digests.into_iter()))
}

/// Returns the digest of a single call.
fn call_digest(call: &Call) -> String {
    let input = call.input.as_ref().map(Input::text).unwrap_or_default();
    toolq_log::combine_digests([&*call.name, input].into_iter())
}
