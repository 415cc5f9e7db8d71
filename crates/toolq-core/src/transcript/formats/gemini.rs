//! Documents of Gemini: a response, or the array of responses that a stream without events is; a message, a request, or an
//! array of messages. Its calls and results are parts of messages. The client libraries also write keys with underscores.

use crate::json::{DuplicateKey, InvalidInput, JsonText, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentResult, InputDocument};
use crate::transcript::formats::conversation::{
    add_results, add_unknown_kind, alternatives_error, is_said, may_be_call, objects_at,
    read_parts, read_request, read_values,
};
use crate::transcript::formats::{Format, StreamFormat};
use crate::transcript::index::CallId;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::{
    RawCall, find_input, non_empty_text, plain_result, read_input, unrecognized_object,
};
use crate::transcript::stream::{Block, BlockKind, Messages};
use crate::types::{AnswerForm, CallKind, Dialect, RecordedResult, ResponseEnding};

/// Keys of a part that say what it is. All other keys say more about it.
const PART_KEYS: [&str; 8] = [
    "text",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
    "audioTranscription",
];

/// Keys of a part that say more about it.
const DETAIL_KEYS: [&str; 5] = [
    "thought",
    "thoughtSignature",
    "videoMetadata",
    "mediaResolution",
    "partMetadata",
];

/// What a list of messages or parts must have.
const EXPECTED: &str = "a response, message, or part";

/// Gemini's API.
pub(crate) struct Gemini;

impl Format for Gemini {
    fn recognizes(&self, object: &ParsedObject, _: &[ParsedObject]) -> bool {
        let is_untyped = |part: ParsedObject| !part.has_value("type") && !part.has_value("kind");
        let is_message = object.get_text("role").as_deref() == Some("model")
            || object.has_value("role") && objects_at(object, "parts").any(is_untyped);
        let is_part = || {
            !object.has_value("role")
                && (get(object, "functionCall").is_some()
                    || get(object, "functionResponse").is_some())
        };
        let has_list = |key| object.get_elements(key).is_some();
        is_message || has_list("candidates") || has_list("contents") || is_part()
    }

    fn read_document<'a>(
        &self,
        document: &InputDocument<'a>,
        builder: &mut IndexBuilder,
    ) -> DocumentResult<'a> {
        read_values(document, EXPECTED, builder, read_value)
    }

    fn parse_call(&self, part: &ParsedObject) -> RawCall {
        let Some(call) = get(part, "functionCall").and_then(JsonText::object) else {
            return RawCall::new(CallId::Missing, None, Err(InvalidInput::Missing));
        };
        let input = if is_partial(&call) {
            Err(InvalidInput::Incomplete)
        } else {
            read_input(&[&call, part], "args")
        };
        let id = CallId::read(&call, "id");
        RawCall::new(id, non_empty_text(&call, "name"), input)
            .reject_duplicate_keys(&call)
            .reject_duplicate_keys(part)
    }

    /// By convention, a result has the output under `output` or `result`, or an `error`. Anything else is the output itself.
    fn parse_result(&self, result: &ParsedObject) -> RecordedResult {
        let response = result.get("response");
        let object = response.and_then(JsonText::object);
        let member = |key| object.as_ref().and_then(|object| object.get(key));
        let error = member("error").filter(|error| !error.is_null());
        let output = error.or(member("output")).or(member("result")).or(response);
        RecordedResult {
            is_error: Some(error.is_some()),
            ..plain_result(output)
        }
    }
}

/// Streams: responses with parts of one message, up to the end of the body. Calls come whole. Older models give a reason to
/// finish with every part.
impl StreamFormat for Gemini {
    fn is_event(&self, event: &ParsedObject) -> bool {
        event.has_value("candidates")
            || get(event, "usageMetadata").is_some() && get(event, "modelVersion").is_some()
    }

    fn read_event<'a>(
        &self,
        event: &ParsedObject<'a>,
        messages: &mut Messages,
    ) -> DocumentResult<'a> {
        let id = get(event, "responseId").and_then(JsonText::to_text);
        let is_other = |open: &str| {
            id.as_deref()
                .is_some_and(|id| !open.is_empty() && open != id)
        };
        if messages.open_id().is_some_and(is_other) {
            if !messages.has_stopped() {
                let text = "another response begins before the end of this one";
                return Err(DocumentError::new(event.json(), text));
            }
            messages.close();
        }
        if !messages.is_open() {
            messages.open(Dialect::Gemini, AnswerForm::Gemini, Some(event));
        }
        let Some(candidate) = chosen_candidate(event)? else {
            return Ok(());
        };
        if let Some(content) = candidate.get_unique("content")?.and_then(JsonText::object) {
            read_parts(&content, ("parts", "a part"), |part| {
                read_stream_part(part, messages)
            })?;
        }
        if let Some(reason) = get(&candidate, "finishReason").and_then(JsonText::to_text) {
            messages.stop(ending(&reason));
        }
        Ok(())
    }
}

