//! Response bodies: selecting a part, and bodies that don't match the tool's declaration.

use toolq_core::types::{Outcome, OutputKind, ResultContent};

use crate::http::faulty_server::{FaultyServer, ServerBehavior, http_response};

#[test]
fn a_pointer_selects_from_the_response() {
    let body = r#"{"rate":1.50,"a/b":["x",{"n":null}],"text":"a\nb\n"}"#;
    let server = FaultyServer::responding_with(&http_response("200 OK", body));
    let select = |pointer: &str| {
        let pointer = Some(pointer.to_owned());
        server
            .get_call("/")
            .http_backing(|backing| backing.select = pointer)
            .run()
    };
    for (pointer, expected) in [
        ("/rate", "1.50"),
        ("/text", "a\nb\n"),
        ("/a~1b/0", "x"),
        ("/a~1b/1", r#"{"n":null}"#),
        ("", body),
    ] {
        assert_eq!(select(pointer).text(), expected, "{pointer}");
    }
    for pointer in ["/missing", "/a~1b/2", "/a~1b/-1", "/rate/x"] {
        assert!(
            matches!(select(pointer).outcome(), Outcome::BadOutput { .. }),
            "{pointer}"
        );
    }
}

/// An HTML page where JSON was declared, an empty body, trailing data. A byte order mark is accepted.
#[test]
fn bodies_that_do_not_match_the_declared_output_are_errors() {
    let json = |body: &str| {
        let call = FaultyServer::responding_with(&http_response("200 OK", body)).get_call("/");
        call.tool(|tool| tool.output = OutputKind::Json).run()
    };
    assert_eq!(json("\u{FEFF}{ }").text(), "{}");
    for body in ["<html></html>", "", "{} {}"] {
        assert!(
            matches!(json(body).outcome(), Outcome::BadOutput { .. }),
            "{body}"
        );
    }
    let blocks = FaultyServer::responding_with(&http_response(
        "200 OK",
        r#"{"content":[{"type":"text","text":"x"}]}"#,
    ))
    .get_call("/");
    let ran = blocks
        .tool(|tool| tool.output = OutputKind::Content)
        .http_backing(|backing| backing.select = Some("/content".to_owned()))
        .run();
    assert!(
        matches!(ran.outcome(), Outcome::Succeeded { content: ResultContent::Blocks(blocks), .. } if blocks.len() == 1)
    );
}

/// The response's `content-type` is ignored: a body is read as UTF-8 and as the kind of output that the tool declares.
#[test]
fn a_body_is_read_as_declared() {
    let typed = |kind: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\n");
        FaultyServer::new(&[ServerBehavior::Respond([head.as_bytes(), body].concat())])
            .get_call("/")
    };
    let utf16: Vec<u8> = "\u{FEFF}é"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (kind, body, text, lossy) in [
        (
            "application/json",
            "<html>no</html>".as_bytes(),
            "<html>no</html>",
            false,
        ),
        ("image/png", b"text".as_slice(), "text", false),
        (
            "text/plain; charset=iso-8859-1",
            b"caf\xe9 end",
            "caf\u{FFFD} end",
            true,
        ),
        (
            "text/plain; charset=gb2312",
            b"\xc4\xe3",
            "\u{FFFD}\u{FFFD}",
            true,
        ),
        (
            "text/plain; charset=utf-16",
            &utf16,
            "\u{FFFD}\u{FFFD}\u{FFFD}\0",
            true,
        ),
        ("", b"a\0b", "a\0b", false),
        ("; ;=charset=\"", b"x", "x", false),
    ] {
        let ran = typed(kind, body).run();
        assert_eq!(ran.text(), text, "{kind}");
        assert_eq!(ran.outcome().captured().unwrap().lossy, lossy, "{kind}");
    }
    for (body, expected) in [
        (
            b"<!DOCTYPE html><html>sign in</html>".as_slice(),
            "not valid JSON",
        ),
        (b"caf\xe9", "not valid UTF-8"),
        (&utf16, "not valid UTF-8"),
        (b"", "the output is empty"),
        (b"NaN", "not valid JSON"),
    ] {
        let ran = typed("application/json", body)
            .tool(|tool| tool.output = OutputKind::Json)
            .run();
        assert!(
            matches!(ran.outcome(), Outcome::BadOutput { problem, .. } if problem.contains(expected)),
            "{:?}",
            ran.outcome()
        );
    }
}

/// JSON readers disagree on which of two members with the same name counts, so toolq selects neither.
#[test]
fn a_duplicate_member_is_not_selected() {
    let server = FaultyServer::responding_with(&http_response(
        "200 OK",
        r#"{"a":{"rate":1,"r\u0061te":2},"b":3}"#,
    ));
    let select = |pointer: &str| {
        let pointer = Some(pointer.to_owned());
        let call = server
            .get_call("/")
            .http_backing(|backing| backing.select = pointer);
        call.run()
    };
    assert!(matches!(
        select("/a/rate").outcome(),
        Outcome::BadOutput { .. }
    ));
    assert_eq!(select("/b").text(), "3");
    assert_eq!(select("/a").text(), r#"{"rate":1,"r\u0061te":2}"#);
}
