//! Which calls a conversation still waits for.

use super::{read, turns};

/// The messages of a conversation in one dialect. `MODEL` calls the tool `n` with the id `ID`, and `RESULT` answers that.
struct Messages {
    model: &'static str,
    result: &'static str,
    person: &'static str,
    /// A request with these messages.
    request: &'static str,
}

const MESSAGES: [Messages; 7] = [
    Messages {
        model: r#"{"role":"assistant","content":[{"type":"tool_use","id":"ID","name":"n","input":{}}]}"#,
        result: r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID","content":"r"}]}"#,
        person: r#"{"role":"user","content":"never mind"}"#,
        request: r#"{"messages":[MESSAGES]}"#,
    },
    Messages {
        model: r#"{"role":"assistant","tool_calls":[{"id":"ID","type":"function","function":{"name":"n","arguments":"{}"}}]}"#,
        result: r#"{"role":"tool","tool_call_id":"ID","content":"r"}"#,
        person: r#"{"role":"user","content":"never mind"}"#,
        request: r#"{"messages":[MESSAGES]}"#,
    },
    Messages {
        model: r#"{"type":"function_call","call_id":"ID","name":"n","arguments":"{}"}"#,
        result: r#"{"type":"function_call_output","call_id":"ID","output":"r"}"#,
        person: r#"{"role":"user","content":"never mind"}"#,
        request: r#"{"input":[MESSAGES]}"#,
    },
    Messages {
        model: r#"{"role":"model","parts":[{"functionCall":{"id":"ID","name":"n","args":{}}}]}"#,
        result: r#"{"role":"user","parts":[{"functionResponse":{"id":"ID","name":"n","response":{"output":"r"}}}]}"#,
        person: r#"{"role":"user","parts":[{"text":"never mind"}]}"#,
        request: r#"{"contents":[MESSAGES]}"#,
    },
    Messages {
        model: r#"{"role":"assistant","content":[{"toolUse":{"toolUseId":"ID","name":"n","input":{}}}]}"#,
        result: r#"{"role":"user","content":[{"toolResult":{"toolUseId":"ID","content":[{"text":"r"}]}}]}"#,
        person: r#"{"role":"user","content":[{"text":"never mind"}]}"#,
        request: r#"{"messages":[MESSAGES]}"#,
    },
    // What other programs log of it.
    Messages {
        model: r#"{"role":"assistant","content":[{"toolUse":{"toolUseId":"ID","name":"n","input":{}}}]}"#,
        result: r#"{"role":"user","content":[{"toolResult":{"toolUseId":"ID","content":[{"text":"r"}]}}]}"#,
        person: r#"{"role":"user","content":"never mind"}"#,
        request: r#"{"messages":[MESSAGES]}"#,
    },
    Messages {
        model: r#"{"role":"assistant","tool_calls":[{"id":"ID","function":{"name":"n","arguments":{}}}]}"#,
        result: r#"{"role":"tool","tool_call_id":"ID","tool_name":"n","content":"r"}"#,
        person: r#"{"role":"user","content":"never mind"}"#,
        request: r#"{"model":"m","messages":[MESSAGES]}"#,
    },
];

/// Returns the ids of the calls that are open and of those that were abandoned, in conversations of `steps` in every dialect, as
/// a request and as lines. A lower-case letter is a call with that id, an upper-case one its result, and `.` what a person says.
fn find_open(steps: &str) -> (String, String) {
    find_open_as(steps, |id| format!("\"{id}\""), |id| format!("\"{id}\""))
}