fn read_stream_part<'a>(
    part: &ParsedObject<'a>,
    messages: &mut Messages,
) -> Result<bool, DocumentError<'a>> {
    if let Some(record) = messages.record() {
        record.add_part(part.json(), None);
    }
    let Some(call) = get_unique(part, "functionCall")?.and_then(JsonText::object) else {
        if let Some(kind) = unknown_key(part) {
            messages.add_unknown_kind(kind, may_be_call(kind, part));
        }
        return Ok(false);
    };
    let (id, name) = (CallId::read(&call, "id"), non_empty_text(&call, "name"));
    let kind = BlockKind::Call(CallKind::Function);
    let input = find_input(&[&call, part], "args");
    let duplicate = call.duplicate_key().or(part.duplicate_key());
    let block = Block {
        fault: duplicate
            .map(InvalidInput::duplicate_key)
            .or(input.clone().err()),
        ..Block::new(kind, None).called(id, name)
    };
    let number = messages.begin(block, &call);
    if is_partial(&call) {
        messages.break_at(number, "its input comes in parts that toolq doesn't read");
    }
    let input = input.ok().flatten().filter(|input| !input.is_null());
    messages.set_input(number, input.unwrap_or(JsonText::new("{}")));
    messages.end_block(number);
    Ok(true)
}

/// Returns whether only a part of a call's input is there.
fn is_partial(call: &ParsedObject) -> bool {
    let marks = ["partialArgs", "willContinue"];
    marks
        .iter()
        .any(|key| get(call, key).is_some_and(|value| value.get() != "false"))
}

/// Returns the value of a key as the API or a client library writes it, unless it is `null`.
pub(crate) fn get<'a>(object: &ParsedObject<'a>, key: &str) -> Option<JsonText<'a>> {
    let value = object
        .get(key)
        .or_else(|| object.get(&with_underscores(key)));
    value.filter(|value| !value.is_null())
}

/// Like [`get`], for a key that must not be ambiguous, in one spelling or in both.
fn get_unique<'a>(
    object: &ParsedObject<'a>,
    key: &str,
) -> Result<Option<JsonText<'a>>, DuplicateKey<'a>> {
    let value = object.get_unique(key)?;
    let other = object.get_unique(&with_underscores(key))?;
    match (value, other) {
        (Some(_), Some(second_value)) => Err(DuplicateKey {
            key: key.to_owned().into(),
            second_value,
        }),
        (value, other) => Ok(value.or(other).filter(|value| !value.is_null())),
    }
}

fn with_underscores(key: &str) -> String {
    let spelled = key.chars().flat_map(|letter| {
        let underscore = letter.is_ascii_uppercase().then_some('_');
        underscore.into_iter().chain([letter.to_ascii_lowercase()])
    });
    spelled.collect()
}

/// Returns how a response with this finish reason ended.
pub(crate) fn ending(reason: &str) -> ResponseEnding {
    match reason {
        "" | "STOP" | "FINISH_REASON_UNSPECIFIED" => ResponseEnding::Complete,
        "MAX_TOKENS" => ResponseEnding::CutOff,
        _ => ResponseEnding::Refused,
    }
}

/// Returns the candidate of a response that has calls, or else the first one.
fn chosen_candidate<'a>(
    response: &ParsedObject<'a>,
) -> Result<Option<ParsedObject<'a>>, DocumentError<'a>> {
    let mut chosen = None;
    let mut is_calling = false;
    let candidates = response
        .get_unique("candidates")?
        .and_then(JsonText::objects);
    for candidate in candidates.into_iter().flatten().flatten() {
        let content = candidate.get_object("content");
        let has_calls = content.is_some_and(|content| {
            objects_at(&content, "parts").any(|part| get(&part, "functionCall").is_some())
        });
        if has_calls && is_calling {
            return Err(alternatives_error(candidate.json()));
        }
        if chosen.is_none() || has_calls {
            chosen = Some(candidate);
        }
        is_calling |= has_calls;
    }
    Ok(chosen)
}

