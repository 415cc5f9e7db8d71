//! Prints the selected calls below the headings of their turns.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::log_view::call_filter::CallFilter;
use crate::log_view::call_tree::TreeStep;
use crate::log_view::call_view::CallView;
use crate::log_view::text_layout::TextLayout;

/// Prints calls that match a filter.
#[derive(Debug)]
pub(crate) struct CallWriter {
    pub(super) layout: TextLayout,
    pub(super) filter: CallFilter,
    /// With a filter: the title of the session, to be printed before its first matching call.
    pub(super) pending_title: Option<Arc<str>>,
    /// The turn of the input whose heading was printed last.
    pub(super) heading_turn: Option<usize>,
}

impl CallWriter {
    /// Prints a step of the tree. With a filter, each call is printed without its context, but with the names of its
    /// agents.
    pub(super) fn write_step(&mut self, call: &CallView, step: &TreeStep, text: &mut String) {
        let alone = !self.filter.matches_all();
        match step {
            TreeStep::Close { head_shown: true } if !alone => call.write_end(text, &self.layout),
            TreeStep::Close { .. } => self.write_call(call, text),
            TreeStep::Open | TreeStep::Turn(_) if alone => {}
            TreeStep::Open => {
                self.write_heading(call, text);
                call.write_head(text, &self.layout);
            }
            TreeStep::Turn(turn) => call.write_turn(text, *turn, &self.layout),
        }
    }

    /// Prints a whole call, if it matches the filter.
    pub(super) fn write_call(&mut self, call: &CallView, text: &mut String) {
        if self.filter.matches_call(&call.name, call.is_error()) {
            text.extend(self.pending_title.take().as_deref());
            self.write_heading(call, text);
            call.write(text, !self.filter.matches_all(), &self.layout);
        }
    }

    fn write_heading(&mut self, call: &CallView, text: &mut String) {
        let turn = call.input_turn;
        if self.heading_turn.replace(turn) != Some(turn) {
            let origin = call.turn_origin.as_deref();
            let origin = origin.map_or_else(String::new, |origin| format!(": {origin}"));
            let heading = self.layout.pad(&format!("turn {turn}{origin}"), 0);
            // Writing to a string can't fail.
            let _ = writeln!(text, "\n{heading}");
        }
    }
}
