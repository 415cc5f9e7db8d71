//! Reads the lines of the host and acts on them.

use std::fs::File;
use std::sync::Arc;

use toolq_mcp::{Frame, LineFramer};

use crate::args::RunArguments;
use crate::commands::run::control::message::{HostMessage, MessageError, TurnId};
use crate::commands::run::control::open_turns::OpenTurns;
use crate::commands::serve::stdio::client_output::ClientOutput;
use crate::context::CommandContext;
use crate::input::ChunkReader;
use crate::output::{CommandError, Exit};
use crate::session::RunSession;
use serde_json::value::RawValue;
use toolq_core::check::CallChecker;
use toolq_core::text::format_bytes;
use toolq_core::transcript::{FollowedLine, LineFollower, Recording};
use toolq_core::types::{AnswerForm, ApprovalDecision, TurnOrigin};
use toolq_engine::RunControl;

/// The lines of the host.
pub(super) struct ControlInput<'a> {
    reader: ChunkReader,
    framer: LineFramer,
    handler: LineHandler<'a>,
}

/// Acts on lines.
struct LineHandler<'a> {
    turns: Arc<OpenTurns>,
    context: &'a CommandContext,
    checker: CallChecker,
    messages: LineFollower,
    form: Option<AnswerForm>,
    include_answered: bool,
    max_line_bytes: u64,
    has_bad_line: bool,
}

impl<'a> ControlInput<'a> {
    pub(super) fn new(
        input: File,
        arguments: &RunArguments,
        session: &RunSession<'a>,
        turns: &Arc<OpenTurns>,
    ) -> Result<Self, CommandError> {
        let max_line_bytes = arguments.input.max_document;
        let limit = usize::try_from(max_line_bytes).unwrap_or(usize::MAX);
        let mut reader = ChunkReader::new(Vec::new(), input);
        reader.read_in_background().map_err(CommandError::usage)?;
        Ok(Self {
            reader,
            framer: LineFramer::new(limit),
            handler: LineHandler {
                turns: Arc::clone(turns),
                context: session.context,
                checker: CallChecker::new(Arc::clone(&session.tools)),
                messages: LineFollower::new(
                    "message",
                    arguments.input.from.map(Into::into),
                    max_line_bytes,
                ),
                form: arguments.to.map(Into::into),
                include_answered: arguments.input.all,
                max_line_bytes,
                has_bad_line: false,
            },
        })
    }

    /// Handles lines until the host closes stdin, or the run is stopped. While the host doesn't read, nothing more is read.
    pub(super) async fn receive(
        &mut self,
        output: &ClientOutput,
        control: &RunControl,
    ) -> Result<(), CommandError> {
        loop {
            let reader = &mut self.reader;
            let chunk = tokio::select! {
                biased;
                () = control.wait_for_external_halt() => return Ok(()),
                chunk = async { output.wait_for_room().await; reader.next().await } => chunk,
            };
            let bytes = chunk.map_err(|error| {
                let message = format!("failed to read the rest of the input: {error}");
                CommandError::new(Exit::Incomplete, message)
            })?;
            let handler = &mut self.handler;
            if bytes.is_empty() {
                std::mem::replace(&mut self.framer, LineFramer::new(0))
                    .finish(|frame| handler.handle_frame(&frame));
                return Ok(());
            }
            self.framer
                .push(&bytes, |frame| handler.handle_frame(&frame));
        }
    }

    /// Returns whether a line wasn't understood.
    pub(super) fn has_bad_line(&self) -> bool {
        self.handler.has_bad_line
    }
}

impl LineHandler<'_> {
    fn handle_frame(&mut self, frame: &Frame<'_>) {
        let handled = match frame {
            Frame::Line(line) if line.trim_ascii().is_empty() => return,
            Frame::Line(line) => HostMessage::parse(line).and_then(|message| self.handle(message)),
            Frame::TooLong { bytes, .. } => Err(MessageError {
                id: None,
                message: format!(
                    "a line of {} is too long: at most {} (`--max-input`)",
                    format_bytes(*bytes),
                    format_bytes(self.max_line_bytes)
                ),
            }),
        };
        if let Err(MessageError { id, message }) = handled {
            self.has_bad_line = true;
            self.turns.refuse(id.as_ref(), &message);
        }
    }

    fn handle(&mut self, message: HostMessage) -> Result<(), MessageError> {
        let about = |id: TurnId| {
            move |message: String| MessageError {
                id: Some(id),
                message,
            }
        };
        match message {
            HostMessage::Turn { id, message } => self.begin_turn(&id, &message).map_err(about(id)),
            HostMessage::Cancel { id } => self.turns.cancel(&id).map_err(about(id)),
            HostMessage::Approve {
                id,
                tool_use_id,
                is_yes,
                reason,
            } => {
                let decision = if is_yes {
                    ApprovalDecision::Yes
                } else {
                    ApprovalDecision::No
                };
                let decided = self.turns.decide(&id, &tool_use_id, decision, reason);
                decided.map_err(about(id))
            }
        }
    }

    /// # Errors
    /// Why the message can't be answered.
    fn begin_turn(&mut self, id: &TurnId, message: &RawValue) -> Result<(), String> {
        let recording = self.read_message(message)?;
        let number = self.turns.next_number(id)?;
        let Some(recording) = recording else {
            let (form, calls) = (AnswerForm::Blocks, Vec::new());
            self.turns
                .begin(id.clone(), number, form, calls, TurnOrigin::default());
            return Ok(());
        };
        let mut open = None;
        for index in 0..recording.len() {
            let turn = recording.turn(index, self.include_answered);
            let turn = turn.map_err(|error| error.to_string())?;
            if turn.calls.is_empty() {
                continue;
            }
            if open.replace(turn).is_some() {
                return Err(
                    "the message has several turns with open calls; send each as a turn of its own"
                        .to_owned(),
                );
            }
        }
        let form = open.as_ref().map(|turn| turn.answer_form);
        let origin = open.as_ref().map(|turn| turn.origin.clone());
        let origin = TurnOrigin {
            input: Some("-".to_owned()),
            ..origin.unwrap_or_default()
        };
        let calls = open.map(|turn| self.checker.check_turn(turn.with_number(number)));
        let form = self.form.or(form).unwrap_or(AnswerForm::Blocks);
        let calls = calls.unwrap_or_default();
        self.turns.begin(id.clone(), number, form, calls, origin);
        Ok(())
    }

    /// Returns `None` for an API's own error, which has no calls.
    ///
    /// # Errors
    /// It is no message.
    fn read_message(&mut self, message: &RawValue) -> Result<Option<Box<Recording>>, String> {
        self.messages.push(message.get().as_bytes());
        self.messages.end_line();
        match self.messages.next() {
            Some(FollowedLine::Recording(recording)) => Ok(Some(recording)),
            Some(FollowedLine::ApiError(error)) => {
                self.context.stderr.print_note(&error.to_string());
                Ok(None)
            }
            Some(FollowedLine::Invalid(error)) => Err(error.to_string()),
            None => Err("the message is empty".to_owned()),
        }
    }
}
