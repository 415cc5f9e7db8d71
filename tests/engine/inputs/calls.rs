//! The calls of an input: which still need a result, and their ids, names and inputs.

use toolq_core::json::InvalidInput;
use toolq_core::transcript::{InputError, InputSource, Recording};
use toolq_core::types::ResponseEnding;

use super::shapes::{CHAT_CALL, FUNCTION_CALL_ITEM, TOOL_USE};
use super::{MAX_DOCUMENT_BYTES, open_calls, read};

/// However many there are, each turn comes once and in order, until one is refused or can't be read any more.
#[test]
fn turns_are_visited_in_order() {
    let visit = |recording: &Recording, refused: usize| {
        let mut visited = Vec::new();
        let result = recording.for_each_turn(false, |turn| {
            let number = turn.number;
            visited.push(number);
            (number != refused).then_some(()).ok_or(Refusal(None))
        });
        assert_eq!(visited, (0..visited.len()).collect::<Vec<_>>());
        (visited.len(), result)
    };
    for count in [1, 7, 8, 9, 16, 17, 100] {
        let recording = read(format!("[{TOOL_USE}]\n").repeat(count)).unwrap();
        assert!(matches!(visit(&recording, count), (visited, Ok(())) if visited == count));
        for refused in 0..count {
            let (visited, result) = visit(&recording, refused);
            assert!(matches!(result, Err(Refusal(None))));
            assert_eq!(visited, refused + 1);
        }
    }
    let mut file = tempfile::tempfile().unwrap();
    let line = format!("[{TOOL_USE}]\n");
    std::io::Write::write_all(&mut file, line.repeat(100).as_bytes()).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let source = InputSource::from_file("f", file.try_clone().unwrap()).unwrap();
    let recording = Recording::read(source, None, MAX_DOCUMENT_BYTES).unwrap();
    file.set_len(line.len() as u64 * 50).unwrap();
    let (visited, result) = visit(&recording, usize::MAX);
    assert_eq!(visited, 50);
    assert!(matches!(result, Err(Refusal(Some(_)))));
}

/// Why turns were no longer visited: by the visitor, or because they couldn't be read.
struct Refusal(Option<InputError>);

impl From<InputError> for Refusal {
    fn from(error: InputError) -> Self {
        Self(Some(error))
    }
}