/// Like [`find_open`], with the ids of calls and of results as this JSON.
fn find_open_as(
    steps: &str,
    call_id: impl Fn(char) -> String,
    result_id: impl Fn(char) -> String,
) -> (String, String) {
    let mut found = Vec::new();
    for messages in &MESSAGES {
        let message = |step: char| match step {
            '.' => messages.person.to_owned(),
            'A'..='Z' => messages
                .result
                .replace("\"ID\"", &result_id(step.to_ascii_lowercase())),
            id => messages.model.replace("\"ID\"", &call_id(id)),
        };
        let all: Vec<String> = steps.chars().map(message).collect();
        let request = messages.request.replace("MESSAGES", &all.join(","));
        for text in [request, all.join("\n")] {
            let recording = read(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            let turns = turns(&recording);
            let open = turns.iter().flat_map(|turn| &turn.calls);
            let abandoned = turns.iter().flat_map(|turn| &turn.abandoned);
            let open: String = open.map(|call| call.id.as_str()).collect();
            let abandoned: String = abandoned.map(|call| call.id.as_str()).collect();
            assert_eq!(recording.abandoned_calls(), abandoned.len(), "{text}");
            found.push(((open, abandoned), text));
        }
    }
    let (first, _) = found[0].clone();
    for (other, text) in found {
        assert_eq!(other, first, "{steps}: {text}");
    }
    first
}

#[test]
fn the_same_calls_are_open_in_every_dialect() {
    for (steps, open, abandoned) in [
        ("a", "a", ""),
        (".a", "a", ""),
        ("aA", "", ""),
        // A person goes on, or the model behind somebody else.
        ("a.", "", "a"),
        ("a.b", "b", "a"),
        ("aA.b", "b", ""),
        ("ab.c", "c", "ab"),
        // Consecutive messages of the model are one request, of which some results may be there.
        ("ab", "ab", ""),
        ("abB", "a", ""),
        ("abA.", "", "b"),
        ("abAcC", "", "b"),
        // A result may come late.
        ("a.bAB", "", ""),
    ] {
        let found = find_open(steps);
        assert_eq!(found, (open.to_owned(), abandoned.to_owned()), "{steps}");
    }
}

/// Some servers number their calls. A number and the text of its digits are the same id.
#[test]
fn a_result_is_found_by_a_number() {
    let number = |id: char| u32::from(id).to_string();
    let text = |id: char| format!("\"{}\"", u32::from(id));
    for (steps, open, abandoned) in [
        ("ab", "9798", ""),
        ("abB", "97", ""),
        ("abBA", "", ""),
        ("aA.b", "98", ""),
    ] {
        let expected = (open.to_owned(), abandoned.to_owned());
        assert_eq!(find_open_as(steps, number, number), expected, "{steps}");
        assert_eq!(find_open_as(steps, number, text), expected, "{steps}");
        assert_eq!(find_open_as(steps, text, number), expected, "{steps}");
    }
}

/// A result without an id is that of the next call of its tool, or else of the next call.
#[test]
fn a_result_without_an_id_is_found_by_tool_and_order() {
    let text = |id: char| format!("\"{id}\"");
    for (steps, open) in [
        ("aA", ""),
        ("aAb", "b"),
        ("aAbA", ""),
        ("abAA", ""),
        ("aA.bA", ""),
    ] {
        let expected = (open.to_owned(), String::new());
        let found = find_open_as(steps, text, |_| "null".to_owned());
        assert_eq!(found, expected, "{steps}");
    }
    let call = |id: &str, name: &str| {
        format!(
            r#"{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":"{{}}"}}}}"#
        )
    };
    let calls = [
        call("a", "f"),
        call("b", "g"),
        call("c", "f"),
        call("d", "g"),
    ]
    .join(",");
    for (results, open) in [
        ("g", "acd"),
        ("gg", "ac"),
        ("fgf", "d"),
        ("-", "bcd"),
        ("f-", "cd"),
    ] {
        let result = |tool: char| match tool {
            '-' => r#"{"role":"tool","content":"r"}"#.to_owned(),
            tool => format!(r#"{{"role":"tool","name":"{tool}","content":"r"}}"#),
        };
        let results: Vec<String> = results.chars().map(result).collect();
        let text = format!(
            r#"[{{"role":"assistant","tool_calls":[{calls}]}},{}]"#,
            results.join(",")
        );
        let turns = turns(&read(&text).unwrap());
        let found: String = turns[0].calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(found, open, "{text}");
    }
    // The id that toolq gave to a call without one leads to it.
    let generated = |_| "\"toolq_0123456789abcdef\"".to_owned();
    let (open, _) = find_open_as("aA", |_| "null".to_owned(), generated);
    assert_eq!(open, "");
    let (open, _) = find_open_as("abAA", |_| "null".to_owned(), generated);
    assert_eq!(open, "");
}

/// Histories are put together from several dialects.
#[test]
fn a_result_in_another_dialect_is_found() {
    let results = [
        r#"{"role":"tool","tool_call_id":"a","content":"r"}"#,
        r#"{"role":"tool_result","toolCallId":"a","content":"r"}"#,
        r#"{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"r"}]}"#,
        r#"{"role":"tool","name":"n","content":"r"}"#,
        r#"{"role":"function","name":"n","content":"r"}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}"#,
        r#"{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"r"}]}}]}"#,
    ];
    for messages in MESSAGES
        .iter()
        .filter(|messages| !messages.request.contains("input"))
    {
        for result in results {
            let [a, b] = ["a", "b"].map(|id| messages.model.replace("ID", id));
            let all = [a, result.to_owned(), b];
            let text = messages.request.replace("MESSAGES", &all.join(","));
            for text in [text, all.join("\n")] {
                let recording = read(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
                let turns = turns(&recording);
                let open = turns.iter().flat_map(|turn| &turn.calls);
                let open: String = open.map(|call| call.id.as_str()).collect();
                assert_eq!((&*open, recording.misplaced_results()), ("b", 0), "{text}");
            }
        }
    }
    let item = r#"{"type":"function_call","id":"fc","call_id":"a","name":"n","arguments":"{}"}"#;
    for result in [
        r#""call_id":"fc""#,
        r#""tool_call_id":"a""#,
        r#""id":"fc_2""#,
    ] {
        let text = format!(r#"[{item},{{"type":"function_call_output",{result},"output":"r"}}]"#);
        assert_eq!(read(&text).unwrap().open_calls(false), 0, "{text}");
    }
}

/// A result that names no call may be that of any call that waits for one.
#[test]
fn calls_that_a_result_may_belong_to_are_in_question_in_every_dialect() {
    for (steps, open, unsure, misplaced) in [
        ("aZ", "a", "a", 1),
        ("abZ", "ab", "ab", 1),
        ("abZA", "b", "b", 1),
        ("abAZ", "b", "b", 1),
        ("aZA", "", "", 1),
        ("aAZ", "", "", 1),
        ("aZ.b", "b", "", 1),
        ("aZb", "b", "", 1),
        // A second result of a call belongs to no other, nor does one before the call.
        ("abAA", "b", "", 0),
        ("Za", "a", "", 1),
    ] {
        for messages in &MESSAGES {
            let message = |step: char| match step {
                '.' => messages.person.to_owned(),
                'A'..='Z' => messages
                    .result
                    .replace("ID", &step.to_lowercase().to_string()),
                id => messages.model.replace("ID", &id.to_string()),
            };
            let all: Vec<String> = steps.chars().map(message).collect();
            let request = messages.request.replace("MESSAGES", &all.join(","));
            for text in [request, all.join("\n")] {
                let recording = read(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
                let turns = turns(&recording);
                let ids = |only_unsure: bool| -> String {
                    let calls = turns.iter().flat_map(|turn| {
                        let is_unsure = |position| turn.unsure_positions.contains(&position);
                        let calls = turn.calls.iter();
                        calls.filter(move |call| !only_unsure || is_unsure(call.position))
                    });
                    calls.map(|call| call.id.as_str()).collect()
                };
                assert_eq!(
                    (&*ids(false), &*ids(true)),
                    (open, unsure),
                    "{steps}: {text}"
                );
                assert_eq!(recording.misplaced_results(), misplaced, "{steps}: {text}");
                let place = recording.misplaced_result();
                assert_eq!(place.is_some(), !unsure.is_empty(), "{steps}: {text}");
                for turn in 0..recording.len() {
                    let turn = recording.turn(turn, true).unwrap();
                    assert!(turn.unsure_positions.is_empty(), "`--all` asks for it");
                }
            }
        }
    }
    // The result of a call of a kind that toolq doesn't run is that call's.
    let text = r#"[{"type":"local_shell_call","call_id":"s","action":{}},{"type":"function_call","call_id":"a","name":"n","arguments":"{}"},{"type":"function_call_output","call_id":"s","output":"r"}]"#;
    assert_eq!(read(text).unwrap().misplaced_results(), 0);
}

/// What a log marks as its own isn't what a person says, and a side chain is a conversation of its own.
#[test]
fn what_a_session_log_adds_abandons_nothing() {
    let line = |uuid: &str, rest: &str| format!(r#"{{"uuid":"{uuid}",{rest}}}"#);
    let call = |id: &str| {
        format!(
            r#""type":"assistant","message":{{"id":"m{id}","role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"n","input":{{}}}}]}}"#
        )
    };
    let says = r#""type":"user","message":{"role":"user","content":"go on"}"#;
    for (second, open) in [
        (line("2", says), ""),
        (line("2", &format!(r#""isMeta":true,{says}"#)), "a"),
        (line("2", &format!(r#""isSidechain":true,{says}"#)), "a"),
    ] {
        let text = [line("1", &call("a")), second].join("\n");
        let recording = read(&text).unwrap();
        let open_calls: String = turns(&recording)
            .iter()
            .flat_map(|turn| &turn.calls)
            .map(|call| call.id.as_str())
            .collect();
        assert_eq!(open_calls, open, "{text}");
    }
    // A line that is in the log twice is one line.
    let text = [line("1", &call("a")), line("1", &call("a"))].join("\n");
    let calls: usize = turns(&read(&text).unwrap())
        .iter()
        .map(|turn| turn.calls.len())
        .sum();
    assert_eq!(calls, 1);
}

/// Zeros at the end of a log are what a crash left of its last line.
#[test]
fn zeros_at_the_end_of_a_log_are_a_torn_end() {
    let line = r#"{"type":"assistant","uuid":"u","message":{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]}}"#;
    let text = format!("{line}\n\0\0\0\0");
    let recording = read(&text).unwrap();
    assert_eq!(turns(&recording)[0].calls.len(), 1);
    assert!(recording.damage().is_some());
}
