//! What an agent says: to its model, the results of a turn; to who called it, its answer.

use serde_json::value::RawValue;

use toolq_core::answer::render;
use toolq_core::types::{Answer, Api, Content, Form};

/// The messages that carry the results of a turn: one for all, or one for each.
pub(crate) fn results(api: Api, form: Form, answers: &[Answer]) -> Vec<Box<RawValue>> {
    let rendered = render(form, answers);
    match api {
        Api::Anthropic => RawValue::from_string(rendered).into_iter().collect(),
        Api::OpenAiChat => serde_json::from_str(&rendered).unwrap_or_default(),
    }
}

/// The text of an answer.
pub(crate) fn text_of(answer: &Answer) -> String {
    match &answer.content {
        Content::Text(text) => text.clone(),
        Content::Blocks(_) => String::new(),
    }
}

/// What the caller reads of a complete answer.
pub(crate) fn final_text(spoken: &str) -> String {
    match spoken {
        "" => "(The agent is done, and its answer is empty.)".to_owned(),
        text => text.to_owned(),
    }
}

/// What the caller reads where the agent would have gone on.
pub(crate) fn unfinished(spoken: &str, max_turns: u32) -> String {
    let turns = match max_turns {
        1 => "its only turn".to_owned(),
        turns => format!("its {turns} turns"),
    };
    let note = format!("(The agent was not done after {turns}; these are its last words.)");
    match spoken {
        "" => format!("(The agent was not done after {turns}, and said nothing.)"),
        text => format!("{text}\n{note}"),
    }
}
