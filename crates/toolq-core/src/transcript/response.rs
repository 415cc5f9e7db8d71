//! One answer of a model's API, in memory → its turn, its message, its text, why it ended and what it took.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::{Json, Object, json_line};
use crate::transcript::document::{Document, Origin};
use crate::transcript::formats::dispatch;
use crate::transcript::ids::{finish, within};
use crate::transcript::index_builder::Turns;
use crate::types::{Api, Dialect, Response, Stop, Tokens, Turn, Usage};

/// The calls that an answer may have, which no model comes near: each takes far more memory than bytes of the body.
const MOST_CALLS: usize = 10_000;

/// Why a body is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseFault {
    /// It is another thing, or broken: what.
    Strange(String),
    /// It is the API's error.
    Error {
        /// The API's word for it: `overloaded_error`.
        kind: String,
        /// What it says.
        message: String,
    },
}

impl ResponseFault {
    fn strange(why: impl Into<String>) -> Self {
        Self::Strange(why.into())
    }
}

/// Whether an answer may have so many calls.
///
/// # Errors
/// It has more than any model asks for.
pub fn bounded_calls(calls: usize) -> Result<(), ResponseFault> {
    if calls <= MOST_CALLS {
        return Ok(());
    }
    Err(ResponseFault::strange("it has more than 10,000 calls"))
}

/// Reads the body of a response; `number` is that of its turn.
///
/// # Errors
/// It is no answer of this API.
pub fn response(api: Api, body: &str, number: usize) -> Result<(Response, Turn), ResponseFault> {
    // A log holds it on one line: its calls must have the same bytes when they are read from there.
    let body = &*json_line(body.trim_matches([' ', '\t', '\r', '\n']));
    let object = Object::read(body)
        .map_err(|error| ResponseFault::strange(format!("it is no JSON: {error}")))?
        .ok_or_else(|| ResponseFault::strange("it is no object"))?;
    if let Some(error) = error(&object) {
        return Err(error);
    }
    let read = match api {
        Api::Anthropic => of_anthropic(&object),
        Api::OpenAiChat => {
            let choice = choice(&object);
            if let Some(error) = choice.as_ref().and_then(failed) {
                return Err(error);
            }
            choice
                .ok_or_else(|| "it has no `choices`".to_owned())
                .and_then(|choice| of_openai(&choice))
        }
    };
    let (message, text, (stop, unknown_stop)) = read.map_err(ResponseFault::Strange)?;
    let usage = object.object("usage");
    let response = Response {
        message,
        text,
        stop,
        unknown_stop,
        model: object.text("model").map(Cow::into_owned),
        usage: Tokens(usage.and_then(|usage| whole(api, &usage))),
        body: raw(body),
    };
    Ok((response, turn(api, body, object, number)?))
}

/// The turn of a body, by the same reader as a recording's.
fn turn(api: Api, body: &str, object: Object, number: usize) -> Result<Turn, ResponseFault> {
    let dialect = match api {
        Api::Anthropic => Dialect::Anthropic,
        Api::OpenAiChat => Dialect::OpenAiChat,
    };
    let mut turns = Turns::default();
    let origin = Origin::of(body, 0);
    turns.begin(origin);
    let document = Document {
        json: Json::new(body),
        object: Some(object),
        origin,
    };
    dispatch::read(dialect, &document, &mut turns)
        .map_err(|complaint| ResponseFault::Strange(complaint.message))?;
    let index = turns.finish();
    if index.len() != 1 {
        return Err(ResponseFault::strange("it is not one message"));
    }
    bounded_calls(index.calls_of(0).len())?;
    let calls = index.calls_of(0).enumerate();
    let calls = calls.filter_map(|(position, call)| {
        let object = within(body, index.call(call), 0)?;
        let asked = dispatch::asked(dialect, &object);
        Some(finish(number, position, asked, object.json()))
    });
    let entry = index.turn(0);
    Ok(Turn {
        number,
        calls: calls.collect(),
        answered: 0,
        started: Vec::new(),
        form: entry.form,
        cut_off: entry.cut_off,
    })
}

/// The error in the place of an answer: `{"error": {"type", "message"}}`, or a text in the place of the object.
pub(crate) fn error(object: &Object) -> Option<ResponseFault> {
    let error = object.get("error").filter(|error| !error.is_null())?;
    let inner = error.object();
    let field = |name| inner.as_ref().and_then(|inner| inner.text(name));
    let message = field("message").or_else(|| error.text());
    Some(ResponseFault::Error {
        kind: field("type")
            .or_else(|| field("code"))
            .unwrap_or_default()
            .into_owned(),
        message: message.unwrap_or(Cow::Borrowed(error.get())).into_owned(),
    })
}

