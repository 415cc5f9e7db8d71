use std::fmt::Write as _;
use std::sync::Arc;

use crate::log_view::call_tree::Step;
use crate::log_view::call_view::CallView;
use crate::log_view::filter::Filter;
use crate::log_view::text_layout::Page;

/// Calls → the lines of those that are wanted, below the turns of the input that they are of.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(super) page: Page,
    pub(super) filter: Filter,
    /// Shown with the first call below it, where not every call is wanted.
    pub(super) title: Option<Arc<str>>,
    /// The turn of the input whose calls are shown.
    pub(super) turn: Option<usize>,
}

impl Writer {
    /// Where not every call is wanted, each stands by itself, with the names of its agents before its own.
    pub(super) fn step(&mut self, call: &CallView, step: &Step, text: &mut String) {
        let alone = !self.filter.is_open();
        match step {
            Step::Leaves { is_open: true } if !alone => call.write_end(text, &self.page),
            Step::Leaves { .. } => self.call(call, text),
            Step::Opens | Step::Turn(_) if alone => {}
            Step::Opens => {
                self.heading(call, text);
                call.write_head(text, &self.page);
            }
            Step::Turn(turn) => call.write_turn(text, *turn, &self.page),
        }
    }

    /// A whole call, if it is wanted.
    pub(super) fn call(&mut self, call: &CallView, text: &mut String) {
        if self.filter.wants(&call.name, call.is_error()) {
            text.extend(self.title.take().as_deref());
            self.heading(call, text);
            call.write(text, !self.filter.is_open(), &self.page);
        }
    }

    fn heading(&mut self, call: &CallView, text: &mut String) {
        let turn = call.heading;
        if self.turn.replace(turn) != Some(turn) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\nturn {turn}");
        }
    }
}
