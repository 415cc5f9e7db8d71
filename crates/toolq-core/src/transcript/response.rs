//! Parses a model API's response body into its turn, message, text, stop reason, and token usage.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::{JsonKind, JsonText, ParsedObject, to_json_line};
use crate::transcript::document_frames::{DocumentOrigin, InputDocument};
use crate::transcript::formats::{format_of, returnable_content};
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::extract_call;
use crate::types::{Api, Dialect, ModelResponse, ReportedUsage, StopReason, Turn, Usage};

/// Maximum number of calls in a response, far more than any model makes. A call takes much more memory than its bytes
/// in the body, so a limit on the body's size isn't enough.
const MAX_CALLS: usize = 10_000;

/// Checks the number of calls in a response against the limit.
///
/// # Errors
/// `calls` is more than 10,000.
fn check_call_count(calls: usize) -> Result<(), ResponseError> {
    if calls <= MAX_CALLS {
        return Ok(());
    }
    Err(ResponseError::unreadable("it has more than 10,000 calls"))
}

/// Parses the body of a response of `api`; `turn_number` is the number that its turn gets.
///
/// # Errors
/// The body isn't a response of this API, or is an error.
pub fn parse_response(
    api: Api,
    body: &str,
    turn_number: usize,
) -> Result<(ModelResponse, Turn), ResponseError> {
    // The session log stores the body on one line. Its calls must have the same bytes when they're read from there.
    let body = &*to_json_line(body.trim_matches([' ', '\t', '\r', '\n']));
    let object = ParsedObject::parse(body)
        .map_err(|error| ResponseError::unreadable(format!("it is not valid JSON: {error}")))?
        .ok_or_else(|| ResponseError::unreadable("it is not a JSON object"))?;
    if let Some(error) = find_error(&object) {
        return Err(error);
    }
    let read = match api {
        Api::Anthropic => parse_anthropic(&object),
        Api::OpenAiChat => {
            let choice = first_choice(&object);
            if let Some(error) = choice.as_ref().and_then(find_choice_error) {
                return Err(error);
            }
            choice
                .ok_or_else(|| "it has no `choices`".to_owned())
                .and_then(|choice| parse_openai_chat(&choice))
        }
    };
    let (message, text, (stop, unknown_stop)) = read.map_err(ResponseError::Unreadable)?;
    let usage = object.get_object("usage");
    let response = ModelResponse {
        message,
        text,
        stop_reason: stop,
        unknown_stop_reason: unknown_stop,
        message_id: object.get_text("id").map(Cow::into_owned),
        model: object.get_text("model").map(Cow::into_owned),
        provider: match api {
            Api::Anthropic => "anthropic",
            Api::OpenAiChat => "openai",
        },
        usage: ReportedUsage(usage.and_then(|usage| complete_usage(api, &usage))),
        body: to_raw_value(body),
    };
    Ok((response, build_turn(api, body, object, turn_number)?))
}

/// Builds the turn of a body, with the same reader that recordings use.
fn build_turn(
    api: Api,
    body: &str,
    object: ParsedObject,
    turn_number: usize,
) -> Result<Turn, ResponseError> {
    let dialect = Dialect::from(api);
    let mut builder = IndexBuilder::default();
    let origin = DocumentOrigin::new(body, 0);
    builder.begin_document(origin);
    let document = InputDocument {
        json: JsonText::new(body),
        object: Some(object),
        origin,
    };
    format_of(dialect)
        .read_document(&document, &mut builder)
        .map_err(|error| ResponseError::Unreadable(error.message))?;
    let (index, _) = builder.finish();
    let [entry] = *index.turns else {
        return Err(ResponseError::unreadable("it isn't exactly one message"));
    };
    check_call_count(index.calls.len())?;
    let calls = index.calls.iter().enumerate();
    let calls = calls.filter_map(|(position, call)| {
        let object = extract_call(body, *call, 0)?;
        let raw = format_of(dialect).parse_call(&object);
        Some(raw.into_call(turn_number, position))
    });
    Ok(Turn {
        ending: entry.ending,
        ..Turn::of_calls(turn_number, calls.collect(), entry.form)
    })
}

/// The message to send back, its text, and why it ended; or why it can't be parsed.
type MessageParts = Result<(Box<RawValue>, String, StopParts), String>;

/// Why a response ended, and the API's stop reason if it's unknown.
type StopParts = (StopReason, Option<String>);

/// Treats any other stop reason as a complete response, even an unknown one.
fn complete_stop(word: Option<&str>, known: &[&str]) -> StopParts {
    let unknown = word.filter(|word| !known.contains(word));
    (StopReason::Complete, unknown.map(str::to_owned))
}

fn parse_anthropic(object: &ParsedObject) -> MessageParts {
    let content = object
        .get("content")
        .filter(|content| content.kind() == JsonKind::Array)
        .ok_or("it has no `content`")?;
    let blocks = content.elements().unwrap_or_default();
    let texts = blocks.into_iter().filter_map(|block| {
        let block = block.object()?;
        (block.get_text("type")? == "text").then(|| block.get_text("text").map(Cow::into_owned))?
    });
    let stop = match object.get_text("stop_reason").as_deref() {
        Some("pause_turn") => (StopReason::Paused, None),
        Some("max_tokens") => (StopReason::MaxTokens, None),
        Some("model_context_window_exceeded") => (StopReason::ContextFull, None),
        Some("refusal") => (StopReason::Refused, None),
        word => complete_stop(word, &["end_turn", "tool_use", "stop_sequence"]),
    };
    let returned = returnable_content(content);
    let message = format!("{{\"role\":\"assistant\",\"content\":{returned}}}");
    let texts: Vec<String> = texts.collect();
    Ok((to_raw_value(&message), texts.join("\n"), stop))
}

