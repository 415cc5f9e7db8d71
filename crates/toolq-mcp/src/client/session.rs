//! One connection: its handshake, its lists and its calls, each request known by its number.

mod answers;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use memchr::memchr;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::client::handshake::{CallMeta, DISCOVER_ID, Handshake, INITIALIZE_ID, request_meta};
use crate::client::{CallId, SessionEvent, StrayCounts, ToolList};
use crate::framing::Outbox;
use crate::message::{Message, RpcError, find_broken_answer, parse_message_text};
use crate::protocol::{Implementation, ProtocolPreference, ProtocolVersion};
use crate::tool::Tool;

/// A client's side of a connection. Hand over every line that the server sends, and send every byte that
/// [`take_output`](Self::take_output) returns.
#[derive(Debug)]
pub struct ClientSession {
    handshake: Handshake,
    version: Option<ProtocolVersion>,
    has_failed: bool,
    next_id: u64,
    pending: HashMap<u64, PendingRequest>,
    outbox: Outbox,
    is_answering: bool,
    strays: StrayCounts,
}

/// A request without an answer.
#[derive(Debug)]
enum PendingRequest {
    ListTools(ToolListPages),
    CallTool(PendingCall),
}

/// A call without an answer.
#[derive(Debug)]
struct PendingCall {
    id: CallId,
    name: Arc<str>,
    arguments: Arc<RawValue>,
    meta: CallMeta,
    rounds: u32,
    /// How far the last progress notification said it is. Later ones must say more.
    progress: Option<f64>,
}

impl ClientSession {
    /// Begins a connection with its handshake.
    pub fn new(preference: ProtocolPreference, client: Implementation) -> Self {
        let mut outbox = Outbox::default();
        Self {
            handshake: Handshake::begin(preference, client, &mut outbox),
            version: None,
            has_failed: false,
            next_id: INITIALIZE_ID + 1,
            pending: HashMap::new(),
            outbox,
            is_answering: true,
            strays: StrayCounts::default(),
        }
    }

    /// Returns the bytes that are to be sent now.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.outbox.take()
    }

    /// As [`take_output`](Self::take_output), but adds the bytes to `output`.
    pub fn move_output_to(&mut self, output: &mut Vec<u8>) {
        self.outbox.move_to(output);
    }

    /// Returns what the server sent that belongs to nothing.
    pub fn strays(&self) -> StrayCounts {
        self.strays
    }

    /// Tries the legacy era. To be called once the server has been silent for a while after its start, or its answer
    /// isn't one of the modern era. Returns whether the legacy era is being tried.
    pub fn give_up_probe(&mut self) -> bool {
        if self.version.is_some() || self.has_failed {
            return false;
        }
        self.handshake.give_up_probe(&mut self.outbox);
        self.handshake.is_initializing()
    }

    /// Asks for the server's tools, after [`SessionEvent::Ready`].
    pub fn list_tools(&mut self) {
        self.ask_for_tools(ToolListPages::default(), None);
    }

    /// Calls a tool, after [`SessionEvent::Ready`]. `arguments` must be an object.
    pub fn call_tool(
        &mut self,
        name: impl Into<Arc<str>>,
        arguments: impl Into<Arc<RawValue>>,
        meta: CallMeta,
    ) -> CallId {
        let id = CallId(self.next_id);
        let call = PendingCall {
            id,
            name: name.into(),
            arguments: arguments.into(),
            meta,
            rounds: 0,
            progress: None,
        };
        self.send_call(call, None);
        id
    }

    /// Cancels a call. It gets no [`SessionEvent::CallEnded`], even if the server answers it.
    pub fn cancel_call(&mut self, call: CallId, reason: &str) {
        let Some(request_id) = self.find_request(call) else {
            return;
        };
        self.pending.remove(&request_id);
        let params = json!({"requestId": request_id, "reason": reason});
        self.outbox
            .notification("notifications/cancelled", Some(params));
    }

    /// Sets whether requests of the server are answered. A server that doesn't read what it is sent gets no more answers.
    pub fn set_answering(&mut self, is_answering: bool) {
        self.is_answering = is_answering;
    }

    /// Takes a line from the server.
    pub fn receive(&mut self, line: &[u8]) -> Vec<SessionEvent> {
        let line = repair_text(line);
        let Ok(messages) = parse_message_text(&line) else {
            let broken = find_broken_answer(line.as_bytes());
            let event = broken.and_then(|(id, reason)| self.reject_answer(id, reason));
            self.strays.noise_lines += u64::from(event.is_none());
            return event.into_iter().collect();
        };
        let events = messages.into_iter().filter_map(|message| match message {
            Message::Request { id, method, .. } => {
                self.strays.requests += 1;
                self.answer_request(&id, &method);
                None
            }
            Message::Notification { method, params } => match (&*method, params) {
                ("notifications/progress", Some(params)) => self.on_progress(params),
                _ => None,
            },
            Message::Response { id, result } => self.on_response(id.as_ref(), result),
        });
        events.collect()
    }

    /// Takes an error that answers a request, from a transport that knows the request where the error doesn't name it.
    pub fn receive_error(&mut self, request: u64, error: RpcError) -> Vec<SessionEvent> {
        self.on_answer(request, Err(error)).into_iter().collect()
    }

    /// Returns whether a request has no answer yet.
    pub fn is_waiting_for(&self, request: u64) -> bool {
        let is_handshaking = self.version.is_none() && !self.has_failed;
        match request {
            DISCOVER_ID => is_handshaking && self.handshake.is_probing(),
            INITIALIZE_ID => is_handshaking,
            _ => self.pending.contains_key(&request),
        }
    }

    /// Forgets a request that will have no answer. Returns the call that it was for; there is no
    /// [`SessionEvent::CallEnded`] for it.
    pub fn abandon_request(&mut self, request: u64) -> Option<CallId> {
        match self.pending.remove(&request)? {
            PendingRequest::CallTool(call) => Some(call.id),
            PendingRequest::ListTools(_) => None,
        }
    }
}

