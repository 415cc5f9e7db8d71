//! Progress for people while calls run: bars on a terminal, lines elsewhere.

mod bar_styles;
mod bars;
pub(crate) mod call_caption;
mod failure_list;
mod lines;
mod repeat_command;
mod screen;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use bar_styles::BarOptions;
pub(crate) use bars::ProgressBars;
pub(crate) use call_caption::{CallLabels, PROBING_LABEL, PartialCallLabels};
pub(crate) use failure_list::{FailureList, OutcomeTally, calls_label};
pub(crate) use lines::ProgressLines;
pub(crate) use repeat_command::RepeatCommand;
pub(crate) use screen::{MAX_FRAMES_PER_SECOND, ProgressScreen};
pub(crate) use summary::RunSummary;
