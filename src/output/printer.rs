//! Prints answers to stdout in the format of their input, as early as that format allows.

use std::mem;
use std::sync::Arc;

use serde_json::json;

use crate::output::stdout::{self, StdoutError};
use crate::terminal::ProgressScreen;
use toolq_core::answer::AnswerAssembler;
use toolq_core::json::indent_json;
use toolq_core::os::failpoint;
use toolq_core::types::{
    AnswerForm, CallAnswer, CallRef, Event, EventSink, HaltCause, InputLayout,
};
use toolq_engine::{AnswerDelivery, RunControl};

/// Prints the answers of one input.
pub struct AnswerPrinter {
    assembler: AnswerAssembler,
    /// The calls of the answers that the assembler holds.
    calls: Vec<Arc<CallRef>>,
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
            assembler: AnswerAssembler::new(form_override, layout, turns),
            calls: Vec::new(),
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
        self.assembler.begin_turn(form);
    }

    /// Answers a line without calls with an empty list, so that a client waiting for a line gets one.
    pub fn print_empty_list(&mut self) {
        if self.assembler.answers_empty_lines() {
            self.print("[]");
        }
    }

    /// Answers a line that can't be read, so that a client waiting for a line gets one that says why.
    pub fn print_error_line(&mut self, message: &str) {
        let error =
            json!({"type": "error", "error": {"type": "invalid_request", "message": message}});
        self.print(&error.to_string());
    }

    /// Takes the error of the first failed write.
    ///
    /// # Errors
    /// Stdout couldn't be written.
    pub fn check_written(&mut self) -> Result<(), StdoutError> {
        self.write_error.take().map_or(Ok(()), Err)
    }

    fn flush_answers(&mut self, sink: &mut dyn EventSink) {
        let calls = mem::take(&mut self.calls);
        let json = self.assembler.take_json();
        self.print(&json);
        if self.write_error.is_none() {
            let written = calls.iter().map(|call| Event::ResultWritten { call });
            let events: Vec<Event<'_>> = written.collect();
            // A log that fails here is reported at the end of the run.
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
            if self.is_terminal && !self.assembler.has_line_per_block() {
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
    fn deliver(&mut self, call: &Arc<CallRef>, answer: CallAnswer, sink: &mut dyn EventSink) {
        self.calls.push(Arc::clone(call));
        if self.assembler.push(answer) {
            self.flush_answers(sink);
        }
    }

    fn finish_turn(&mut self, sink: &mut dyn EventSink) {
        if self.assembler.finish_turn() {
            self.flush_answers(sink);
        }
    }
}
