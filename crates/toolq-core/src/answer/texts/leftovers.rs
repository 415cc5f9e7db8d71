//! What a program had left running, where its tool says that the model is told.

use crate::answer::texts::dispatch::text_block;
use crate::types::{Backing, Content, Leftovers, Outcome, OutputKind, Tool};

/// The content with a word on what was ended.
pub(crate) fn told(content: Content, outcome: &Outcome, tool: Option<&Tool>) -> Content {
    let Some(tool) = tool.filter(|tool| is_reported(tool)) else {
        return content;
    };
    let ended = outcome.captured().map_or(0, |captured| captured.leftovers);
    let word = match ended {
        0 => return content,
        1 => "[a process that it had left running was ended]".to_owned(),
        many => format!("[{many} processes that it had left running were ended]"),
    };
    match content {
        Content::Text(text) if text.is_empty() => Content::Text(word),
        // JSON stays what it is: the word is a text of its own.
        Content::Text(text) if tool.output == OutputKind::Json && !outcome.is_error() => {
            Content::Blocks(
                [&text, &word]
                    .into_iter()
                    .filter_map(|text| text_block(text))
                    .collect(),
            )
        }
        Content::Text(text) => Content::Text(format!("{}\n{word}", text.trim_end_matches('\n'))),
        Content::Blocks(mut blocks) => {
            blocks.extend(text_block(&word));
            Content::Blocks(blocks)
        }
    }
}

fn is_reported(tool: &Tool) -> bool {
    matches!(&tool.backing, Some(Backing::Command(command)) if command.leftovers == Leftovers::Report)
}
