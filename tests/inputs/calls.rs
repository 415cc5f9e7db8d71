//! The calls of a recording: which are open, what they are called, what they ask.

use toolq_core::json::InputFault;

use super::shapes::{CHAT_CALL, ITEM, USE};
use super::{calls, read};

/// A result answers the nearest call before it; positions count the calls that are left out.
#[test]
fn answered_calls_are_left_out() {
    let block = |id: &str| USE.replace("\"a\"", &format!("\"{id}\""));
    let result = |id: &str| format!(r#"{{"type":"tool_result","tool_use_id":"{id}"}}"#);
    let line = |kind: &str, id: &str, block: &str| {
        let role = format!(r#"{{"role":"{kind}","id":"{id}","content":[{block}]}}"#);
        format!(r#"{{"type":"{kind}","uuid":"u","message":{role}}}"#)
    };
    let log = [
        line("assistant", "m1", &block("a")),
        line("assistant", "m2", &block("x")),
        line("user", "", &result("a")),
        line("assistant", "m1", &block("b")),
        line("user", "", &result("x")),
        line("assistant", "m3", &block("a")),
    ]
    .join("\n");
    assert_eq!(calls(&log), [r#"0.1:b n {"x":1}"#, r#"2.0:a n {"x":1}"#]);
    let recording = read(&log).unwrap();
    assert_eq!(recording.turn(0, false).unwrap().answered, 1);
    assert_eq!(recording.turn(0, true).unwrap().calls.len(), 2);
    assert_eq!(recording.turn(1, false).unwrap().answered, 1);
}

#[test]
fn a_turn_of_items_ends_where_others_speak() {
    let call = |id: &str| ITEM.replace("\"a\"", &format!("\"{id}\""));
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
    let found = calls(&text);
    assert_eq!(found, [r#"1.0:c n {"x":1}"#, r#"1.1:a n {"x":1}"#]);
}

/// FAULTS 5: where readers differ in which of two keys counts, the call is answered with an error.
#[test]
fn a_call_with_a_key_twice_is_no_call_to_run() {
    for text in [
        r#"{"type":"tool_use","id":"a","id":"b","name":"n","input":{}}"#,
        r#"{"type":"tool_use","id":"a","name":"n","n\u0061me":"rm","input":{}}"#,
        r#"{"type":"tool_use","id":"a","name":"n","input":{},"input":{"x":1}}"#,
        r#"{"type":"tool_use","id":"a","name":"n","input":{"path":"a","path":"b"}}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"n","name":"rm","arguments":""}}]}"#,
        r#"{"type":"function_call","call_id":"a","name":"n","arguments":"{\"x\":1,\"x\":2}"}"#,
    ] {
        let turn = read(text).unwrap().turn(0, false).unwrap();
        let input = &turn.calls[0].input;
        assert!(
            matches!(input, Err(InputFault::DuplicateKey { .. })),
            "{text}: {input:?}"
        );
    }
}

/// FAULTS 6, 7: ids are passed on as they are; one that is missing is made, the same on every run.
#[test]
fn ids_are_kept_or_made() {
    let long = "x".repeat(10_000);
    for id in ["../x", "a\\nb\\u0000", "", "é", &long] {
        let text = format!(r#"[{{"type":"tool_use","id":"{id}","name":"n","input":{{}}}}]"#);
        let turn = read(text).unwrap().turn(0, false).unwrap();
        let id: String = serde_json::from_str(&format!("\"{id}\"")).unwrap();
        assert_eq!(turn.calls[0].id, id);
    }
    let bare = r#"{"type":"tool_use","name":"n","input":{}}"#;
    let odd = r#"{"type":"tool_use","id":7,"name":"n","input":{}}"#;
    let text = format!("[{bare},{bare},{odd}]");
    let found = calls(&text);
    assert_eq!(found, calls(&text), "the same on every run");
    assert!(
        found.iter().all(|call| call.contains(":toolq_")),
        "{found:?}"
    );
    assert_ne!(found[0][4..], found[1][4..], "different in one turn");
    assert_eq!(
        calls(&format!("[{USE},{USE}]")).len(),
        2,
        "the same id twice is not decided here"
    );
}

/// FAULTS 10, 15: an input is passed on as it was written, or says why it is none.
#[test]
fn inputs_are_text_or_a_fault() {
    let text = r#"{"type":"tool_use","id":"a","name":"n","input": { "n" : 1.0e2, "m":12345678901234567890123 } }"#;
    assert_eq!(
        calls(text),
        [r#"0.0:a n { "n" : 1.0e2, "m":12345678901234567890123 }"#]
    );
    for input in [
        "null",
        "[]",
        "\"x\"",
        "3",
        r#"{"a":1e400}"#,
        r#"{"a":"\ud800"}"#,
    ] {
        let text = format!(r#"{{"type":"tool_use","id":"a","name":"n","input":{input}}}"#);
        assert_eq!(calls(&text), ["0.0:a n !"], "{input}");
    }
    assert_eq!(
        calls(r#"{"type":"tool_use","id":"a","name":"n"}"#),
        ["0.0:a n !"]
    );
    assert_eq!(
        calls(r#"{"type":"tool_use","id":"a","name":3,"input":{}}"#),
        ["0.0:a  !"]
    );
    for (arguments, input) in [
        (r#""""#, "{}"),
        (r#"" ""#, "{}"),
        (r#""{\"x\": 1}""#, r#"{"x": 1}"#),
        (r#""{""#, "!"),
        ("null", "!"),
        (r#"{"x":1}"#, r#"{"x":1}"#),
        (r#""\ud800""#, "!"),
    ] {
        let text = format!(
            r#"{{"type":"function_call","call_id":"a","name":"n","arguments":{arguments}}}"#
        );
        assert_eq!(calls(&text), [format!("0.0:a n {input}")], "{arguments}");
    }
}

/// The last call of an answer that ended at a limit is half of what was meant.
#[test]
fn a_cut_off_answer_says_so() {
    let anthropic = |reason: &str, after: &str| {
        format!(r#"{{"role":"assistant","stop_reason":"{reason}","content":[{USE}{after}]}}"#)
    };
    let chat = format!(
        r#"{{"choices":[{{"finish_reason":"length","message":{{"tool_calls":[{CHAT_CALL}]}}}}]}}"#
    );
    let items = format!(r#"{{"status":"incomplete","output":[{ITEM}]}}"#);
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
            read(&text).unwrap().turn(0, false).unwrap().cut_off,
            cut_off,
            "{text}"
        );
    }
}
