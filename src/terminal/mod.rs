//! What people see while calls run: bars on a terminal, lines in a build's output.

mod bar_options;
mod bars;
mod labels;
mod lines;
pub(crate) mod outcome_label;
mod screen;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use bar_options::Look;
pub(crate) use bars::Bars;
pub(crate) use labels::Words;
pub(crate) use lines::Lines;
pub(crate) use outcome_label::PROBING;
pub(crate) use screen::Screen;
pub(crate) use summary::Summary;

use redact::Mask;
use toolq_core::text::escape;
use toolq_core::types::{CallKey, CallRef};

/// What runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Call(CallKey),
    /// The program by which the tool of this name describes itself.
    Describe(String),
}

fn key(call: &CallRef) -> Key {
    Key::Call(call.key())
}

/// Whether a batch is of an agent's own calls: those of the input are counted, and they are not.
fn is_of_agent(calls: &[CallRef]) -> bool {
    calls.first().is_some_and(|call| call.within.is_some())
}

/// The name of an agent's own call, behind those of the agents: `invoke_expert › search`.
fn within(call: &CallRef, name: &str) -> String {
    call.agents().fold(name.to_owned(), |name, agent| {
        format!("{} › {name}", agent.tool_name)
    })
}

/// A text as a person may see it.
fn shown(text: &str, mask: &Mask) -> String {
    escape(&mask.text(text)).into_owned()
}
