//! Acts on the lines of the host.

use std::num::NonZeroUsize;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::args::values::InputFormat;
use crate::commands::run::RunArguments;
use crate::commands::run::control::host_calls::{Delivery, HostCalls, HostLine, HostLines};
use crate::commands::run::control::message::{
    HostMessage, LineId, MessageError, list_line, plan_line, problem_line, ready_line,
};
use crate::commands::run::control::open_turns::OpenTurns;
use crate::commands::run::control::tools_loading::ToolsInUse;
use crate::context::CommandContext;
use crate::output::{ClientOutput, CommandError, Exit};
use crate::session::RunSession;
use redact::Mask;
use toolq_core::answer;
use toolq_core::plan::{TurnPlan, render_plan_json};
use toolq_core::text::escape;
use toolq_core::transcript::{FollowedLine, LineFollower, Recording};
use toolq_core::types::{AnswerForm, Turn, TurnOrigin};
use toolq_engine::RunControl;

/// Acts on lines.
pub(super) struct LineHandler<'a> {
    pub(super) turns: Arc<OpenTurns>,
    pub(super) host_calls: Arc<HostCalls>,
    context: &'a CommandContext,
    tools: ToolsInUse<'a>,
    mask: Arc<Mask>,
    jobs: Option<NonZeroUsize>,
    messages: LineFollower,
    form: Option<AnswerForm>,
    include_answered: bool,
    has_bad_line: bool,
}

impl<'a> LineHandler<'a> {
    pub(super) fn new(
        arguments: &RunArguments,
        session: &RunSession<'a>,
        tools: ToolsInUse<'a>,
        (turns, host_calls): (&Arc<OpenTurns>, &Arc<HostCalls>),
    ) -> Self {
        Self {
            turns: Arc::clone(turns),
            host_calls: Arc::clone(host_calls),
            context: session.context,
            tools,
            mask: Arc::clone(&session.setup.mask),
            jobs: arguments.input.jobs,
            messages: LineFollower::new(
                "message",
                arguments.input.from.and_then(InputFormat::dialect),
                arguments.input.max_document,
            ),
            form: arguments.to,
            include_answered: arguments.input.all,
            has_bad_line: false,
        }
    }

    /// Handles lines until the host closes stdin, or the run is stopped.
    pub(super) async fn receive(
        &mut self,
        lines: &mut HostLines,
        output: &ClientOutput,
        control: &RunControl,
    ) -> Result<(), CommandError> {
        loop {
            let line = tokio::select! {
                biased;
                () = control.wait_for_external_halt() => return Ok(()),
                line = lines.next(output) => line,
            };
            let line = line.map_err(|error| {
                let message = format!("failed to read the rest of the input: {error}");
                CommandError::new(Exit::Incomplete, message)
            })?;
            match line {
                Some(line) => self.handle_line(line),
                None => return Ok(()),
            }
        }
    }

    /// Returns whether a line wasn't understood.
    pub(super) fn has_bad_line(&self) -> bool {
        self.has_bad_line
    }

    fn handle_line(&mut self, line: HostLine) {
        if let Err(MessageError { id, message }) = line.and_then(|message| self.handle(message)) {
            self.has_bad_line = true;
            self.turns.refuse(id.as_ref(), &message);
        }
    }

    fn handle(&mut self, message: HostMessage) -> Result<(), MessageError> {
        let about = |id: LineId| {
            move |message: String| MessageError {
                id: Some(id),
                message,
            }
        };
        match message {
            HostMessage::Tools { id, .. } => Err(MessageError {
                id,
                message: "`tools` must be the first line".to_owned(),
            }),
            HostMessage::Turn { id, message } => self.begin_turn(&id, &message).map_err(about(id)),
            HostMessage::Cancel { id } => self.turns.cancel(&id).map_err(about(id)),
            HostMessage::Approve {
                id,
                question,
                decision,
                reason,
            } => {
                let decided = self.turns.decide(&id, question, decision, reason);
                decided.map_err(about(id))
            }
            HostMessage::Result { id, result } => {
                let delivery = self.host_calls.deliver(&id, result).map_err(about(id))?;
                if let Delivery::Late(late) = delivery {
                    self.context.stderr.print_note(&format!(
                        "a late result of {} ({}) was dropped: the call was answered without it",
                        escape(&late.call.tool_name),
                        escape(&late.call.tool_use_id)
                    ));
                    self.turns.record_late(late);
                }
                Ok(())
            }
            HostMessage::List { id, format } => {
                let tools = answer::render_declarations(self.tools.tools(), format);
                self.turns
                    .send(list_line(&id, &self.mask.apply_to_json(&tools)));
                Ok(())
            }
            HostMessage::Plan { id, message } => self.plan(&id, &message).map_err(about(id)),
            HostMessage::Reload { id } => {
                self.reload(id.as_ref());
                Ok(())
            }
        }
    }

