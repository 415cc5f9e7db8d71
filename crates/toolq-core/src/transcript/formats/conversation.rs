//! What the readers of several dialects have in common.

use crate::json::{JsonKind, JsonText, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentResult, InputDocument};
use crate::transcript::index::CallId;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::{api_error, non_empty_text};

/// Reads each object of a list. Anything else in it is an error; `what` says what was expected.
pub(crate) fn read_objects<'a>(
    objects: impl IntoIterator<Item = Result<ParsedObject<'a>, JsonText<'a>>>,
    what: &str,
    mut read: impl FnMut(&ParsedObject<'a>) -> DocumentResult<'a>,
) -> DocumentResult<'a> {
    objects.into_iter().try_for_each(|object| {
        read(&object.map_err(|other| DocumentError::not_an_object(what, other))?)
    })
}

/// Reads a document that is one of what `read` takes, or a list of them. `what` says what a list must have.
pub(crate) fn read_values<'a>(
    document: &InputDocument<'a>,
    what: &str,
    builder: &mut IndexBuilder,
    read: impl Fn(&ParsedObject<'a>, &mut IndexBuilder) -> DocumentResult<'a>,
) -> DocumentResult<'a> {
    if let Some(items) = document.json.objects() {
        builder.enter_document();
        // What nothing encloses is one turn in a list, but never in two.
        builder.close_running_turn();
        read_objects(items, what, |item| {
            // An API that fails midway says so behind what it has sent.
            if item.get_object("error").is_some() && !item.has_value("role") {
                return Err(api_error(item));
            }
            read(item, builder)
        })?;
        builder.close_running_turn();
        return Ok(());
    }
    match &document.object {
        Some(object) => read(object, builder),
        None => Err(DocumentError::not_an_object("a message", document.json)),
    }
}

/// Reads the messages of a request, if an object has a list at `key`. Returns whether it has.
pub(crate) fn read_request<'a>(
    object: &ParsedObject<'a>,
    (key, what): (&str, &str),
    builder: &mut IndexBuilder,
    read_message: impl Fn(&ParsedObject<'a>, &mut IndexBuilder) -> DocumentResult<'a>,
) -> Result<bool, DocumentError<'a>> {
    let Some(messages) = object.get_unique(key)?.and_then(JsonText::objects) else {
        return Ok(false);
    };
    builder.enter_document();
    builder.mark_request();
    read_objects(messages, what, |message| read_message(message, builder))?;
    Ok(true)
}

/// Reads the parts of a message at `key`. `read` returns whether one is a call. Returns whether the last one is.
pub(crate) fn read_parts<'a>(
    message: &ParsedObject<'a>,
    (key, what): (&str, &str),
    mut read: impl FnMut(&ParsedObject<'a>) -> Result<bool, DocumentError<'a>>,
) -> Result<bool, DocumentError<'a>> {
    let parts = message.get_unique(key)?.and_then(JsonText::objects);
    let mut ends_in_call = false;
    read_objects(parts.into_iter().flatten(), what, |part| {
        ends_in_call = read(part)?;
        Ok(())
    })?;
    Ok(ends_in_call)
}

/// Returns the index at `key`, by which an event refers to a part of a message. Some servers leave it out.
pub(crate) fn read_index<'a>(
    event: &ParsedObject<'a>,
    key: &str,
) -> Result<Option<u64>, DocumentError<'a>> {
    let Some(index) = event.get_unique(key)?.filter(|index| !index.is_null()) else {
        return Ok(None);
    };
    let not_a_number = |_| DocumentError::new(index, format!("`{key}` must be a number"));
    index.get().parse().map(Some).map_err(not_a_number)
}

/// Reads a message of anybody but the model: its results, and whether a person says something in it. `says` decides that for a
/// part of its content.
pub(crate) fn read_others(
    message: &ParsedObject,
    is_person: bool,
    builder: &mut IndexBuilder,
    says: impl Fn(&ParsedObject) -> bool,
) {
    builder.chains.others_speak();
    add_results(message, builder);
    let content = message.get("content");
    // Those of Ollama stand beside the content.
    let images = message.get_elements("images");
    let has_images = images.is_some_and(|images| !images.is_empty());
    if is_person && (has_images || has_speech(content, says)) {
        builder.person_speaks(content);
    }
}