// Repairs text that no JSON parser reads, as official SDKs do: bytes that aren't UTF-8, and halves of surrogate pairs, which
// programs write that cut a text in the middle of a character.

/// Replaces a character that can't be read.
const REPLACEMENT: &str = r"\ufffd";
/// The length of an escape like `\ud83d`.
const ESCAPE_BYTES: usize = 6;

/// Returns the line as text, with everything that no parser can read replaced.
fn repair_text(line: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    match replace_lone_surrogates(&text) {
        Some(repaired) => repaired.into(),
        None => text,
    }
}

fn replace_lone_surrogates(text: &str) -> Option<String> {
    let json = text.as_bytes();
    let mut repaired: Option<String> = None;
    let (mut position, mut copied) = (0, 0);
    while let Some(offset) = memchr(b'\\', &json[position..]) {
        position += offset;
        let is_low = |unit: u16| (0xDC00..0xE000).contains(&unit);
        match escaped_unit(&json[position..]) {
            Some(0xD800..0xDC00)
                if escaped_unit(&json[position + ESCAPE_BYTES..]).is_some_and(is_low) =>
            {
                position += 2 * ESCAPE_BYTES;
            }
            Some(0xD800..0xE000) => {
                let repaired = repaired.get_or_insert_default();
                repaired.push_str(&text[copied..position]);
                repaired.push_str(REPLACEMENT);
                position += ESCAPE_BYTES;
                copied = position;
            }
            Some(_) => position += ESCAPE_BYTES,
            None => position = (position + 2).min(json.len()),
        }
    }
    let mut repaired = repaired?;
    repaired.push_str(&text[copied..]);
    Some(repaired)
}

/// Returns the UTF-16 unit of the escape that `json` begins with.
fn escaped_unit(json: &[u8]) -> Option<u16> {
    let digits = json.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

// Sends requests, each with a number of its own.

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallToolParams<'a> {
    name: &'a str,
    arguments: &'a RawValue,
    /// What the server asked to have back, byte for byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a RawValue>,
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    meta: Map<String, Value>,
}

