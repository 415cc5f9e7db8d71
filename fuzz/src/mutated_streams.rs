//! Streams that were changed on their way: events dropped, repeated, moved or renumbered, names split or late, inputs in another event.
//! No call runs with a name or an input that differs from what the model sent for it, and none is lost without a word.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolq_core::transcript::{StreamDecoder, StreamEvent};
use toolq_core::types::Call;

use crate::choices::Choices;
use crate::vendor_message::Vendor;

/// Names of which one begins another.
const NAMES: [&str; 4] = ["delete", "delete_draft", "read", "read_all"];

/// Texts in inputs. Each has a letter that a stream may split.
const TEXTS: [&str; 3] = ["a", "é", "\u{1F600}"];

/// Maximum size of a message, in bytes.
const MAX_MESSAGE_BYTES: u64 = 1 << 20;

/// Where events say which block they are about.
const PLACES: [&str; 5] = [
    "/index",
    "/output_index",
    "/item_id",
    "/item/id",
    CHAT_INDEX,
];

const CHAT_INDEX: &str = "/choices/0/delta/tool_calls/0/index";
const CHAT_CALL: &str = "/choices/0/delta/tool_calls/0";

/// What a call asks for: the name of its tool, and its input.
type Request = (String, String);

/// A stream that the first bytes select, changed by the others.
pub fn mutated_streams(data: &[u8]) {
    let mut choices = Choices::new(data);
    let mut stream = SentStream::from_choices(&mut choices);
    let sent = stream.requests();
    let whole = Received::new(&stream.events);
    assert_eq!(whole.ran, sent, "unchanged: {}", stream.text());
    assert!(!whole.has_error, "unchanged: {}", stream.text());
    stream.mutate(&mut choices);
    let received = Received::new(&stream.events);
    let text = stream.text();
    let wrong: Vec<_> = received.ran.difference(&sent).collect();
    assert!(wrong.is_empty(), "{wrong:?} ran, of {sent:?}:\n{text}");
    let is_told = received.has_error || received.answered >= sent.len();
    assert!(
        is_told,
        "{} of {sent:?} were answered:\n{text}",
        received.answered
    );
}

/// A call as the model sent it. Its input is unlike that of all others, or empty.
struct SentCall {
    id: String,
    /// By which pieces refer to it.
    index: usize,
    name: &'static str,
    input: String,
    /// Where the input is split. An empty one isn't sent.
    split: Option<usize>,
    /// Each piece of a chat completion has its id.
    repeats_id: bool,
}

/// The events of a stream.
struct SentStream {
    vendor: Vendor,
    calls: Vec<SentCall>,
    events: Vec<Value>,
}

impl SentStream {
    fn from_choices(choices: &mut Choices<'_>) -> Self {
        let vendor = *choices.pick(&[Vendor::Anthropic, Vendor::Chat, Vendor::Responses]);
        let count = 1 + choices.below(3);
        // Some servers give all calls one index, but then only a piece tells where one begins.
        let has_one_index = vendor == Vendor::Chat && choices.below(4) == 0;
        let repeats_id = choices.flag() && !has_one_index;
        let alternates = choices.flag() && !has_one_index;
        let call = |number: usize| {
            let name = *choices.pick(&NAMES);
            let text = *choices.pick(&TEXTS);
            let input = json!({"to": format!("{text}{number}")}).to_string();
            let ends: Vec<usize> = input.char_indices().map(|(at, _)| at).skip(1).collect();
            let split = *choices.pick(&ends);
            let is_empty = !has_one_index && choices.below(4) == 0;
            SentCall {
                id: format!("call_{number}"),
                index: if has_one_index { 0 } else { number },
                name,
                input: if is_empty { "{}".to_owned() } else { input },
                split: (!is_empty).then_some(split),
                repeats_id,
            }
        };
        let calls: Vec<SentCall> = (0..count).map(call).collect();
        let (first, of_calls, last) = match vendor {
            Vendor::Anthropic => anthropic_events(&calls),
            Vendor::Chat => chat_events(&calls),
            Vendor::Responses => responses_events(&calls),
        };
        let of_calls = if alternates {
            alternate(of_calls)
        } else {
            of_calls.concat()
        };
        let events = [vec![first], of_calls, last].concat();
        Self {
            vendor,
            calls,
            events,
        }
    }