/// Returns the first choice. The others are alternative responses to the same request.
fn first_choice<'a>(object: &ParsedObject<'a>) -> Option<ParsedObject<'a>> {
    object.get_elements("choices")?.first()?.object()
}

/// Parses a choice. Only the members that every server accepts back are kept in the message.
fn parse_openai_chat(choice: &ParsedObject) -> MessageParts {
    let message = choice.get_object("message").ok_or("it has no `message`")?;
    let refusal = message.get_text("refusal").filter(|text| !text.is_empty());
    let stop = match choice.get_text("finish_reason").as_deref() {
        Some("length") => (StopReason::MaxTokens, None),
        Some("content_filter") => (StopReason::Refused, None),
        _ if refusal.is_some() => (StopReason::Refused, None),
        word => complete_stop(word, &["stop", "tool_calls", "function_call"]),
    };
    let text = message.get("content").map(content_text).unwrap_or_default();
    let text = if text.is_empty() {
        refusal.unwrap_or_default().into_owned()
    } else {
        text
    };
    let content = message.get("content").map_or("null", JsonText::get);
    let calls = message.get("tool_calls").filter(|calls| !calls.is_null());
    let calls = calls.map_or_else(String::new, |calls| {
        format!(",\"tool_calls\":{}", calls.get())
    });
    let assistant_message = format!("{{\"role\":\"assistant\",\"content\":{content}{calls}}}");
    Ok((to_raw_value(&assistant_message), text, stop))
}

/// Returns a text, or the texts of an array of parts, each on its own line.
fn content_text(content: JsonText) -> String {
    if let Some(text) = content.to_text() {
        return text.into_owned();
    }
    let parts = content.elements().unwrap_or_default();
    let texts = parts
        .into_iter()
        .filter_map(|part| Some(part.object()?.get_text("text")?.into_owned()));
    let texts: Vec<String> = texts.collect();
    texts.join("\n")
}

/// Wraps `text`, which is known to be valid JSON.
fn to_raw_value(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_default()
}

// Why a model API's response can't be used, and the errors that an API sends instead of one.

/// Why a response body isn't a usable response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseError {
    /// It's malformed, or something else: what is wrong with it, as a clause.
    Unreadable(String),
    /// The API returned an error instead.
    Api {
        /// The API's type or code of the error, such as `overloaded_error`; may be empty.
        kind: String,
        /// The API's message.
        message: String,
    },
}

impl ResponseError {
    pub(crate) fn unreadable(why: impl Into<String>) -> Self {
        Self::Unreadable(why.into())
    }
}

/// Returns the error that an API sent instead of a response: `{"error": {"type", "message"}}`, a text under `error`, or
/// an object of type `error`.
fn find_error(object: &ParsedObject) -> Option<ResponseError> {
    let error = object.get("error").filter(|error| !error.is_null());
    let is_error = object.get_text("type").is_some_and(|kind| kind == "error");
    let error = error.or_else(|| is_error.then(|| object.json()))?;
    let inner = error.object();
    let field = |name| inner.as_ref().and_then(|inner| inner.get_text(name));
    let message = field("message").or_else(|| error.to_text());
    let kind = field("type").filter(|kind| kind != "error");
    Some(ResponseError::Api {
        kind: kind
            .or_else(|| field("code"))
            .unwrap_or_default()
            .into_owned(),
        message: message.unwrap_or(Cow::Borrowed(error.get())).into_owned(),
    })
}

/// Returns the error that ended a response of chat completions. There it's part of the choice: `finish_reason` is
/// `error`.
fn find_choice_error(choice: &ParsedObject) -> Option<ResponseError> {
    let is_error = choice.get_text("finish_reason")? == "error";
    is_error.then(|| {
        find_error(choice).unwrap_or_else(|| ResponseError::Api {
            kind: "api_error".to_owned(),
            message: "the server ended the response with an error".to_owned(),
        })
    })
}

// Reads the token usage that a model API reports.

/// Returns the usage of a response, or `None` unless its API reported both input and output tokens.
fn complete_usage(api: Api, usage: &ParsedObject) -> Option<Usage> {
    let [read, written] = match api {
        Api::Anthropic => ["input_tokens", "output_tokens"],
        Api::OpenAiChat => ["prompt_tokens", "completion_tokens"],
    };
    parse_count(usage, read).and(parse_count(usage, written))?;
    Some(parse_usage(api, usage))
}

/// Parses the token counts that an API has reported so far. Missing counts are 0.
fn parse_usage(api: Api, usage: &ParsedObject) -> Usage {
    let count = |name| parse_count(usage, name).unwrap_or_default();
    match api {
        Api::Anthropic => Usage {
            input: count("input_tokens"),
            output: count("output_tokens"),
            cache_read: count("cache_read_input_tokens"),
            cache_write: count("cache_creation_input_tokens"),
        },
        Api::OpenAiChat => {
            let details = usage.get_object("prompt_tokens_details");
            let cached = details.and_then(|details| parse_count(&details, "cached_tokens"));
            let cached = cached.unwrap_or_default();
            Usage {
                input: count("prompt_tokens").saturating_sub(cached),
                output: count("completion_tokens"),
                cache_read: cached,
                cache_write: 0,
            }
        }
    }
}

fn parse_count(object: &ParsedObject, name: &str) -> Option<u64> {
    object.get(name)?.get().parse().ok()
}
