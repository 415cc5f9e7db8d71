//! Turns and their calls: what a model asked for, what tells calls apart, and their traces.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::json::{Input, InvalidInput};
use crate::types::dialect::AnswerForm;

/// The calls of one assistant message. Turns run one after another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Turn {
    /// Counted from 0 over the whole input. Answered turns count too, so a turn keeps its number when its input is run again.
    pub number: usize,
    /// In the order in which the model requested them.
    pub calls: Vec<Call>,
    /// Number of calls left out here because the input already holds their results.
    pub answered_count: usize,
    /// Calls left out here because the conversation went on without their results.
    #[serde(skip)]
    pub abandoned: Vec<Call>,
    /// The form to answer in, which mirrors the form of the turn.
    pub answer_form: AnswerForm,
    /// How the response ended.
    pub ending: ResponseEnding,
    /// The position of the first call of which it isn't certain what was sent. It doesn't run, nor does any after it.
    pub broken_from: Option<usize>,
    /// Positions of calls that started but didn't end, or only because their run did, if the input is a session log.
    pub started_positions: Vec<usize>,
    /// Positions of calls that are in doubt, if the input is a session log that says so.
    pub in_doubt_positions: Vec<usize>,
    /// Positions of calls that may have a result in the input, which doesn't say whose it is. They run only if they change nothing.
    pub unsure_positions: Vec<usize>,
    /// Where it comes from.
    pub origin: TurnOrigin,
}

/// Where a turn comes from, as far as that is known. It changes nothing about how the turn runs, but tells calls apart that look
/// the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnOrigin {
    /// The path of the input as it was given, or `-` for stdin.
    pub input: Option<String>,
    /// The id of the message or response that requested the calls.
    pub message_id: Option<String>,
    /// The model that wrote it.
    pub model: Option<String>,
    /// What stands before the message in its conversation, if it is part of one.
    pub before: Option<ContextDigest>,
    /// The ids that calls with different inputs share in the conversation.
    pub shared_ids: Arc<BTreeSet<String>>,
}

/// How a model's response ended, as far as it decides which of its calls may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseEnding {
    /// It is complete.
    #[default]
    Complete,
    /// It hit a token limit (`max_tokens`, `length`, `incomplete`), and its last block is a call, whose input may be
    /// incomplete.
    CutOff,
    /// It was refused (`refusal`, `content_filter`), has failed, or was canceled. None of its calls may run.
    Refused,
}

impl ResponseEnding {
    /// Returns how a response ended, given whether its last part is a call: a limit anywhere else cut off no call.
    #[must_use]
    pub(crate) fn after(self, last_is_call: bool) -> Self {
        match self {
            Self::CutOff if !last_is_call => Self::Complete,
            ending => ending,
        }
    }
}

/// What the input says about a call, if it is a session log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputState {
    /// Nothing: as far as is known, the call has never started.
    Open,
    /// The call started, but didn't end.
    Started,
    /// The call is in doubt.
    InDoubt,
}

impl Turn {
    /// Creates a turn of which only these calls are known.
    pub fn of_calls(number: usize, calls: Vec<Call>, answer_form: AnswerForm) -> Self {
        Self {
            number,
            calls,
            answered_count: 0,
            abandoned: Vec::new(),
            answer_form,
            ending: ResponseEnding::Complete,
            broken_from: None,
            started_positions: Vec::new(),
            in_doubt_positions: Vec::new(),
            unsure_positions: Vec::new(),
            origin: TurnOrigin::default(),
        }
    }

    /// Returns the number of its calls, including those that are left out here.
    pub fn call_count(&self) -> usize {
        self.calls.len() + self.answered_count + self.abandoned.len()
    }

    /// Returns what the input says about the call at `position`.
    pub fn input_state(&self, position: usize) -> InputState {
        if self.in_doubt_positions.contains(&position) {
            InputState::InDoubt
        } else if self.started_positions.contains(&position) {
            InputState::Started
        } else {
            InputState::Open
        }
    }

    /// Renumbers the turn and its calls. Turns are numbered consecutively across all inputs.
    #[must_use]
    pub fn with_number(mut self, number: usize) -> Self {
        self.number = number;
        for call in self.calls.iter_mut().chain(&mut self.abandoned) {
            call.turn = number;
        }
        self
    }
}

/// How the model writes the input of a call, and how the call is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallKind {
    /// As a JSON object.
    #[default]
    Function,
    /// As text, for a custom tool of `OpenAI`'s APIs.
    Custom,
}

