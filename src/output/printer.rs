//! Prints answers to stdout in the format of their input, as early as that format allows.

use std::mem;

use crate::output::stdout;
use crate::output::stdout::StdoutError;
use crate::terminal::ProgressScreen;
use toolq_core::answer;
use toolq_core::json::indent_json;
use toolq_core::os::failpoint;
use toolq_core::types::{
    AnswerForm, CallAnswer, CallRef, Event, EventSink, HaltCause, InputLayout,
};
use toolq_engine::{AnswerDelivery, RunControl};

/// Prints the answers of one input.
pub struct AnswerPrinter {
    form_override: Option<AnswerForm>,
    layout: InputLayout,
    form: AnswerForm,
    /// Number of turns with open calls left in this document, including the current one.
    turns_left: usize,
    calls: Vec<CallRef>,
    answers: Vec<CallAnswer>,
    is_terminal: bool,
    /// Progress bars, which may be on the same terminal.
    screen: Option<ProgressScreen>,
    /// Halts the run if stdout can't be written.
    control: Option<RunControl>,
    write_error: Option<StdoutError>,
}

impl AnswerPrinter {
    /// Creates a printer for an input of `layout` with `turns` turns. `form_override` is the value of `--to`.
    pub fn new(
        form_override: Option<AnswerForm>,
        layout: InputLayout,
        turns: usize,
        screen: Option<ProgressScreen>,
    ) -> Self {
        Self {
            form_override,
            layout,
            form: AnswerForm::Message,
            turns_left: turns,
            calls: Vec::new(),
            answers: Vec::new(),
            is_terminal: stdout::is_terminal(),
            screen,
            control: None,
            write_error: None,
        }
    }

    /// Halts the run through `control` if stdout can't be written.
    pub fn with_control(self, control: RunControl) -> Self {
        Self {
            control: Some(control),
            ..self
        }
    }

    /// Prints each answer on one line, even on a terminal.
    pub fn with_compact_output(self) -> Self {
        Self {
            is_terminal: false,
            ..self
        }
    }

    /// Sets the form of the next turn's answers.
    pub fn begin_turn(&mut self, form: AnswerForm) {
        self.form = self.form_override.unwrap_or(form);
    }

    /// Answers a line without calls with an empty list, so that a client waiting for a line gets one.
    pub fn print_empty_list(&mut self) {
        if self.layout == InputLayout::Lines && self.form_override != Some(AnswerForm::BlockLines) {
            self.print("[]");
        }
    }

    /// Takes the error of the first failed write.
    ///
    /// # Errors
    /// Stdout couldn't be written.
    pub fn check_written(&mut self) -> Result<(), StdoutError> {
        self.write_error.take().map_or(Ok(()), Err)
    }

    fn flush_answers(&mut self, sink: &mut dyn EventSink) {
        let answers = mem::take(&mut self.answers);
        let calls = mem::take(&mut self.calls);
        // A log error is reported at the end of the run; the results are valid and printed all the same.
        let _ = sink.flush();
        self.print(&answer::render_answers(self.form, &answers));
        if self.write_error.is_none() {
            let written = |call| Event::ResultWritten { call };
            let events: Vec<Event<'_>> = calls.iter().map(written).collect();
            // Likewise: a log that fails here is reported at the end of the run.
            let _ = sink.emit(&events);
        }
    }

    /// Prints one value, unless an earlier write failed.
    fn print(&mut self, json: &str) {
        if self.write_error.is_some() {
            return;
        }
        let _ = failpoint("print.before");
        let print = || {
            if self.is_terminal && self.form != AnswerForm::BlockLines {
                stdout::write_line(&indent_json(json))
            } else {
                stdout::write_line(json)
            }
        };
        let printed = match &self.screen {
            Some(screen) => screen.suspend(print),
            None => print(),
        };
        let _ = failpoint("print.after");
        self.write_error = printed.err();
        if let Some(control) = self.control.as_ref().filter(|_| self.write_error.is_some()) {
            control.halt(HaltCause::OutputLost);
        }
    }
}

impl AnswerDelivery for AnswerPrinter {
    fn deliver(&mut self, call: &CallRef, answer: CallAnswer, sink: &mut dyn EventSink) {
        self.calls.push(call.clone());
        self.answers.push(answer);
        if self.form == AnswerForm::BlockLines {
            self.flush_answers(sink);
        }
    }

    fn finish_turn(&mut self, sink: &mut dyn EventSink) {
        self.turns_left = self.turns_left.saturating_sub(1);
        let complete = match self.layout {
            InputLayout::Lines => true,
            InputLayout::Document => self.turns_left == 0,
        };
        if complete && self.form != AnswerForm::BlockLines {
            self.flush_answers(sink);
        }
    }
}
