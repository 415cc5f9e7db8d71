//! Where a stream has the inputs of its calls, and under which ids.

use crate::transcript::stream::decoder::tests::server_habits::{
    anthropic_message, call_chunk, call_start, chunk, input_piece, read_events,
};

/// A response with these events of one item.
fn response(events: &[&str]) -> Vec<String> {
    let created = r#"{"type":"response.created","response":{"id":"r"}}"#;
    let completed = r#"{"type":"response.completed","response":{"id":"r","output":[]}}"#;
    let all = [&[created], events, &[completed]].concat();
    all.into_iter().map(str::to_owned).collect()
}

/// The event of an item that is a call with these members.
fn item(event: &str, members: &str) -> String {
    format!(
        r#"{{"type":"response.output_item.{event}","output_index":0,"item":{{"type":"function_call","id":"i","call_id":"a","name":"n"{members}}}}}"#
    )
}

/// A piece of its input.
fn item_piece(event: &str, members: &str) -> String {
    format!(
        r#"{{"type":"response.function_call_arguments.{event}","output_index":0,"item_id":"i"{members}}}"#
    )
}

/// A chat completion with these entries of `tool_calls`, one in each chunk.
fn completion(entries: &[&str]) -> Vec<String> {
    let chunks = entries.iter().map(|entry| call_chunk("c", entry));
    let end = chunk("c", "", r#","finish_reason":"tool_calls""#);
    chunks.chain([end]).collect()
}

/// A response of Gemini with this part.
fn gemini(part: &str) -> Vec<String> {
    vec![format!(
        r#"{{"candidates":[{{"content":{{"parts":[{part}]}},"finishReason":"STOP"}}]}}"#
    )]
}

/// One key in place of the usual one can be understood in one way.
#[test]
fn an_input_under_another_key_is_that_of_the_call() {
    let start = call_start(
        r#""index":0,"#,
        r#""id":"a","name":"n","arguments":{"x":1}"#,
    );
    let parameters = r#","parameters":{"x":1}"#;
    let named = r#""index":0,"id":"a","function":{"name":"n"}"#;
    for events in [
        anthropic_message(&[&start]),
        response(&[&item("added", parameters), &item("done", parameters)]),
        response(&[&item("done", parameters)]),
        response(&[
            &item("added", ""),
            &item_piece("done", r#","input":"{\"x\":1}""#),
        ]),
        completion(&[r#""index":0,"id":"a","function":{"name":"n","parameters":{"x":1}}"#]),
        completion(&[r#""index":0,"id":"a","function":{"name":"n"},"arguments":"{\"x\":1}""#]),
        completion(&[
            named,
            r#""index":0,"arguments":"{\"x\"""#,
            r#""index":0,"arguments":":1}""#,
        ]),
        gemini(r#"{"functionCall":{"id":"a","name":"n","parameters":{"x":1}}}"#),
        gemini(r#"{"functionCall":{"id":"a","name":"n"},"args":{"x":1}}"#),
    ] {
        assert_eq!(
            read_events(&events).as_deref(),
            Ok(r#"a n {"x":1}"#),
            "{events:?}"
        );
    }
}

/// What may be a piece of an input is never lost.
#[test]
fn a_piece_under_an_unknown_key_breaks_the_message() {
    let start = call_start(r#""index":0,"#, r#""id":"a","name":"n","input":{}"#);
    let delta = |members: &str| {
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta"{members}}}}}"#
        )
    };
    let named = r#""index":0,"id":"a","function":{"name":"n","arguments":""}"#;
    for events in [
        anthropic_message(&[&start, &delta(r#","json":"{\"x\":1}""#)]),
        anthropic_message(&[&start, &delta(r#","input":"{","arguments":"{""#)]),
        response(&[&item("added", ""), &item_piece("delta", r#","text":"{}""#)]),
        completion(&[
            named,
            r#""index":0,"function":{"arguments_delta":"{\"x\":1}"}"#,
        ]),
        completion(&[named, r#""index":0,"function":{"input":"{","args":"{"}"#]),
    ] {
        let error = read_events(&events).unwrap_err();
        assert!(
            error.contains("isn't where it should be"),
            "{error}: {events:?}"
        );
    }
    // A call that comes whole is refused by itself.
    let both = r#""args_json":"{\"x\":1}""#;
    for events in [
        anthropic_message(&[&call_start(
            r#""index":0,"#,
            &format!(r#""id":"a","name":"n",{both}"#),
        )]),
        response(&[&item("done", &format!(",{both}"))]),
        gemini(&format!(
            r#"{{"functionCall":{{"id":"a","name":"n",{both}}}}}"#
        )),
    ] {
        let read = read_events(&events).unwrap();
        assert!(
            read.contains(r#"under the key "args_json" may be it"#),
            "{read}"
        );
    }
}

/// The beginning of a call may have its whole input, which pieces or the same beginning may repeat, but not contradict.
#[test]
fn a_call_has_one_input() {
    let start = |input: &str| {
        call_start(
            r#""index":0,"#,
            &format!(r#""id":"a","name":"n","input":{input}"#),
        )
    };
    let (one, two) = (start(r#"{"x":1}"#), start(r#"{"x":2}"#));
    let piece = |piece: &str| input_piece(r#""index":0,"#, piece);
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    let added = |value: &str| item("added", &format!(r#","arguments":"{{\"x\":{value}}}""#));
    let delta = |value: &str| item_piece("delta", &format!(r#","delta":"{{\"x\":{value}}}""#));
    let done = |value: &str| item("done", &format!(r#","arguments":"{{\"x\":{value}}}""#));
    for (events, is_one) in [
        (anthropic_message(&[&one, &piece("{\"x\": 1}"), stop]), true),
        (anthropic_message(&[&one, &one, stop]), true),
        (anthropic_message(&[&start("{}"), &one, stop]), true),
        (
            anthropic_message(&[&start(r#""{\"x\":1}""#), &piece("{\"x\":1}"), stop]),
            true,
        ),
        (
            anthropic_message(&[&one, &piece("{\"x\": 2}"), stop]),
            false,
        ),
        (anthropic_message(&[&one, &piece("{\"x\": 2}")]), false),
        (anthropic_message(&[&one, &two, stop]), false),
        (response(&[&added("1"), &delta("1"), &done("1")]), true),
        (response(&[&added("1"), &added("1"), &done("1")]), true),
        (response(&[&added("1"), &delta("2"), &done("2")]), false),
        (response(&[&added("1"), &delta("2"), &done("1")]), false),
        (response(&[&added("1"), &delta("2")]), false),
        (response(&[&added("1"), &added("2"), &done("1")]), false),
    ] {
        match read_events(&events) {
            Ok(calls) => assert!(is_one && calls.contains("1}"), "{calls}: {events:?}"),
            Err(error) => assert!(!is_one && error.contains("input"), "{error}: {events:?}"),
        }
    }
}

/// The index says whose a piece is. An id that says nothing is none.
#[test]
fn a_blank_id_says_nothing() {
    for id in [r#""null""#, r#""""#, r#"" ""#, "null"] {
        let begin = |index: usize, id: &str| {
            format!(r#""index":{index},"id":"{id}","function":{{"name":"n","arguments":""}}"#)
        };
        let go_on = |index: usize| {
            format!(
                r#""index":{index},"id":{id},"function":{{"name":"","arguments":"{{\"x\":{index}}}"}}"#
            )
        };
        let events = completion(&[&begin(0, "a"), &begin(1, "b"), &go_on(0), &go_on(1)]);
        let read = read_events(&events);
        assert_eq!(read.as_deref(), Ok(r#"a n {"x":0}, b n {"x":1}"#), "{id}");
    }
}

/// The same id in another chunk of the call leads to it as before; another one that several calls have yields to the index.
#[test]
fn an_alias_yields_to_the_index() {
    let begin = |index: usize, id: &str| {
        format!(r#""index":{index},"id":"{id}","function":{{"name":"n","arguments":""}}"#)
    };
    let go_on = |index: usize| {
        format!(r#""index":{index},"id":"-","function":{{"arguments":"{{\"x\":{index}}}"}}"#)
    };
    let events = completion(&[&begin(0, "a"), &begin(1, "b"), &go_on(0), &go_on(1)]);
    let read = read_events(&events);
    assert_eq!(read.as_deref(), Ok(r#"a n {"x":0}, b n {"x":1}"#));
    // The id of another call contradicts the index.
    let events = completion(&[&begin(0, "a"), &begin(1, "b"), &go_on(0).replace('-', "b")]);
    assert!(
        read_events(&events)
            .unwrap_err()
            .contains("belongs to no call")
    );
}
