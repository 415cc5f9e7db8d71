//! Each call that a server has sent gets a result, wherever it stands, and nothing else does.

use crate::transcript::stream::decoder::tests::server_habits::{
    anthropic_message, call_chunk, call_start, chunk, stream_text,
};
use crate::transcript::stream::{StreamDecoder, StreamEvent, collect_turns};

fn decode(events: &[impl AsRef<str>]) -> StreamDecoder {
    let mut stream = StreamDecoder::new("stream", None, 1 << 20);
    stream.keep_messages();
    stream.push(stream_text(events).as_bytes());
    stream.finish();
    stream
}

/// Returns the ids of the calls, with `!` behind those that don't run and `|` between messages, and what is wrong.
fn results(events: &[impl AsRef<str>]) -> (String, Option<String>) {
    let (turns, error) = collect_turns(decode(events));
    let turns: Vec<String> = turns
        .iter()
        .map(|turn| {
            let is_broken = |position| turn.broken_from.is_some_and(|first| first <= position);
            let mark = |position| if is_broken(position) { "!" } else { "" };
            let calls = turn.calls.iter();
            let ids = calls.map(|call| format!("{}{}", call.id, mark(call.position)));
            ids.collect::<Vec<_>>().join(" ")
        })
        .collect();
    (turns.join("|"), error.map(|error| error.message))
}

fn entry(index: usize, id: &str, arguments: &str) -> String {
    format!(r#""index":{index},"id":"{id}","function":{{"name":"n","arguments":"{arguments}"}}"#)
}

const FINISH: &str = r#","finish_reason":"tool_calls""#;

#[test]
fn a_call_after_the_end_of_its_message_is_answered_and_does_not_run() {
    let call = |id: &str| call_chunk("c", &entry(0, id, "{}"));
    let finish = || chunk("c", "", FINISH);
    let block = |id: &str| {
        call_start(
            r#""index":0,"#,
            &format!(r#""id":"{id}","name":"n","input":{{}}"#),
        )
    };
    let item = |id: &str| {
        format!(
            r#"{{"type":"response.output_item.done","item":{{"type":"function_call","call_id":"{id}","name":"n","arguments":"{{}}"}}}}"#
        )
    };
    let completed = || r#"{"type":"response.completed","response":{"output":[]}}"#.to_owned();
    let done = || "[DONE]".to_owned();
    let message = anthropic_message(&[&block("a")]);
    for (events, expected) in [
        (vec![call("a"), finish(), call("b"), done()], "a|b!"),
        (
            vec![
                call("a"),
                finish(),
                call("b"),
                finish(),
                call("c"),
                finish(),
            ],
            "a|b!|c!",
        ),
        (vec![finish(), call("a"), done()], "a!"),
        ([message.clone(), vec![block("b")]].concat(), "a|b!"),
        (
            [
                message.clone(),
                vec![block("b"), r#"{"type":"message_stop"}"#.to_owned()],
                message,
            ]
            .concat(),
            "a|b!|a",
        ),
        (vec![item("a"), completed(), item("b")], "a|b!"),
    ] {
        let (calls, error) = results(&events);
        assert_eq!(calls, expected, "{events:?}");
        let error = error.unwrap();
        assert!(
            error.contains("a call after the end of its message"),
            "{error}"
        );
    }
}

/// A piece may come before the call that it belongs to, but without an id and a name it is none.
#[test]
fn pieces_without_a_call_get_no_result() {
    let piece =
        |index: usize| format!(r#""index":{index},"function":{{"arguments":"{{\"x\":1}}"}}"#);
    for (entries, expected) in [
        (
            vec![entry(0, "a", "{}"), entry(0, "b", ""), piece(1)],
            "a b!",
        ),
        (vec![piece(1), entry(0, "a", "{}")], "a!"),
        (
            vec![entry(0, "a", "{}"), piece(1), entry(2, "b", "{}")],
            "a b!",
        ),
        (vec![piece(0)], ""),
    ] {
        let end = [chunk("c", "", FINISH)];
        let events: Vec<String> = entries
            .iter()
            .map(|entry| call_chunk("c", entry))
            .chain(end)
            .collect();
        let (calls, error) = results(&events);
        assert_eq!(calls, expected, "{entries:?}");
        assert!(error.is_some(), "{entries:?}");
        let mut stream = decode(&events);
        let started = stream
            .by_ref()
            .filter(|event| matches!(event, StreamEvent::CallStarted { .. }));
        let calls = calls.split_whitespace().count();
        assert_eq!(started.count(), calls, "{entries:?}");
        let message = stream.take_messages().concat();
        assert_eq!(message.matches(r#""id":"#).count(), calls, "{message}");
        assert!(!message.contains(r#""id":null"#), "{message}");
    }
    // An empty piece says nothing.
    let events = [
        entry(0, "a", "{}"),
        r#""index":1,"function":{"arguments":""}"#.to_owned(),
    ];
    let events = events.map(|entry| call_chunk("c", &entry));
    let events = [&events[..], &[chunk("c", "", FINISH)]].concat();
    assert_eq!(results(&events), ("a".to_owned(), None));
}

/// Whoever waits for the first call of a message learns what broke it before.
#[test]
fn what_breaks_a_message_is_said_once_a_call_has_started() {
    let stray = r#"{"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#;
    let call = call_start(r#""index":0,"#, r#""id":"a","name":"n","input":{}"#);
    let events: Vec<StreamEvent> = decode(&anthropic_message(&[stray, &call])).collect();
    assert!(matches!(
        events[..],
        [
            StreamEvent::CallStarted { .. },
            StreamEvent::Broken { first: 0, .. },
            StreamEvent::CallComplete(_),
            StreamEvent::MessageEnd { .. }
        ]
    ));
}

/// Some servers send a whole message in place of a piece of one, or beside it.
#[test]
fn a_whole_message_in_a_stream_has_its_calls() {
    let calls = r#""tool_calls":[{"id":"a","function":{"name":"n","arguments":"{}"}},{"id":"b","function":{"name":"n","arguments":"{}"}}]"#;
    let message = format!(r#""message":{{"role":"assistant","content":null,{calls}}}"#);
    let event = |members: &str| format!(r#"{{"id":"c","choices":[{{"index":0,{members}}}]}}"#);
    let whole = event(&format!(r#"{message},"finish_reason":"tool_calls""#));
    let beside = event(&format!(
        r#""delta":{{"role":"assistant","content":""}},{message}"#
    ));
    let finish = event(r#""delta":{},"finish_reason":"tool_calls""#);
    for events in [
        vec![whole.clone()],
        vec![whole, "[DONE]".to_owned()],
        vec![beside.clone(), finish.clone()],
        vec![beside.clone(), beside, finish.clone()],
    ] {
        assert_eq!(results(&events), ("a b".to_owned(), None), "{events:?}");
    }
    // What isn't a list of calls is an error, as it is in a document.
    let single = r#"{"id":"a","function":{"name":"n","arguments":"{}"}}"#;
    for calls in [single, "\"x\"", "7"] {
        let events = [
            chunk("c", &format!(r#""tool_calls":{calls}"#), ""),
            finish.clone(),
        ];
        let (ran, error) = results(&events);
        assert_eq!(ran, "", "{calls}");
        assert!(error.unwrap().contains("must be an array"), "{calls}");
    }
}
