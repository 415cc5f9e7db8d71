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

/// Describes the beginning of a line in two words.
fn describe_start(start: &str) -> String {
    match MessageStart::read(start.as_bytes()) {
        Some(MessageStart::Request(id)) => format!("request {}", id.as_json()),
        Some(MessageStart::Response(id)) => format!("response {}", id.as_json()),
        None => "no id".to_owned(),
    }
}

#[test]
fn the_id_of_a_cut_off_message_is_found_at_its_top_level_only() {
    for (start, description) in [
        (r#"{"jsonrpc":"2.0","id":12,"result":{"con"#, "response 12"),
        (r#"{"jsonrpc":"2.0", "id" : 3 ,"res"#, "response 3"),
        (r#"{"result":{"id":5,"x":[{"id":6}]},"id":7}"#, "response 7"),
        (r#"{"a":"id","b":"\"id\":4","id":8,"#, "response 8"),
        (r#"{"id":"a\"b","result":{"#, r#"response "a\"b""#),
        (r#"{"result":{"id":5,"x":"cut"#, "no id"),
        (r#"{"id":12"#, "no id"),
        (r#"{"id":"12"#, "no id"),
        (r#"{"id":1.5,"#, "no id"),
        (r#"{"id":null,"#, "no id"),
        ("noise", "no id"),
        ("", "no id"),
    ] {
        assert_eq!(describe_start(start), description, "{start}");
    }
}

#[test]
fn a_cut_off_request_is_told_from_a_response_by_its_method_or_parameters() {
    for (start, description) in [
        (
            r#"{"id":1,"method":"tools/call","params":{"x":"cut"#,
            "request 1",
        ),
        (
            r#"{"method":"tools/call","id":"a-1","par"#,
            r#"request "a-1""#,
        ),
        (r#"{"id":-2,"params":{"method":"cut"#, "request -2"),
        (
            r#"{"id":1,"result":{"method":"x","params":"cut"#,
            "response 1",
        ),
        (
            r#"{"method":"notifications/progress","params":{"id":1,"#,
            "no id",
        ),
    ] {
        assert_eq!(describe_start(start), description, "{start}");
    }
}

#[test]
fn the_answer_of_a_broken_line_is_found_whatever_form_its_id_has() {
    for (line, request) in [
        (r#"{"jsonrpc":"2.0","id":3,"result":NaN}"#, Some(3)),
        (r#"{"jsonrpc":"2.0","id":"3","result":NaN}"#, Some(3)),
        (r#"{"jsonrpc":"2.0","id":"three","result":NaN}"#, None),
        (r#"{"jsonrpc":"2.0","id":3,"method":NaN}"#, None),
        (r#"{"id":3,"result":NaN}"#, None),
    ] {
        let found = find_broken_answer(line.as_bytes());
        assert_eq!(found.map(|(request, _)| request), request, "{line}");
    }
}