/// What a model's message asks for: a `tool_use` block, a `tool_calls` entry, a `function_call` item or part, and so on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    /// The number of its turn. Every agent counts its turns from 0.
    pub turn: usize,
    /// Counted from 0 among all calls of the turn.
    pub position: usize,
    /// The id from the input. A missing id is derived from turn, position, name, and input, so it is the same on every
    /// run.
    pub id: String,
    /// Its id came as a number, and goes back as one.
    pub has_number_id: bool,
    /// How its input was written.
    pub kind: CallKind,
    /// The requested name, which may not be the name of any tool. The calls of a turn share it.
    pub name: Arc<str>,
    /// The input, or why it is invalid.
    pub input: Result<Input, Box<InvalidInput>>,
    /// The call of the agent that made this call, or `None` if the call comes from the input.
    #[serde(skip)]
    pub parent: Option<Arc<CallRef>>,
}

/// Identifies the call that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallRef {
    /// The number of its turn.
    pub turn: usize,
    /// Its position in the turn.
    pub position: usize,
    /// Its id.
    pub tool_use_id: String,
    /// The requested name.
    pub tool_name: Arc<str>,
    /// The number of its batch in the turn, if it has one.
    pub batch: Option<usize>,
    /// The call of the agent that made this call, or `None` if the call comes from the input.
    pub parent: Option<Arc<CallRef>>,
}

impl CallRef {
    /// Creates a reference to `call`, which runs in `batch`.
    pub fn new(call: &Call, batch: Option<usize>) -> Self {
        Self {
            turn: call.turn,
            position: call.position,
            tool_use_id: call.id.clone(),
            tool_name: Arc::clone(&call.name),
            batch,
            parent: call.parent.clone(),
        }
    }

    /// Returns the key that distinguishes this call from every other call of the run.
    pub fn key(&self) -> CallKey {
        CallKey {
            turn: self.turn,
            position: self.position,
            parent: self.parent.clone(),
        }
    }

    /// Returns the agent calls that this call is nested in, the outermost last.
    pub fn ancestors(&self) -> impl Iterator<Item = &CallRef> {
        std::iter::successors(self.parent.as_deref(), |call| call.parent.as_deref())
    }

    /// Returns the call of the input that led to this one: itself, or the outermost agent's.
    pub fn outermost(&self) -> &CallRef {
        self.ancestors().last().unwrap_or(self)
    }

    /// Returns its turn and position, followed by those of the agent calls that it is nested in.
    pub fn path(&self) -> CallPath {
        std::iter::once(self)
            .chain(self.ancestors())
            .map(|call| (call.turn, call.position))
            .collect()
    }
}

/// Identifies a call within a run: its turn and position, and the agent call it is nested in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallKey {
    turn: usize,
    position: usize,
    parent: Option<Arc<CallRef>>,
}

/// An id has at least this many letters and digits in one piece if it is random.
const MIN_RANDOM_CHARS: usize = 16;

/// At least this many of them are different.
const MIN_DIFFERENT_CHARS: usize = 9;

/// How toolq's own ids begin, which it gives to calls that have none.
pub(crate) const GENERATED_ID_PREFIX: &str = "toolq_";

/// Returns whether toolq made this id for a call that had none.
pub fn is_generated_id(id: &str) -> bool {
    let digits = id.strip_prefix(GENERATED_ID_PREFIX);
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Returns whether an id was drawn at random, by its look: a long piece of different letters and digits that isn't part of the
/// name of its `tool`, or a UUID. No other call has it.
pub fn is_random_id(id: &str, tool: &str) -> bool {
    if is_generated_id(id) {
        return false;
    }
    id.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|piece| is_random_piece(piece) && !tool.contains(piece))
        || uuids_in(id).any(|uuid| is_random_piece(&uuid.replace('-', "")))
}