/// The error that ended an answer of chat completions, which keeps the word for it in the choice.
pub(crate) fn failed(choice: &Object) -> Option<ResponseFault> {
    let ended = choice.text("finish_reason")? == "error";
    ended.then(|| {
        error(choice).unwrap_or_else(|| ResponseFault::Error {
            kind: "api_error".to_owned(),
            message: "the server ended the answer with an error".to_owned(),
        })
    })
}

type Read = Result<(Box<RawValue>, String, Ended), String>;

/// Why it ended, and the word for it that is not known.
type Ended = (Stop, Option<String>);

/// An end that says nothing else is taken for a good one, whatever it is called.
fn done(word: Option<&str>, known: &[&str]) -> Ended {
    let unknown = word.filter(|word| !known.contains(word));
    (Stop::Done, unknown.map(str::to_owned))
}

fn of_anthropic(object: &Object) -> Read {
    let content = object
        .get("content")
        .filter(|content| content.kind() == "an array")
        .ok_or("it has no `content`")?;
    let blocks = content.list().unwrap_or_default();
    let texts = blocks.into_iter().filter_map(|block| {
        let block = block.object()?;
        (block.text("type")? == "text").then(|| block.text("text").map(Cow::into_owned))?
    });
    let stop = match object.text("stop_reason").as_deref() {
        Some("pause_turn") => (Stop::Paused, None),
        Some("max_tokens") => (Stop::MaxTokens, None),
        Some("model_context_window_exceeded") => (Stop::ContextFull, None),
        Some("refusal") => (Stop::Refused, None),
        word => done(word, &["end_turn", "tool_use", "stop_sequence"]),
    };
    let message = format!("{{\"role\":\"assistant\",\"content\":{}}}", content.get());
    Ok((raw(&message), texts.collect(), stop))
}

/// The first choice: the others are other answers to the same question.
fn choice<'a>(object: &Object<'a>) -> Option<Object<'a>> {
    object.list("choices")?.first()?.object()
}

/// Of the message only what every server takes back is kept.
fn of_openai(choice: &Object) -> Read {
    let message = choice.object("message").ok_or("it has no `message`")?;
    let refusal = message.text("refusal").filter(|words| !words.is_empty());
    let stop = match choice.text("finish_reason").as_deref() {
        Some("length") => (Stop::MaxTokens, None),
        Some("content_filter") => (Stop::Refused, None),
        _ if refusal.is_some() => (Stop::Refused, None),
        word => done(word, &["stop", "tool_calls", "function_call"]),
    };
    let text = message.get("content").map(content_text).unwrap_or_default();
    let text = if text.is_empty() {
        refusal.unwrap_or_default().into_owned()
    } else {
        text
    };
    let content = message.get("content").map_or("null", Json::get);
    let calls = message.get("tool_calls").filter(|calls| !calls.is_null());
    let calls = calls.map_or_else(String::new, |calls| {
        format!(",\"tool_calls\":{}", calls.get())
    });
    let sent = format!("{{\"role\":\"assistant\",\"content\":{content}{calls}}}");
    Ok((raw(&sent), text, stop))
}

/// A text, or the texts of parts.
fn content_text(content: Json) -> String {
    if let Some(text) = content.text() {
        return text.into_owned();
    }
    let parts = content.list().unwrap_or_default();
    let texts = parts
        .into_iter()
        .filter_map(|part| Some(part.object()?.text("text")?.into_owned()));
    texts.collect()
}

/// What an answer took; none where its API didn't count both what was read and what was written.
fn whole(api: Api, usage: &Object) -> Option<Usage> {
    let [read, written] = match api {
        Api::Anthropic => ["input_tokens", "output_tokens"],
        Api::OpenAiChat => ["prompt_tokens", "completion_tokens"],
    };
    number(usage, read).and(number(usage, written))?;
    Some(told(api, usage))
}

/// What an API told of tokens so far. What it didn't count is 0.
pub(crate) fn told(api: Api, usage: &Object) -> Usage {
    let count = |name| number(usage, name).unwrap_or_default();
    match api {
        Api::Anthropic => Usage {
            input: count("input_tokens"),
            output: count("output_tokens"),
            cache_read: count("cache_read_input_tokens"),
            cache_write: count("cache_creation_input_tokens"),
        },
        Api::OpenAiChat => {
            let details = usage.object("prompt_tokens_details");
            let cached = details.and_then(|details| number(&details, "cached_tokens"));
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

fn number(object: &Object, name: &str) -> Option<u64> {
    object.get(name)?.get().parse().ok()
}

/// `text` was read as JSON before.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_default()
}
