use super::*;

/// Describes the messages of a line in a few words.
fn describe(line: &str) -> String {
    let Ok(messages) = parse_messages(line.as_bytes()) else {
        return "not a message".to_owned();
    };
    let describe = |message: &Message<'_>| match message {
        Message::Request { id, method, params } => {
            format!("request {} {method} {}", id.as_json(), params.is_some())
        }
        Message::Notification { method, .. } => format!("notification {method}"),
        Message::Response { id, result } => {
            let id = id.as_ref().map_or("unknown", RequestId::as_json);
            match result {
                Ok(result) => format!("result {id} {result}"),
                Err(error) => format!("error {id} {error}"),
            }
        }
    };
    messages.iter().map(describe).collect::<Vec<_>>().join(", ")
}

#[test]
fn messages_are_told_apart_by_their_members() {
    for (line, description) in [
        (
            r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#,
            "request 0 ping false",
        ),
        (
            r#"{"id":"a\"b","method":"tools/list","params":{}}"#,
            r#"request "a\"b" tools/list true"#,
        ),
        (
            r#"{"method":"notifications/progress","id":null}"#,
            "notification notifications/progress",
        ),
        (
            r#"{"id":7,"result":{"n":12345678901234567890.10}}"#,
            r#"result 7 {"n":12345678901234567890.10}"#,
        ),
        (
            r#"{"id":-3,"error":{"code":-32601,"message":"no"}}"#,
            "error -3 no (error -32601)",
        ),
        (
            r#"{"id":null,"error":{"code":-32700,"message":"what?"}}"#,
            "error unknown what? (error -32700)",
        ),
        (
            r#"[{"id":1,"result":{}},{"method":"x"}]"#,
            "result 1 {}, notification x",
        ),
    ] {
        assert_eq!(describe(line), description);
    }
}

#[test]
fn noise_is_not_a_message() {
    for line in [
        "Server listening on stdio",
        "{}",
        "[]x",
        "3",
        "null",
        r#"{"id":1}"#,
        r#"{"id":1.5,"result":{}}"#,
        r#"{"id":{},"result":{}}"#,
        r#"{"result":{}}"#,
        r#"{"id":1,"id":2,"result":{}}"#,
        "{\"method\":\"\u{1}\"}",
    ] {
        assert_eq!(describe(line), "not a message", "{line}");
    }
    assert_eq!(
        parse_messages(b"{\"method\":\"\xff\"}").unwrap_err(),
        NotMessage
    );
}

#[test]
fn the_id_of_a_cut_off_response_is_found_at_its_top_level_only() {
    for (start, id) in [
        (r#"{"jsonrpc":"2.0","id":12,"result":{"con"#, Some(12)),
        (r#"{"jsonrpc":"2.0", "id" : 3 ,"res"#, Some(3)),
        (r#"{"result":{"id":5,"x":[{"id":6}]},"id":7}"#, Some(7)),
        (r#"{"a":"id","b":"\"id\":4","id":8,"#, Some(8)),
        (r#"{"result":{"id":5,"x":"cut"#, None),
        (r#"{"id":12"#, None),
        (r#"{"id":"12","#, None),
        ("noise", None),
        ("", None),
    ] {
        assert_eq!(find_response_id(start.as_bytes()), id, "{start}");
    }
}