fn is_random_piece(piece: &str) -> bool {
    let different: HashSet<u8> = piece.bytes().collect();
    piece.len() >= MIN_RANDOM_CHARS
        && different.len() >= MIN_DIFFERENT_CHARS
        && !piece.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the parts of `id` that have the form of a UUID.
fn uuids_in(id: &str) -> impl Iterator<Item = &str> {
    let lengths = [8, 4, 4, 4, 12];
    let has_form = move |text: &&str| {
        let mut groups = text.split('-');
        let fits = |len: &usize| {
            let group = groups.next();
            group.is_some_and(|group| {
                group.len() == *len && group.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
        };
        lengths.iter().all(fits)
    };
    (0..id.len())
        .filter_map(|start| id.get(start..start + 36))
        .filter(has_form)
}

/// A digest of where a call stands. Few bits suffice: a mistake only makes a call look like another that has the same tool and
/// input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, derive_more::Display, Serialize, Deserialize)]
#[display("{}", BASE64URL_NOPAD.encode(_0))]
pub struct ContextDigest([u8; 6]);

impl ContextDigest {
    /// Digests what something is, in parts.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut first = [0; 6];
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        first.copy_from_slice(&hasher.finalize()[..6]);
        Self(first)
    }

    /// Reads a digest as [`Display`](std::fmt::Display) writes it.
    pub fn parse(text: &str) -> Option<Self> {
        BASE64URL_NOPAD
            .decode(text.as_bytes())
            .ok()?
            .try_into()
            .ok()
            .map(Self)
    }
}

/// Where a call stands, as far as its input says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CallContext {
    /// The id of its message, if that is random.
    pub message: Option<ContextDigest>,
    /// What stands before its message, if that is part of a conversation.
    pub before: Option<ContextDigest>,
}

impl CallContext {
    /// The context of a call of a message that has this id.
    pub fn new(message_id: Option<&str>, before: Option<ContextDigest>) -> Self {
        let message = message_id.filter(|id| is_random_id(id, ""));
        Self {
            message: message.map(|id| ContextDigest::of(&[id.as_bytes()])),
            before,
        }
    }

    /// Returns whether a call that stands here is surely another one than a call that looks the same and stands there.
    pub fn differs_from(self, other: Self) -> bool {
        match (self.message, other.message) {
            (Some(message), Some(other)) => message != other,
            _ => {
                matches!((self.before, other.before), (Some(before), Some(other)) if before != other)
            }
        }
    }

    /// Returns whether a call that stands here is surely the one that looks the same and stands there.
    pub fn is_same_place(self, other: Self) -> bool {
        let is_known = |this: Option<ContextDigest>, other| this.is_some() && this == other;
        is_known(self.message, other.message)
            || self.message.zip(other.message).is_none() && is_known(self.before, other.before)
    }
}

/// The trace of a run. Its ids follow from the task and the position of each call, so that a call has the same span in every run of
/// its task.
#[derive(Debug, Clone)]
pub struct TraceContext {
    task: String,
    session: String,
    trace_id: u128,
    parent: Option<Traceparent>,
}

/// The place of a call in a trace, for the program, server or service that does its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTrace {
    /// The span of the call, in the form of the recommendation.
    pub traceparent: String,
    /// What other systems keep in the trace.
    pub tracestate: Option<String>,
}

/// Turn and position of a call, followed by those of the agent's call that made it, and so on.
pub type CallPath = Vec<(usize, usize)>;

impl TraceContext {
    /// The trace of the session `session` of a task. Without a parent, the task is a trace of its own.
    pub fn new(task: &str, session: &str, parent: Option<Traceparent>) -> Self {
        let own_id = || {
            let digest = Sha256::digest(task);
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&digest[..16]);
            u128::from_be_bytes(bytes).max(1)
        };
        Self {
            task: task.to_owned(),
            session: session.to_owned(),
            trace_id: parent
                .as_ref()
                .map_or_else(own_id, |parent| parent.trace_id),
            parent,
        }
    }

    /// Returns the id of the trace.
    pub fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// Returns the id of the session.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Returns whether the trace is sampled: whether the process that began it wants its spans.
    pub fn is_sampled(&self) -> bool {
        self.parent.as_ref().is_none_or(|parent| parent.is_sampled)
    }

    /// Returns the `tracestate` of the trace, if it has one.
    pub fn tracestate(&self) -> Option<&str> {
        self.parent.as_ref()?.tracestate.as_deref()
    }

    /// Returns the span within which toolq was started.
    pub fn parent_span_id(&self) -> Option<u64> {
        Some(self.parent.as_ref()?.span_id)
    }

    /// Returns the span of the session.
    pub fn session_span_id(&self) -> u64 {
        self.span_id("session", &[&self.session])
    }

    /// Returns the span of a call.
    pub fn call_span_id(&self, path: &[(usize, usize)]) -> u64 {
        self.span_id("call", &[&path_text(path)])
    }

    /// Returns the span of the agent that works on a call.
    pub fn agent_span_id(&self, path: &[(usize, usize)]) -> u64 {
        self.span_id("agent", &[&path_text(path)])
    }

    /// Returns the span of a model's response to that agent, by the agent's turn.
    pub fn response_span_id(&self, path: &[(usize, usize)], turn: usize) -> u64 {
        self.span_id("response", &[&path_text(path), &turn.to_string()])
    }

    /// Returns the span that a call belongs to: that of the agent that made it, or the session's.
    pub fn parent_of_call(&self, path: &[(usize, usize)]) -> u64 {
        match path {
            [_, agent @ ..] if !agent.is_empty() => self.agent_span_id(agent),
            _ => self.session_span_id(),
        }
    }

    /// Returns what a call passes on to what it runs.
    pub fn for_call(&self, call: &CallRef) -> CallTrace {
        let parent = Traceparent {
            trace_id: self.trace_id,
            span_id: self.call_span_id(&call.path()),
            is_sampled: self.is_sampled(),
            tracestate: None,
        };
        CallTrace {
            traceparent: parent.to_string(),
            tracestate: self.tracestate().map(str::to_owned),
        }
    }

    fn span_id(&self, kind: &str, parts: &[&str]) -> u64 {
        let mut hasher = Sha256::new_with_prefix(&self.task);
        for part in [kind].iter().chain(parts) {
            hasher.update(b"\0");
            hasher.update(part);
        }
        let digest = hasher.finalize();
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&digest[..8]);
        u64::from_be_bytes(bytes).max(1)
    }
}

