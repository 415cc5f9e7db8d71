//! Renders the message with `functionResponse` parts. A text is under `output`, or under `error` if the call failed.

use std::borrow::Cow;

use serde::Serialize;

use crate::answer::render::model_content::{
    AnswerId, ContentPart, Keyed, Media, content_parts, omitted_label,
};
use crate::json::EachOf;
use crate::types::CallAnswer;

/// The message that carries the results.
#[derive(Serialize)]
struct FunctionMessage<P> {
    role: &'static str,
    parts: P,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    /// Most calls have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<AnswerId<'a>>,
    name: &'a str,
    response: Response,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Keyed<InlineData<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Response {
    Output(String),
    Error(String),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: Cow<'a, str>,
    data: Cow<'a, str>,
}

/// Builds the message that carries all results.
pub(super) fn build_message(answers: &[CallAnswer]) -> impl Serialize {
    FunctionMessage {
        role: "user",
        parts: EachOf(
            answers
                .iter()
                .map(|answer| Keyed::FunctionResponse(build_response(answer))),
        ),
    }
}

fn build_response(answer: &CallAnswer) -> FunctionResponse<'_> {
    let mut texts = Vec::new();
    let mut parts = Vec::new();
    for part in content_parts(&answer.content) {
        match part {
            ContentPart::Text(text) => texts.push(text),
            ContentPart::Image(Media::Data(mime_type, data))
            | ContentPart::Document {
                media: Media::Data(mime_type, data),
                ..
            } => parts.push(Keyed::InlineData(InlineData { mime_type, data })),
            ContentPart::Image(media) | ContentPart::Document { media, .. } => {
                texts.push(omitted_label(&media).into());
            }
        }
    }
    let text = texts.join("\n");
    FunctionResponse {
        id: AnswerId::own(answer),
        name: &answer.tool_name,
        response: if answer.is_error {
            Response::Error(text)
        } else {
            Response::Output(text)
        },
        parts,
    }
}
