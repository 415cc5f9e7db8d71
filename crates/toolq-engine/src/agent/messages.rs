//! The texts that an agent produces: the results of a turn for its model, and its answer for its caller.

use serde_json::value::RawValue;

use toolq_core::answer::render_answers;
use toolq_core::types::{AnswerForm, Api, CallAnswer, ResultContent};

/// Returns the messages that carry the results of a turn: one for all of them, or one for each, depending on the API.
pub(crate) fn result_messages(
    api: Api,
    form: AnswerForm,
    answers: &[CallAnswer],
) -> Vec<Box<RawValue>> {
    let rendered = render_answers(form, answers);
    match api {
        Api::Anthropic => RawValue::from_string(rendered).into_iter().collect(),
        Api::OpenAiChat => serde_json::from_str(&rendered).unwrap_or_default(),
    }
}

/// Returns the text of a call's answer.
pub(crate) fn answer_text(answer: &CallAnswer) -> String {
    match &answer.content {
        ResultContent::Text(text) => text.clone(),
        ResultContent::Blocks(_) => String::new(),
    }
}

/// Returns what the caller reads when the agent finished. `last_text` is the model's last text.
pub(crate) fn final_answer(last_text: &str) -> String {
    match last_text {
        "" => "(The agent finished with an empty answer.)".to_owned(),
        text => text.to_owned(),
    }
}