/// A result belongs to the nearest call before it with its id. Calls that have a result still count for positions.
#[test]
fn answered_calls_are_left_out() {
    let block = |id: &str| TOOL_USE.replace("\"a\"", &format!("\"{id}\""));
    let result = |id: &str| format!(r#"{{"type":"tool_result","tool_use_id":"{id}"}}"#);
    let mut lines = 0;
    let mut line = |kind: &str, id: &str, block: &str| {
        lines += 1;
        let role = format!(r#"{{"role":"{kind}","id":"{id}","content":[{block}]}}"#);
        format!(r#"{{"type":"{kind}","uuid":"{lines}","message":{role}}}"#)
    };
    let log = [
        line("assistant", "m1", &block("a")),
        line("assistant", "m2", &block("x")),
        line("user", "", &result("a")),
        line("assistant", "m1", &block("b")),
        line("user", "", &result("x")),
        line("assistant", "m3", &block("a")),
        line("assistant", "m3", &block("y")),
        line("user", "", &result("a")),
    ]
    .join("\n");
    assert_eq!(open_calls(&log), [r#"2.1:y n {"x":1}"#]);
    let recording = read(&log).unwrap();
    assert_eq!(recording.turn(0, false).unwrap().answered_count, 1);
    assert_eq!(recording.turn(0, true).unwrap().calls.len(), 2);
    assert_eq!(recording.turn(1, false).unwrap().answered_count, 1);
}

#[test]
fn calls_after_results_begin_a_new_turn_of_items() {
    let call = |id: &str| FUNCTION_CALL_ITEM.replace("\"a\"", &format!("\"{id}\""));
    let result =
        |id: &str| format!(r#"{{"type":"function_call_output","call_id":"{id}","output":""}}"#);
    let items = [
        call("a"),
        call("b"),
        result("b"),
        result("a"),
        call("c"),
        call("a"),
    ];
    let text = format!("[{}]", items.join(","));
    let calls = open_calls(&text);
    assert_eq!(calls, [r#"1.0:c n {"x":1}"#, r#"1.1:a n {"x":1}"#]);
}

/// Some servers send an empty id for every call. Each call gets an id of its own, as it does in a stream, so they aren't
/// duplicates of each other.
#[test]
fn an_empty_id_of_a_chat_completion_counts_as_missing() {
    let call = r#"{"id":"","type":"function","function":{"name":"n","arguments":"{}"}}"#;
    let message = format!(r#"{{"role":"assistant","tool_calls":[{call},{call}]}}"#);
    let calls = read(&message).unwrap().turn(0, false).unwrap().calls;
    let [one, other] = calls.as_slice() else {
        panic!("{calls:?}")
    };
    assert!(one.id.starts_with("toolq_") && other.id.starts_with("toolq_"));
    assert_ne!(one.id, other.id);
    let nameless = call.replace("\"n\"", "\"\"");
    let message = format!(r#"{{"role":"assistant","tool_calls":[{nameless}]}}"#);
    let calls = read(&message).unwrap().turn(0, false).unwrap().calls;
    assert!(matches!(&calls[0].input, Err(invalid) if **invalid == InvalidInput::MissingName));
}

/// JSON readers disagree on which of two equal keys counts, so a call that has them at any level is rejected.
#[test]
fn a_call_with_a_duplicate_key_is_rejected() {
    for (text, place) in [
        (
            r#"{"type":"tool_use","id":"a","id":"b","name":"n","input":{}}"#,
            "",
        ),
        (
            r#"{"type":"tool_use","id":"a","name":"n","n\u0061me":"rm","input":{}}"#,
            "",
        ),
        (
            r#"{"type":"tool_use","id":"a","name":"n","input":{},"input":{"x":1}}"#,
            "",
        ),
        (
            r#"{"type":"tool_use","id":"a","name":"n","input":{"path":"a","p\u0061th":"b"}}"#,
            "",
        ),
        (
            r#"{"type":"tool_use","id":"a","name":"n","input":{"a":[{"b":{"c":1,"c":1}}]}}"#,
            "/a/0/b",
        ),
        (
            r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"n","name":"rm","arguments":""}}]}"#,
            "",
        ),
        (
            r#"{"type":"function_call","call_id":"a","name":"n","arguments":"{\"x\":1,\"x\":2}"}"#,
            "",
        ),
    ] {
        let turn = read(text).unwrap().turn(0, false).unwrap();
        let input = turn.calls[0].input.as_ref().map_err(|invalid| &**invalid);
        assert!(
            matches!(input, Err(InvalidInput::DuplicateKey { pointer, .. }) if pointer == place),
            "{text}: {input:?}"
        );
    }
    let input = r#"{"a":{"x":1},"b":{"x":1},"c":[{"x":1},{"x":1}]}"#;
    let text = format!(r#"{{"type":"tool_use","id":"a","name":"n","input":{input}}}"#);
    let turn = read(&text).unwrap().turn(0, false).unwrap();
    assert!(turn.calls[0].input.is_ok());
}

/// Ids are passed on verbatim. One that is missing, or says nothing, is generated, the same on every run.
#[test]
fn ids_are_kept_or_made() {
    let long = "x".repeat(10_000);
    for id in ["../x", "a\\nb\\u0000", " x", "é", &long] {
        let text = format!(r#"[{{"type":"tool_use","id":"{id}","name":"n","input":{{}}}}]"#);
        let turn = read(text).unwrap().turn(0, false).unwrap();
        let id: String = serde_json::from_str(&format!("\"{id}\"")).unwrap();
        assert_eq!(turn.calls[0].id, id);
    }
    let bare = r#"{"type":"tool_use","name":"n","input":{}}"#;
    let blank = |id: &str| bare.replacen(',', &format!(r#","id":{id},"#), 1);
    let blanks = ["null", r#""""#, r#"" ""#, r#""null""#].map(blank);
    let text = format!("[{bare},{bare},{}]", blanks.join(","));
    let calls = open_calls(&text);
    assert_eq!(calls, open_calls(&text), "the same on every run");
    assert!(
        calls.iter().all(|call| call.contains(":toolq_")),
        "{calls:?}"
    );
    assert_ne!(calls[0][4..], calls[1][4..], "unique within a turn");
    assert_eq!(
        open_calls(&format!("[{TOOL_USE},{TOOL_USE}]")).len(),
        2,
        "duplicate ids are rejected later, not by the reader"
    );
}

/// An input is passed on exactly as written, or the call says why it is invalid.
#[test]
fn inputs_are_kept_verbatim_or_invalid() {
    let text = r#"{"type":"tool_use","id":"a","name":"n","input": { "n" : 1.0e2, "m":12345678901234567890123 } }"#;
    assert_eq!(
        open_calls(text),
        [r#"0.0:a n { "n" : 1.0e2, "m":12345678901234567890123 }"#]
    );
    for input in ["[]", "\"x\"", "3", r#"{"a":1e400}"#, r#"{"a":"\ud800"}"#] {
        let text = format!(r#"{{"type":"tool_use","id":"a","name":"n","input":{input}}}"#);
        assert_eq!(open_calls(&text), ["0.0:a n !"], "{input}");
    }
    assert_eq!(
        open_calls(r#"{"type":"tool_use","id":"a","name":3,"input":{}}"#),
        ["0.0:a  !"]
    );
}

/// A call in each dialect. `INPUT` is what its object has besides id and name, `AROUND` what the object around that has, and the
/// key is that of inputs.
const CALLS: [(&str, &str); 6] = [
    (r#"{"type":"tool_use","id":"a","name":"n"INPUT}"#, "input"),
    (
        r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"n"INPUT}AROUND}]}"#,
        "arguments",
    ),
    (
        r#"{"type":"function_call","call_id":"a","name":"n"INPUT}"#,
        "arguments",
    ),
    (
        r#"{"role":"model","parts":[{"functionCall":{"id":"a","name":"n"INPUT}AROUND}]}"#,
        "args",
    ),
    (
        r#"{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"n"INPUT}AROUND}]}"#,
        "input",
    ),
    (
        r#"{"model":"m","done":true,"message":{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"n"INPUT}AROUND}]}}"#,
        "arguments",
    ),
];

/// Returns the input of a call with these members, or `!`.
fn input_of(call: &str, input: &str, around: &str) -> String {
    let text = call.replace("INPUT", input).replace("AROUND", around);
    let calls = open_calls(&text);
    let input = calls[0].strip_prefix("0.0:a n ");
    input
        .unwrap_or_else(|| panic!("{text}: {calls:?}"))
        .to_owned()
}

/// An object, or a text that is the JSON of one; nothing at all is no arguments.
#[test]
fn an_input_is_what_can_be_understood_in_one_way_in_every_dialect() {
    for (call, key) in CALLS {
        assert_eq!(input_of(call, "", ""), "{}", "{call}");
        for (value, expected) in [
            (r#"{"x":1.0}"#, r#"{"x":1.0}"#),
            (r#""{\"x\": 1}""#, r#"{"x": 1}"#),
            (r#""\"{\\\"x\\\": 1}\"""#, r#"{"x": 1}"#),
            (r#""""#, "{}"),
            (r#"" ""#, "{}"),
            ("null", "{}"),
            (r#""{""#, "!"),
            (r#""x""#, "!"),
            (r#""\ud800""#, "!"),
            ("[]", "!"),
            ("3", "!"),
        ] {
            let input = format!(r#","{key}":{value}"#);
            assert_eq!(input_of(call, &input, ""), expected, "{call}: {value}");
        }
    }
}

/// Some servers write another key. If it is the only one, there is one way to understand it; and no call runs without what may be
/// its input.
#[test]
fn an_input_under_another_key_is_never_lost() {
    for (call, key) in CALLS {
        for other in [
            "arguments",
            "args",
            "input",
            "kwargs",
            "parameters",
            "params",
        ] {
            let member = |json: &str| format!(r#","{other}":{json}"#);
            let object = member(r#"{"x":1}"#);
            if call.contains("AROUND") {
                assert_eq!(input_of(call, "", &object), r#"{"x":1}"#, "{call}: {other}");
            }
            if other == key {
                continue;
            }
            let with_own = |own: &str| format!(r#","{key}":{own}{object}"#);
            for (input, expected) in [
                (object.clone(), r#"{"x":1}"#),
                (member(r#""{\"x\":1}""#), r#"{"x":1}"#),
                (member("{}"), "{}"),
                (with_own("null"), r#"{"x":1}"#),
                (with_own(r#"{"x":2}"#), r#"{"x":2}"#),
                (with_own("{}"), "!"),
                (member(r#""x""#), "!"),
                (member("[1]"), "!"),
                (format!(r#"{object},"arguments_json":"{{}}""#), r#"{"x":1}"#),
                (format!(r#"{object},"arguments_json":"1""#), "!"),
                (r#","arguments_json":"{\"x\":1}""#.to_owned(), "!"),
            ] {
                assert_eq!(input_of(call, &input, ""), expected, "{call}: {input}");
            }
        }
    }
}

/// If a response ended at its token limit, its last call may be incomplete.
#[test]
fn a_truncated_response_is_marked() {
    let anthropic = |reason: &str, after: &str| {
        format!(r#"{{"role":"assistant","stop_reason":"{reason}","content":[{TOOL_USE}{after}]}}"#)
    };
    let chat = format!(
        r#"{{"choices":[{{"finish_reason":"length","message":{{"tool_calls":[{CHAT_CALL}]}}}}]}}"#
    );
    let items = format!(r#"{{"status":"incomplete","output":[{FUNCTION_CALL_ITEM}]}}"#);
    for (text, cut_off) in [
        (anthropic("max_tokens", ""), true),
        (anthropic("tool_use", ""), false),
        (
            anthropic("max_tokens", r#",{"type":"text","text":"x"}"#),
            false,
        ),
        (chat.clone(), true),
        (chat.replace("length", "tool_calls"), false),
        (items.clone(), true),
        (items.replace("incomplete", "completed"), false),
        (
            items.replace("}]}", r#"},{"type":"message","role":"assistant"}]}"#),
            false,
        ),
    ] {
        assert_eq!(
            read(&text).unwrap().turn(0, false).unwrap().ending == ResponseEnding::CutOff,
            cut_off,
            "{text}"
        );
    }
}

/// A response that was refused or failed may have calls, but they weren't meant to run.
#[test]
fn a_refused_response_is_marked() {
    let anthropic =
        format!(r#"{{"role":"assistant","stop_reason":"refusal","content":[{TOOL_USE}]}}"#);
    let chat = format!(
        r#"{{"choices":[{{"finish_reason":"content_filter","message":{{"tool_calls":[{CHAT_CALL}]}}}}]}}"#
    );
    let message = format!(
        r#"{{"role":"assistant","refusal":"I can't help with that.","tool_calls":[{CHAT_CALL}]}}"#
    );
    let items =
        |rest: &str| format!(r#"{{"object":"response",{rest},"output":[{FUNCTION_CALL_ITEM}]}}"#);
    for text in [
        anthropic.clone(),
        chat.clone(),
        message.clone(),
        items(r#""status":"failed","error":{"code":"server_error","message":"x"}"#),
        items(r#""status":"failed","error":null"#),
        items(r#""status":"cancelled""#),
        items(r#""status":"incomplete","incomplete_details":{"reason":"content_filter"}"#),
    ] {
        let turn = read(&text).unwrap().turn(0, false).unwrap();
        assert_eq!(turn.ending, ResponseEnding::Refused, "{text}");
        assert_eq!(turn.calls.len(), 1, "{text}");
    }
    for text in [
        anthropic.replace("refusal", "tool_use"),
        chat.replace("content_filter", "tool_calls"),
        message.replace("I can't help with that.", ""),
        items(r#""status":"completed","error":null,"incomplete_details":null"#),
    ] {
        let turn = read(&text).unwrap().turn(0, false).unwrap();
        assert_eq!(turn.ending, ResponseEnding::Complete, "{text}");
    }
}