impl ClientSession {
    fn ask_for_tools(&mut self, pages: ToolListPages, cursor: Option<&str>) {
        let id = self.take_id();
        let meta = self.request_meta();
        let meta = (!meta.is_empty()).then(|| ("_meta".to_owned(), meta.into()));
        let cursor = cursor.map(|cursor| ("cursor".to_owned(), cursor.into()));
        let params: Map<String, Value> = meta.into_iter().chain(cursor).collect();
        self.outbox.request(id, "tools/list", params);
        self.pending.insert(id, PendingRequest::ListTools(pages));
    }

    /// Sends the request of a call, with what the server asked to have back if it is repeated.
    fn send_call(&mut self, call: PendingCall, request_state: Option<&RawValue>) {
        let id = self.take_id();
        let mut meta = self.request_meta();
        if call.meta.wants_progress {
            meta.insert("progressToken".to_owned(), id.into());
        }
        let facts = [
            ("dev.toolq/idempotency-key", &call.meta.idempotency_key),
            ("traceparent", &call.meta.traceparent),
            ("tracestate", &call.meta.tracestate),
        ];
        for (key, value) in facts {
            if let Some(value) = value {
                meta.insert(key.to_owned(), value.as_str().into());
            }
        }
        let params = CallToolParams {
            name: &call.name,
            arguments: &call.arguments,
            request_state,
            meta,
        };
        self.outbox.request(id, "tools/call", params);
        self.pending.insert(id, PendingRequest::CallTool(call));
    }

    /// Returns the request that a call waits for.
    fn find_request(&self, call: CallId) -> Option<u64> {
        let is_of_call = |request: &PendingRequest| matches!(request, PendingRequest::CallTool(pending) if pending.id == call);
        let mut pending = self.pending.iter();
        pending.find_map(|(id, request)| is_of_call(request).then_some(*id))
    }

    /// Returns the `_meta` of requests.
    fn request_meta(&self) -> Map<String, Value> {
        let version = self.version.unwrap_or(ProtocolVersion::LATEST_LEGACY);
        request_meta(version, self.handshake.client())
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }
}

// Collects the pages of `tools/list`.

/// A list of more pages is taken for one that doesn't end.
const MAX_PAGES: usize = 1_000;
/// More tools of a server are left out: no model could choose among them, and each takes a few kilobytes.
const MAX_TOOLS: usize = 10_000;
/// How long the name of a tool may be.
const MAX_NAME_CHARS: usize = 128;
/// How long the pages may be together, as long as one message may be.
const MAX_LIST_BYTES: usize = 64 << 20;

/// The pages that have come.
#[derive(Debug, Default)]
pub(crate) struct ToolListPages {
    list: ToolList,
    names: HashSet<String>,
    /// Number of tools beyond [`MAX_TOOLS`].
    omitted: usize,
    pages: usize,
    bytes: usize,
    cursors: HashSet<String>,
}

/// What to do after a page.
#[derive(Debug)]
pub(crate) enum NextPage {
    /// Ask for the page at this cursor. An empty one is valid.
    Ask(String),
    /// The list is complete.
    Done(ToolList),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListToolsResult<'t> {
    /// Some languages write an empty list as `null`.
    #[serde(borrow)]
    tools: Option<Vec<&'t RawValue>>,
    next_cursor: Option<&'t RawValue>,
}

#[derive(Deserialize)]
struct ToolName {
    name: String,
}

pub(crate) fn unreadable_list(reason: &dyn fmt::Display) -> String {
    format!("the server's list of tools can't be read: {reason}")
}

