//! Renders outcomes as results in a dialect, with the texts that models read; and tools as declarations.

mod declare;
mod forms;
mod model_content;
mod texts;

use std::mem;

use crate::types::{AnswerForm, CallAnswer, InputLayout};

pub use declare::{DeclarationFormat, mcp_declaration, render_declarations};
pub use forms::{content_as_text, render_answers};
pub use model_content::content_for_model;
pub(crate) use texts::describe_failure;
pub use texts::{AnswerWording, build_answer, empty_output_text, failure_cause, max_turns_text};

// Gathers the answers of an input until a value in the form of the input is complete.

/// Gathers answers. One JSON value is complete at the end of each turn of a JSONL input, at the end of the last turn of any
/// other input, and with every answer if the form is a line per block.
#[derive(Debug)]
pub struct AnswerAssembler {
    form_override: Option<AnswerForm>,
    layout: InputLayout,
    form: AnswerForm,
    /// Number of turns with open calls left in this document, including the current one.
    turns_left: usize,
    answers: Vec<CallAnswer>,
}

impl AnswerAssembler {
    /// For an input of `layout` with `turns` turns that have open calls. `form_override` replaces the form of the turns.
    pub fn new(form_override: Option<AnswerForm>, layout: InputLayout, turns: usize) -> Self {
        Self {
            form_override,
            layout,
            form: AnswerForm::Message,
            turns_left: turns,
            answers: Vec::new(),
        }
    }

    /// Sets the form of the next turn's answers.
    pub fn begin_turn(&mut self, form: AnswerForm) {
        self.form = self.form_override.unwrap_or(form);
    }

    /// Adds the next answer. Returns whether a value is complete.
    #[must_use]
    pub fn push(&mut self, answer: CallAnswer) -> bool {
        self.answers.push(answer);
        self.has_line_per_block()
    }

    /// Ends a turn. Returns whether a value is complete.
    #[must_use]
    pub fn finish_turn(&mut self) -> bool {
        self.turns_left = self.turns_left.saturating_sub(1);
        let is_complete = match self.layout {
            InputLayout::Lines => true,
            InputLayout::Document => self.turns_left == 0,
        };
        is_complete && !self.has_line_per_block()
    }

    /// Renders the complete value as compact JSON, and begins the next one.
    pub fn take_json(&mut self) -> String {
        render_answers(self.form, &mem::take(&mut self.answers))
    }

    /// Returns whether a line without calls is answered with an empty list, so that a client waiting for a line gets one.
    pub fn answers_empty_lines(&self) -> bool {
        let has_line_per_result = self
            .form_override
            .is_some_and(AnswerForm::has_line_per_result);
        self.layout == InputLayout::Lines && !has_line_per_result
    }

    /// Returns whether each answer is a line of its own.
    pub fn has_line_per_block(&self) -> bool {
        self.form.has_line_per_result()
    }
}
