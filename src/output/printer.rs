//! Puts answers on stdout in the form of their input, as soon as that form allows.

use std::mem;

use crate::output::stdout;
use crate::output::stdout::OutputLost;
use crate::terminal::Screen;
use toolq_core::answer;
use toolq_core::json::pretty;
use toolq_core::os::failpoint;
use toolq_core::types::{Answer, CallRef, Event, Form, Halt, Layout, Sink};
use toolq_engine::{Control, Delivery};

/// The answers of one input on their way to stdout.
pub struct Printer {
    to: Option<Form>,
    layout: Layout,
    form: Form,
    /// Turns with open calls that are still to come in this document, the current one included.
    turns_left: usize,
    calls: Vec<CallRef>,
    answers: Vec<Answer>,
    terminal: bool,
    /// Bars that stand on the same terminal.
    screen: Option<Screen>,
    /// Ends the run once stdout takes no more.
    control: Option<Control>,
    lost: Option<OutputLost>,
}

impl Printer {
    /// A printer for an input of `layout` with so many turns; `to` overrides the form of the input.
    pub fn new(to: Option<Form>, layout: Layout, turns: usize, screen: Option<Screen>) -> Self {
        Self {
            to,
            layout,
            form: Form::Message,
            turns_left: turns,
            calls: Vec::new(),
            answers: Vec::new(),
            terminal: stdout::is_terminal(),
            screen,
            control: None,
            lost: None,
        }
    }

    /// The same, ending the run by `control` once stdout takes no more.
    pub fn ending(self, control: Control) -> Self {
        Self {
            control: Some(control),
            ..self
        }
    }

    /// The same, a line for each answer on a terminal, too.
    pub fn unfolded(self) -> Self {
        Self {
            terminal: false,
            ..self
        }
    }

    /// The next turn asks in this form.
    pub fn begin(&mut self, form: Form) {
        self.form = self.to.unwrap_or(form);
    }

    /// Answers a line that asked for nothing by an empty list, so that who waits for a line gets one.
    pub fn nothing_asked(&mut self) {
        if self.layout == Layout::Lines && self.to != Some(Form::BlockLines) {
            self.print("[]");
        }
    }

    /// Why stdout takes no more, if it doesn't.
    ///
    /// # Errors
    /// What the first failed write said.
    pub fn check(&mut self) -> Result<(), OutputLost> {
        self.lost.take().map_or(Ok(()), Err)
    }

    fn write(&mut self, sink: &mut dyn Sink) {
        let answers = mem::take(&mut self.answers);
        let calls = mem::take(&mut self.calls);
        // A log that can't keep them says so at the end; they are no less true for that.
        let _ = sink.settle();
        self.print(&answer::render(self.form, &answers));
        if self.lost.is_none() {
            let written = |call| Event::ResultWritten { call };
            let events: Vec<Event<'_>> = calls.iter().map(written).collect();
            // A log that refuses this has refused before, and its refusal is told at the end.
            let _ = sink.tell(&events);
        }
    }

    /// Prints one value, unless stdout was lost before.
    fn print(&mut self, compact: &str) {
        if self.lost.is_some() {
            return;
        }
        let _ = failpoint("print.before");
        let print = || {
            if self.terminal && self.form != Form::BlockLines {
                stdout::line(&pretty(compact))
            } else {
                stdout::line(compact)
            }
        };
        let printed = match &self.screen {
            Some(screen) => screen.suspend(print),
            None => print(),
        };
        let _ = failpoint("print.after");
        self.lost = printed.err();
        if let Some(control) = self.control.as_ref().filter(|_| self.lost.is_some()) {
            control.halt(Halt::OutputLost);
        }
    }
}

impl Delivery for Printer {
    fn deliver(&mut self, call: &CallRef, answer: Answer, sink: &mut dyn Sink) {
        self.calls.push(call.clone());
        self.answers.push(answer);
        if self.form == Form::BlockLines {
            self.write(sink);
        }
    }

    fn drained(&mut self, sink: &mut dyn Sink) {
        self.turns_left = self.turns_left.saturating_sub(1);
        let complete = match self.layout {
            Layout::Lines => true,
            Layout::Document => self.turns_left == 0,
        };
        if complete && self.form != Form::BlockLines {
            self.write(sink);
        }
    }
}