impl ToolListPages {
    /// Takes a page.
    pub(crate) fn add(&mut self, page: &RawValue) -> Result<NextPage, String> {
        self.bytes += page.get().len();
        if self.bytes > MAX_LIST_BYTES {
            return Err("the server's list of tools has more than 64 MiB".to_owned());
        }
        let page: ListToolsResult<'_> =
            serde_json::from_str(page.get()).map_err(|error| unreadable_list(&error))?;
        for definition in page.tools.unwrap_or_default() {
            self.add_tool(definition);
        }
        self.pages += 1;
        let cursor = page.next_cursor;
        let cursor = cursor.map(|cursor| serde_json::from_str::<String>(cursor.get()));
        match cursor.transpose() {
            Err(_) => {
                let problem = "the cursor of its next page isn't a text, so it may have more tools";
                self.list.problems.push(problem.to_owned());
                Ok(NextPage::Done(self.take_list()))
            }
            Ok(Some(_)) if self.pages == MAX_PAGES => Err(format!(
                "the server's list of tools has over {MAX_PAGES} pages"
            )),
            Ok(Some(cursor)) if self.cursors.insert(cursor.clone()) => Ok(NextPage::Ask(cursor)),
            Ok(next) => {
                if next.is_some() {
                    let problem = "the list repeats its pages, and may have more tools";
                    self.list.problems.push(problem.to_owned());
                }
                Ok(NextPage::Done(self.take_list()))
            }
        }
    }

    fn take_list(&mut self) -> ToolList {
        let mut list = std::mem::take(&mut self.list);
        if self.omitted > 0 {
            let problem = format!(
                "it has more than {MAX_TOOLS} tools: {} are left out",
                self.omitted
            );
            list.problems.push(problem);
        }
        list
    }

    /// Adds a tool. One that can't be used is left out alone.
    fn add_tool(&mut self, definition: &RawValue) {
        if self.list.tools.len() + self.list.problems.len() >= MAX_TOOLS {
            self.omitted += 1;
            return;
        }
        let tool: Tool = match serde_json::from_str(definition.get()) {
            Ok(tool) => tool,
            Err(error) => {
                // The position is relative to the definition, which is never shown on its own.
                let error = error.to_string();
                let reason = error.split(" at line ").next().unwrap_or_default();
                let name = serde_json::from_str(definition.get())
                    .map_or_else(|_| "without a name".to_owned(), |tool: ToolName| tool.name);
                self.leave_out(&name, reason);
                return;
            }
        };
        if tool.name.is_empty() || tool.name.chars().count() > MAX_NAME_CHARS {
            let reason = format!("its name must have 1 to {MAX_NAME_CHARS} characters");
            self.leave_out(&tool.name, &reason);
        } else if tool.requires_task() {
            self.leave_out(&tool.name, "it can only be called as a task");
        } else if self.names.insert(tool.name.clone()) {
            self.list.tools.push(tool);
        } else if !self.has(&tool) {
            self.leave_out(&tool.name, "another tool has its name");
        }
    }

    /// Returns whether the list has the same definition already.
    fn has(&self, tool: &Tool) -> bool {
        let text = |tool: &Tool| serde_json::to_string(tool).unwrap_or_default();
        let mut tools = self.list.tools.iter();
        let known = tools.find(|known| known.name == tool.name);
        known.is_some_and(|known| text(known) == text(tool))
    }

    fn leave_out(&mut self, name: &str, reason: &str) {
        let name: String = name.chars().take(MAX_NAME_CHARS).collect();
        self.list
            .problems
            .push(format!("the tool {name} is left out: {reason}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(line: &[u8]) -> Option<String> {
        match repair_text(line) {
            Cow::Owned(repaired) => Some(repaired),
            Cow::Borrowed(_) => None,
        }
    }

    #[test]
    fn only_what_cannot_be_read_is_replaced() {
        for whole in [
            r#"{"a":"\ud83d\uDE00 \\ud83d \u00e4 \\"}"#,
            "ä",
            "",
            "\\",
            r"\u12",
        ] {
            assert_eq!(repaired(whole.as_bytes()), None, "{whole}");
        }
        for (broken, expected) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (
                r#""\uDE00\ud83d\ud83d\ude00""#,
                r#""\ufffd\ufffd\ud83d\ude00""#,
            ),
            (r#""\\\ud83d\n""#, r#""\\\ufffd\n""#),
            (r#""ä\ud83dö\ud83d日""#, r#""ä\ufffdö\ufffd日""#),
            (r#""\ä\ud83d""#, r#""\ä\ufffd""#),
        ] {
            assert_eq!(repaired(broken.as_bytes()).as_deref(), Some(expected));
        }
        assert_eq!(repaired(b"caf\xe9").as_deref(), Some("caf\u{FFFD}"));
    }
}