fn path_text(path: &[(usize, usize)]) -> String {
    path.iter()
        .map(|(turn, position)| format!("{turn}.{position}"))
        .collect::<Vec<_>>()
        .join("/")
}

/// The longest `tracestate` that is passed on, in bytes. Every participant is expected to propagate that much.
const MAX_TRACESTATE_BYTES: usize = 512;

/// The span in which toolq was started, according to `TRACEPARENT` and `TRACESTATE`.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("00-{trace_id:032x}-{span_id:016x}-{:02x}", u8::from(*is_sampled))]
pub struct Traceparent {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(super) is_sampled: bool,
    /// What other systems keep in the trace, passed on unchanged.
    pub(super) tracestate: Option<String>,
}

impl Traceparent {
    /// Reads the value of a `traceparent`, and of the `tracestate` that belongs to it. An ill-formed `tracestate` is ignored.
    ///
    /// Returns `None` for an ill-formed `traceparent`.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut fields = traceparent.trim().split('-');
        let version = parse_hex(fields.next()?, 2)?;
        let trace_id = parse_hex(fields.next()?, 32)?;
        let span_id = parse_hex(fields.next()?, 16)?;
        let flags = parse_hex(fields.next()?, 2)?;
        // A later version may have more fields.
        let is_complete = version > 0 || fields.next().is_none();
        if version == 0xff || trace_id == 0 || span_id == 0 || !is_complete {
            return None;
        }
        Some(Self {
            trace_id,
            span_id: u64::try_from(span_id).ok()?,
            is_sampled: flags & 1 == 1,
            tracestate: tracestate
                .filter(|state| is_tracestate(state))
                .map(str::to_owned),
        })
    }
}

/// Reads as many lowercase hexadecimal digits.
fn parse_hex(digits: &str, count: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_well_formed = digits.len() == count && digits.bytes().all(is_digit);
    let digits = is_well_formed.then_some(digits)?;
    u128::from_str_radix(digits, 16).ok()
}

/// Returns whether this is a list of `key=value` that every participant can propagate.
fn is_tracestate(state: &str) -> bool {
    let is_member = |member: &str| member.trim().is_empty() || member.contains('=');
    !state.trim().is_empty()
        && state.len() <= MAX_TRACESTATE_BYTES
        && state.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && state.split(',').all(is_member)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_differ_by_what_they_are_of_and_not_by_the_session() {
        let first = TraceContext::new("task", "one", None);
        let second = TraceContext::new("task", "two", None);
        assert_eq!(first.trace_id(), second.trace_id());
        assert_eq!(
            first.call_span_id(&[(0, 1)]),
            second.call_span_id(&[(0, 1)])
        );
        assert_ne!(first.session_span_id(), second.session_span_id());
        let ids = [
            first.session_span_id(),
            first.call_span_id(&[(0, 1)]),
            first.call_span_id(&[(1, 0)]),
            first.call_span_id(&[(0, 1), (0, 0)]),
            first.agent_span_id(&[(0, 1)]),
            first.response_span_id(&[(0, 1)], 0),
            first.response_span_id(&[(0, 1)], 1),
        ];
        for (index, id) in ids.iter().enumerate() {
            assert!(!ids[..index].contains(id), "{index}");
        }
        assert_eq!(first.parent_of_call(&[(0, 1)]), first.session_span_id());
        assert_eq!(
            first.parent_of_call(&[(2, 0), (0, 1)]),
            first.agent_span_id(&[(0, 1)])
        );
    }

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_as_it_is_written() {
        let parent = Traceparent::parse(PARENT, Some("vendor=a,other=b")).unwrap();
        assert_eq!(parent.to_string(), PARENT);
        assert_eq!(parent.tracestate.as_deref(), Some("vendor=a,other=b"));
        let unsampled = PARENT.replace("-01", "-00");
        assert!(!Traceparent::parse(&unsampled, None).unwrap().is_sampled);
        let later = format!("{}-more", PARENT.replacen("00", "01", 1));
        assert!(Traceparent::parse(&later, None).is_some());
    }

    #[test]
    fn an_ill_formed_traceparent_is_refused() {
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Traceparent::parse(wrong, None), None, "{wrong}");
        }
        let long = format!("a={}", "x".repeat(MAX_TRACESTATE_BYTES));
        for state in ["", "no pairs", "a=\u{7}", &long] {
            let parent = Traceparent::parse(PARENT, Some(state)).unwrap();
            assert_eq!(parent.tracestate, None, "{state}");
        }
    }
}