    /// # Errors
    /// Why the message can't be answered.
    fn begin_turn(&mut self, id: &LineId, message: &RawValue) -> Result<(), String> {
        let turn = self.read_turn(message)?;
        let number = self.turns.next_number(id)?;
        let (form, origin) = match &turn {
            Some(turn) => (turn.answer_form, turn.origin.clone()),
            None => (AnswerForm::Blocks, TurnOrigin::default()),
        };
        let origin = TurnOrigin {
            input: turn.is_some().then(|| "-".to_owned()),
            ..origin
        };
        let calls = match turn {
            Some(turn) => self.tools.checker().check_turn(turn.with_number(number)),
            None => Vec::new(),
        };
        let form = self.form.unwrap_or(form);
        self.turns.begin(id.clone(), number, form, calls, origin);
        Ok(())
    }

    /// # Errors
    /// Why the message can't be planned.
    fn plan(&mut self, id: &LineId, message: &RawValue) -> Result<(), String> {
        let turn = self.read_turn(message)?;
        let tools = self.tools.tools();
        let calls = turn.map(|turn| self.tools.checker().check_turn(turn.with_number(0)));
        let calls = calls.unwrap_or_default();
        let jobs = self.jobs.unwrap_or(tools.concurrency);
        let plan = TurnPlan::new(0, &calls, tools, jobs);
        let plan = render_plan_json(&plan, &self.mask);
        self.turns.send(plan_line(id, &plan));
        Ok(())
    }

    fn reload(&mut self, id: Option<&LineId>) {
        match self.tools.reload() {
            Ok(change) => {
                let note = format!("{} was read again", change.path);
                self.context.stderr.print_note(&note);
                self.turns.change_tools(change);
                self.turns.send(ready_line(id));
            }
            Err(failure) => {
                self.has_bad_line = true;
                let message = format!("{}; the tools stay as they were", failure.summary());
                let message = self.mask.apply(&message);
                self.turns
                    .send(problem_line(id, &message, &failure.problems));
            }
        }
    }

    /// Returns the only turn of a message with open calls, or `None` if no turn has any.
    ///
    /// # Errors
    /// It isn't a message, or it has several such turns.
    fn read_turn(&mut self, message: &RawValue) -> Result<Option<Turn>, String> {
        let mut open = None;
        let Some(recording) = self.read_message(message)? else {
            return Ok(None);
        };
        for index in 0..recording.len() {
            let turn = recording.turn(index, self.include_answered);
            let turn = turn.map_err(|error| error.describe_without_place())?;
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
        Ok(open)
    }

    /// Returns `None` for an API's own error, which has no calls.
    ///
    /// # Errors
    /// It isn't a message.
    fn read_message(&mut self, message: &RawValue) -> Result<Option<Box<Recording>>, String> {
        self.messages.push(message.get().as_bytes());
        self.messages.end_line();
        match self.messages.next() {
            Some(FollowedLine::Recording(recording)) => Ok(Some(recording)),
            Some(FollowedLine::ApiError(error)) => {
                let note = error.describe_without_place();
                self.context.stderr.print_note(&note);
                Ok(None)
            }
            Some(FollowedLine::Invalid(error)) => Err(error.describe_without_place()),
            None => Err("the message is empty".to_owned()),
        }
    }
}