    fn requests(&self) -> BTreeSet<Request> {
        let calls = self.calls.iter();
        calls
            .map(|call| (call.name.to_owned(), call.input.clone()))
            .collect()
    }

    fn text(&self) -> String {
        let lines = self.events.iter().map(Value::to_string);
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Changes the stream. Of the changes that lose something, two together could amount to a stream that says something else, so
    /// there is at most one.
    fn mutate(&mut self, choices: &mut Choices<'_>) {
        // What stands behind the end of a message belongs to another one, except in chat completions.
        let has_end = self.vendor != Vendor::Chat;
        let count = self.events.len() - usize::from(has_end);
        let at = choices.below(count);
        match choices.below(9) {
            0 => self.drop_event(at),
            // Where all calls have one index, nothing tells whose piece was moved.
            1 if !self.calls.iter().skip(1).any(|call| call.index == 0) => {
                let event = self.events.remove(at);
                let to = choices.below(count);
                self.events.insert(to, event);
            }
            2 => self.renumber(at, choices),
            3 => self.events.truncate(at),
            4 => self.change_id(at, choices),
            5 => self.split_name(at, choices),
            6 => self.move_input(choices),
            7 => {
                self.move_input(choices);
                let at = choices.below(self.events.len());
                self.renumber(at, choices);
            }
            _ => {}
        }
        if choices.flag() && !self.events.is_empty() {
            let at = choices.below(self.events.len());
            let event = self.events[at].clone();
            self.events.insert(at, event);
        }
        if choices.flag() {
            let at = choices.below(self.events.len() + 1);
            let events = [json!(null), json!([]), json!({"type": "ping"})];
            self.events.insert(at, choices.pick(&events).clone());
        }
    }

    /// Drops an event, unless nothing else says that there is a call.
    fn drop_event(&mut self, at: usize) {
        let text = self.events[at].to_string();
        let mut empty = self.calls.iter().filter(|call| call.split.is_none());
        if !empty.any(|call| text.contains(&call.id)) {
            self.events.remove(at);
        }
    }

    /// Lets an event be about another block, or about none that it names.
    fn renumber(&mut self, at: usize, choices: &mut Choices<'_>) {
        let other = choices.below(5);
        let event = &mut self.events[at];
        let places = PLACES.iter().filter(|place| event.pointer(place).is_some());
        let places: Vec<&str> = places.copied().collect();
        if places.is_empty() {
            return;
        }
        let place = *choices.pick::<&str>(&places);
        let place = event.pointer_mut(place).unwrap();
        *place = match (&*place, choices.flag()) {
            (_, true) => Value::Null,
            (Value::String(_), false) => json!(format!("item_{other}")),
            (_, false) => json!(other),
        };
    }

    /// Gives a piece of a call an id: a new one, or that of another call.
    fn change_id(&mut self, at: usize, choices: &mut Choices<'_>) {
        let id = json!(format!("call_{}", choices.below(5)));
        if let Some(Value::Object(call)) = self.events[at].pointer_mut(CHAT_CALL) {
            call.insert("id".to_owned(), id);
        }
    }

    /// Sends a part of a name later, or all of it.
    fn split_name(&mut self, at: usize, choices: &mut Choices<'_>) {
        let event = &mut self.events[at];
        let place = format!("{CHAT_CALL}/function/name");
        let Some(name) = event.pointer(&place).and_then(Value::as_str) else {
            return;
        };
        let (first, rest) = name.split_at(choices.below(name.len()));
        let (first, rest) = (first.to_owned(), rest.to_owned());
        let index = event.pointer(CHAT_INDEX).cloned();
        if let Some(name) = event.pointer_mut(&place) {
            *name = json!(first);
        }
        let later = chat_chunk(&json!({"index": index, "function": {"name": rest}}), None);
        self.events.insert(at + 1, later);
    }

    /// Sends the whole input of a call in one event, and in no other.
    fn move_input(&mut self, choices: &mut Choices<'_>) {
        let number = choices.below(self.calls.len());
        let mut calls = self.calls.iter().enumerate();
        if calls.any(|(number, call)| call.index != number) {
            return;
        }
        let (input, id) = (self.calls[number].input.clone(), &self.calls[number].id);
        let parsed: Value = serde_json::from_str(&input).unwrap();
        match self.vendor {
            Vendor::Anthropic => {
                let is_piece = |event: &Value| {
                    event["index"] == json!(number) && event["type"] == json!("content_block_delta")
                };
                self.events.retain(|event| !is_piece(event));
                let start = self.events.iter_mut();
                let start = start.filter(|event| event["content_block"]["id"] == json!(id));
                start.for_each(|start| start["content_block"]["input"] = parsed.clone());
            }
            Vendor::Chat => {
                let of_call = |event: &Value| event.pointer(CHAT_INDEX) == Some(&json!(number));
                let name = format!("{CHAT_CALL}/function/name");
                let is_start = |event: &Value| event.pointer(&name).is_some();
                self.events
                    .retain(|event| !of_call(event) || is_start(event));
                let whole = if choices.flag() { parsed } else { json!(input) };
                let start = self.events.iter_mut().find(|event| of_call(event));
                let call = start.and_then(|start| start.pointer_mut(CHAT_CALL));
                call.unwrap()["function"]["arguments"] = whole;
            }
            Vendor::Responses => self.move_responses_input(number, choices.below(4)),
        }
    }

    /// Leaves the input of a call only in one of the events that may have it.
    fn move_responses_input(&mut self, number: usize, kept: usize) {
        let input = json!(self.calls[number].input);
        let of_call = |event: &Value| event["output_index"] == json!(number);
        let kinds = [
            "output_item.added",
            "function_call_arguments.done",
            "output_item.done",
        ];
        let is = |event: &Value, kind: &str| event["type"] == json!(format!("response.{kind}"));
        self.events.retain(|event| {
            let is_kept = kinds.get(kept).is_some_and(|kind| is(event, kind));
            !of_call(event) || is_kept || is(event, kinds[0])
        });
        for event in &mut self.events {
            if of_call(event) && is(event, kinds[0]) && kept == 0 {
                event["item"]["arguments"] = input.clone();
            }
            if kept < 3 && is(event, "completed") {
                event["response"]["output"] = json!([]);
            }
        }
    }
}

/// The first event of a message, those of each call, and the last ones.
type MessageEvents = (Value, Vec<Vec<Value>>, Vec<Value>);

/// Merges the events of calls that arrive at the same time.
fn alternate(of_calls: Vec<Vec<Value>>) -> Vec<Value> {
    let mut rest: Vec<_> = of_calls.into_iter().map(Vec::into_iter).collect();
    let rounds = std::iter::from_fn(|| {
        let round: Vec<Value> = rest.iter_mut().filter_map(Iterator::next).collect();
        (!round.is_empty()).then_some(round)
    });
    rounds.flatten().collect()
}

fn anthropic_events(calls: &[SentCall]) -> MessageEvents {
    let of_call = |(index, call): (usize, &SentCall)| {
        let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        let pieces = call.pieces().into_iter().map(|piece| {
            let delta = json!({"type": "input_json_delta", "partial_json": piece});
            json!({"type": "content_block_delta", "index": index, "delta": delta})
        });
        let stop = json!({"type": "content_block_stop", "index": index});
        [start].into_iter().chain(pieces).chain([stop]).collect()
    };
    (
        json!({"type": "message_start", "message": {"id": "m", "role": "assistant"}}),
        calls.iter().enumerate().map(of_call).collect(),
        vec![
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            json!({"type": "message_stop"}),
        ],
    )
}

fn chat_events(calls: &[SentCall]) -> MessageEvents {
    let of_call = |call: &SentCall| {
        let SentCall { id, index, .. } = call;
        let function = json!({"name": call.name, "arguments": ""});
        let start = json!({"index": index, "id": id, "type": "function", "function": function});
        let pieces = call.pieces().into_iter().map(|piece| {
            let mut piece = json!({"index": index, "function": {"arguments": piece}});
            if call.repeats_id {
                piece["id"] = json!(id);
            }
            chat_chunk(&piece, None)
        });
        let start = chat_chunk(&start, None);
        [start].into_iter().chain(pieces).collect()
    };
    let text = json!({"index": 0, "delta": {"role": "assistant", "content": ""}});
    let end = json!({"index": 0, "delta": {}, "finish_reason": "tool_calls"});
    (
        json!({"id": "c", "choices": [text]}),
        calls.iter().map(of_call).collect(),
        vec![json!({"id": "c", "choices": [end]})],
    )
}

fn chat_chunk(call: &Value, reason: Option<&str>) -> Value {
    let choice = json!({"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": reason});
    json!({"id": "c", "choices": [choice]})
}

fn responses_events(calls: &[SentCall]) -> MessageEvents {
    let item = |number: usize, arguments: &str| {
        let SentCall { id, name, .. } = &calls[number];
        json!({"type": "function_call", "id": format!("item_{number}"), "call_id": id, "name": name, "arguments": arguments})
    };
    let of_call = |(index, call): (usize, &SentCall)| {
        let event = |kind: &str, key: &str, value: Value| {
            let kind = format!("response.{kind}");
            let mut event = json!({"type": kind, "output_index": index, key: value});
            if key != "item" {
                event["item_id"] = json!(format!("item_{index}"));
            }
            event
        };
        let added = event("output_item.added", "item", item(index, ""));
        let pieces = call.pieces().into_iter();
        let pieces =
            pieces.map(|piece| event("function_call_arguments.delta", "delta", json!(piece)));
        let input = json!(call.input);
        let input = event("function_call_arguments.done", "arguments", input);
        let done = event("output_item.done", "item", item(index, &call.input));
        let events = [added].into_iter().chain(pieces);
        events.chain([input, done]).collect()
    };
    let items = calls.iter().enumerate();
    let output: Vec<Value> = items
        .clone()
        .map(|(number, call)| item(number, &call.input))
        .collect();
    let response = json!({"id": "r", "status": "completed", "output": output});
    (
        json!({"type": "response.created", "response": {"id": "r"}}),
        items.map(of_call).collect(),
        vec![json!({"type": "response.completed", "response": response})],
    )
}

impl SentCall {
    fn pieces(&self) -> Vec<&str> {
        let pieces = self.split.map(|split| self.input.split_at(split));
        pieces.map_or_else(Vec::new, |(first, rest)| vec![first, rest])
    }
}

/// What a program that runs calls as soon as it may makes of a stream.
struct Received {
    /// What ran, or could have.
    ran: BTreeSet<Request>,
    /// Number of calls that get a result, whether they ran or not.
    answered: usize,
    /// Something was reported.
    has_error: bool,
}

impl Received {
    fn new(events: &[Value]) -> Self {
        let mut decoder = StreamDecoder::new("stream", None, MAX_MESSAGE_BYTES);
        for event in events {
            decoder.push(format!("data: {event}\n\n").as_bytes());
        }
        decoder.finish();
        let mut received = Self {
            ran: BTreeSet::new(),
            answered: 0,
            has_error: false,
        };
        let mut broken_from = None;
        for event in decoder {
            match event {
                StreamEvent::CallComplete(call) => {
                    received.answered += 1;
                    let is_certain = broken_from.is_none_or(|first| call.position < first);
                    received
                        .ran
                        .extend(request_of(&call).filter(|_| is_certain));
                }
                StreamEvent::Broken { first, .. } => {
                    broken_from = Some(first);
                    received.has_error = true;
                }
                StreamEvent::MessageEnd { .. } => broken_from = None,
                StreamEvent::Aborted {
                    unfinished_calls, ..
                } => {
                    received.answered += unfinished_calls.len();
                    received.has_error = true;
                }
                StreamEvent::CallStarted { .. } | StreamEvent::PartialInput(_) => {}
            }
        }
        received
    }
}

/// Returns what a call asks for, if it can run.
fn request_of(call: &Call) -> Option<Request> {
    let input = call.input.as_ref().ok()?;
    let name = Some(call.name.to_string()).filter(|name| !name.is_empty());
    Some((name?, input.text().to_owned()))
}