/// Reads a response, a message, a request, or a part.
fn read_value<'a>(object: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    if object.has_value("candidates") {
        return read_response(object, builder);
    }
    if read_request(object, ("contents", EXPECTED), builder, read_message)? {
        return Ok(());
    }
    if object.has_value("parts") || object.has_value("role") {
        return read_message(object, builder);
    }
    if unknown_key(object).is_some() {
        return Err(unrecognized_object(object));
    }
    let turn = builder.open_running_turn(Dialect::Gemini, AnswerForm::Gemini);
    read_part(object, turn, builder).map(drop)
}

/// Reads a response, or one of those that a stream consists of: with the same id, or else in one array, they are one message.
fn read_response<'a>(
    response: &ParsedObject<'a>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    builder.enter_document();
    let (dialect, form) = (Dialect::Gemini, AnswerForm::Gemini);
    let turn = match get(response, "responseId").and_then(JsonText::to_text) {
        Some(id) => builder.open_named_turn(&id, dialect, form),
        None => builder.open_running_turn(dialect, form),
    };
    builder.set_message(turn, response);
    let Some(candidate) = chosen_candidate(response)? else {
        return Ok(());
    };
    let mut ends_in_call = false;
    if let Some(content) = candidate.get_unique("content")?.and_then(JsonText::object) {
        ends_in_call = read_model_parts(&content, turn, builder)?;
    }
    let reason = get(&candidate, "finishReason").and_then(JsonText::to_text);
    let ending = ending(&reason.unwrap_or_default());
    builder.set_ending(turn, ending.after(ends_in_call));
    Ok(())
}

fn read_message<'a>(message: &ParsedObject<'a>, builder: &mut IndexBuilder) -> DocumentResult<'a> {
    builder.close_running_turn();
    if message.get_unique_text("role")?.as_deref() == Some("model") {
        let turn = builder.open_turn(Dialect::Gemini, AnswerForm::Gemini);
        return read_model_parts(message, turn, builder).map(drop);
    }
    builder.chains.others_speak();
    add_results(message, builder);
    for part in objects_at(message, "parts") {
        add_result(&part, builder)?;
    }
    let says = |part: ParsedObject| {
        part.get("text").is_some_and(is_said)
            || ["inlineData", "fileData"]
                .iter()
                .any(|key| get(&part, key).is_some())
    };
    if objects_at(message, "parts").any(says) {
        builder.person_speaks(message.get("parts"));
    }
    Ok(())
}

/// Adds the calls and results of a message to the model's turn, and returns whether it ends in a call.
fn read_model_parts<'a>(
    message: &ParsedObject<'a>,
    turn: usize,
    builder: &mut IndexBuilder,
) -> Result<bool, DocumentError<'a>> {
    let read = |part: &ParsedObject<'a>| read_part(part, turn, builder);
    read_parts(message, ("parts", "a part"), read)
}

/// Adds a part if it's a call or a result, and returns whether it's a call.
fn read_part<'a>(
    part: &ParsedObject<'a>,
    turn: usize,
    builder: &mut IndexBuilder,
) -> Result<bool, DocumentError<'a>> {
    if let Some(call) = get_unique(part, "functionCall")?.and_then(JsonText::object) {
        let (id, tool) = (CallId::read(&call, "id"), call.get_text("name"));
        builder.add_call(turn, part.json(), (&[&id], tool.as_deref()))?;
        return Ok(true);
    }
    if !add_result(part, builder)?
        && let Some(kind) = unknown_key(part)
    {
        add_unknown_kind(kind, part, builder);
    }
    Ok(false)
}

/// Adds the result that a part has, if it has one.
fn add_result<'a>(
    part: &ParsedObject<'a>,
    builder: &mut IndexBuilder,
) -> Result<bool, DocumentError<'a>> {
    let Some(result) = get_unique(part, "functionResponse")?.and_then(JsonText::object) else {
        return Ok(false);
    };
    let (id, tool) = (CallId::read(&result, "id"), non_empty_text(&result, "name"));
    builder.add_result((&id, tool.as_deref()), result.json());
    Ok(true)
}

/// Returns the key of a part that says what it is, if toolq doesn't know that.
fn unknown_key<'p>(part: &'p ParsedObject) -> Option<&'p str> {
    let is_known = |keys: &[&str]| keys.iter().any(|key| get(part, key).is_some());
    if is_known(&PART_KEYS) || is_known(&["functionCall", "functionResponse"]) {
        return None;
    }
    let mut unknown = part.members().iter().filter(|(key, value)| {
        let camel = key.replace('_', "");
        !value.is_null()
            && !DETAIL_KEYS
                .iter()
                .any(|known| known.eq_ignore_ascii_case(&camel))
    });
    unknown.next().map(|(key, _)| &**key)
}
