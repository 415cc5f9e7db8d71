//! What people see while calls run: bars on a terminal, lines in a build's output.

mod bars;
mod lines;
mod look;
mod screen;

pub use bars::Bars;
pub use lines::Lines;
pub use look::Look;
pub use screen::Screen;

use crate::model::{CallRef, Mask, escape};

/// Which call: turn and position.
type Key = (usize, usize);

fn key(call: &CallRef) -> Key {
    (call.turn, call.position)
}

/// A text as a person may see it.
fn shown(text: &str, mask: &Mask) -> String {
    escape(&mask.text(text)).into_owned()
}
