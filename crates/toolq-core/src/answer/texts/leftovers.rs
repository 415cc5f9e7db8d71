//! Reports processes that a program left running, for tools with `leftovers: report`.

use crate::answer::texts::pieces::text_block;
use crate::types::{Backing, Leftovers, Outcome, OutputKind, ResultContent, Tool};

/// Appends a notice about the processes that were killed.
pub(crate) fn append_notice(
    content: ResultContent,
    outcome: &Outcome,
    tool: Option<&Tool>,
) -> ResultContent {
    let Some(tool) = tool.filter(|tool| reports_leftovers(tool)) else {
        return content;
    };
    let killed = outcome
        .captured()
        .map_or(0, |captured| captured.killed_leftovers);
    let notice = match killed {
        0 => return content,
        1 => "[killed 1 process that it left running]".to_owned(),
        many => format!("[killed {many} processes that it left running]"),
    };
    match content {
        // JSON stays valid: the notice becomes a text block of its own.
        ResultContent::Text(text) if tool.output == OutputKind::Json && !outcome.is_error() => {
            ResultContent::Blocks(
                [&text, &notice]
                    .into_iter()
                    .filter_map(|text| text_block(text))
                    .collect(),
            )
        }
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
