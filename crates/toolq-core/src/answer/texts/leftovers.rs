//! Reports processes that a program left running: those whose output was cut off, and all of tools with `leftovers: report`.

use crate::answer::texts::pieces::text_block;
use crate::types::{Backing, Leftovers, Outcome, OutputKind, ResultContent, Tool};

/// Appends a notice about the processes that were killed.
pub(crate) fn append_notice(
    content: ResultContent,
    outcome: &Outcome,
    tool: Option<&Tool>,
) -> ResultContent {
    let captured = outcome.captured();
    let is_reported = tool.is_some_and(reports_leftovers);
    let killed = captured.filter(|_| is_reported);
    let notice = match killed.map_or(0, |captured| captured.killed_leftovers) {
        _ if captured.is_some_and(|captured| captured.was_printing) => {
            "[cut off here: a process that it left running was still printing, and was killed]"
                .to_owned()
        }
        0 => return content,
        1 => "[killed 1 process that it left running]".to_owned(),
        many => format!("[killed {many} processes that it left running]"),
    };
    let is_json = tool.is_some_and(|tool| tool.output == OutputKind::Json);
    match content {
        // JSON stays valid: the notice becomes a text block of its own.
        ResultContent::Text(text) if is_json && !outcome.is_error() => ResultContent::Blocks(
            [&text, &notice]
                .into_iter()
                .filter_map(|text| text_block(text))
                .collect(),
        ),
        ResultContent::Text(text) => {
            ResultContent::Text(format!("{}\n{notice}", text.trim_end_matches('\n')))
        }
        ResultContent::Blocks(mut blocks) => {
            blocks.extend(text_block(&notice));
            ResultContent::Blocks(blocks)
        }
    }
}

fn reports_leftovers(tool: &Tool) -> bool {
    matches!(&tool.backing, Some(Backing::Command(command)) if command.leftovers == Leftovers::Report)
}