/// Adds the results in a message of anybody but the model, in whatever dialect they are: each block that is one, or else the whole
/// message of a tool.
pub(crate) fn add_results(message: &ParsedObject, builder: &mut IndexBuilder) {
    let mut has_block = false;
    for block in objects_at(message, "content") {
        let is_result = block.get_text("type").as_deref() == Some("tool_result");
        let nested = block.get_object("toolResult");
        if let Some(result) = nested.as_ref().or(Some(&block).filter(|_| is_result)) {
            add_result(result, builder);
            has_block = true;
        }
    }
    let role = message.get_text("role");
    let is_tool = matches!(role.as_deref(), Some("tool" | "function" | "tool_result"));
    if !is_tool || has_block {
        return;
    }
    let ids = message.get_elements("tool_call_ids").unwrap_or_default();
    for id in &ids {
        builder.add_result((&CallId::from_json(*id), None), message.json());
    }
    if ids.is_empty() || message.has_value("tool_call_id") {
        add_result(message, builder);
    }
}

/// Adds a result that names the id of its call, or the tool.
pub(crate) fn add_result(result: &ParsedObject, builder: &mut IndexBuilder) {
    let id = CallId::of_result(result);
    let tool = non_empty_text(result, "tool_name").or(non_empty_text(result, "name"));
    builder.add_result((&id, tool.as_deref()), result.json());
}

/// Returns whether a part of a message is a result, and so nothing that a person says.
pub(crate) fn is_result(part: &ParsedObject) -> bool {
    let kind = part.get_text("type");
    kind.as_deref() == Some("tool_result") || part.has_value("toolResult")
}

/// Returns the objects of the array at `key`, and none if there is no such array.
pub(crate) fn objects_at<'a>(
    object: &ParsedObject<'a>,
    key: &str,
) -> impl Iterator<Item = ParsedObject<'a>> + use<'a> {
    let list = object.get(key).and_then(JsonText::objects);
    list.into_iter().flatten().flatten()
}

/// Returns whether a text says something.
pub(crate) fn is_said(text: JsonText) -> bool {
    text.to_text().is_none_or(|text| !text.trim().is_empty())
}

/// Returns whether a person says something in the content of a message: a text, or an array of which `says` finds a part that
/// does.
pub(crate) fn has_speech(content: Option<JsonText>, says: impl Fn(&ParsedObject) -> bool) -> bool {
    content.is_some_and(|content| match content.kind() {
        JsonKind::String => is_said(content),
        JsonKind::Array => {
            let parts = content.objects().into_iter().flatten();
            parts.flatten().any(|part| says(&part))
        }
        _ => false,
    })
}

/// Records a block or item of a kind that toolq doesn't know. Its id isn't one that fits no call.
pub(crate) fn add_unknown_kind(kind: &str, block: &ParsedObject, builder: &mut IndexBuilder) {
    for key in ["id", "call_id"] {
        builder.note_foreign_call(&CallId::read(block, key));
    }
    builder
        .chains
        .add_unknown_kind(kind, may_be_call(kind, block));
}

/// Records what other programs call the calls of a model's message, if it has some under keys that its dialect doesn't have.
pub(crate) fn add_unknown_members(
    message: &ParsedObject,
    known: &[&str],
    builder: &mut IndexBuilder,
) {
    for kind in find_unknown_members(message, known) {
        builder.chains.add_unknown_kind(&kind, true);
    }
}

/// Returns the keys under which a message seems to have calls, but for the `known` ones, and such types of `parts`.
pub(crate) fn find_unknown_members(message: &ParsedObject, known: &[&str]) -> Vec<String> {
    let parts = objects_at(message, "parts").filter_map(|part| {
        let kind = part.get_text("type")?.into_owned();
        may_be_call(&kind, &part).then_some(kind)
    });
    let members = message.members().iter().filter(|(key, value)| {
        let name = key.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let is_empty = value.is_null() || matches!(value.get(), "[]" | "{}");
        let is_call = has(&["tool", "function"]) && has(&["call", "use", "invocation"]);
        is_call && !is_empty && !known.contains(&&**key)
    });
    parts
        .chain(members.map(|(key, _)| key.to_string()))
        .collect()
}

/// Returns whether a block of an unknown kind may ask for something: by its kind, or by what it has.
pub(crate) fn may_be_call(kind: &str, block: &ParsedObject) -> bool {
    let has_kind = |words: &[&str]| words.iter().any(|word| kind.to_lowercase().contains(word));
    let has_arguments = || {
        let keys = ["input", "args", "arguments", "action", "parameters"];
        keys.iter().any(|key| block.get(key).is_some())
    };
    !has_kind(&["result", "output", "response"])
        && (has_kind(&["call", "tool", "function", "request"]) || has_arguments())
}

/// Returns the error for several alternative answers with calls.
pub(crate) fn alternatives_error(place: JsonText<'_>) -> DocumentError<'_> {
    let message = "calls stand in two choices, which are alternatives";
    DocumentError::new(place, message).with_hint("ask the model for a single choice")
}
