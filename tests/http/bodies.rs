//! Bodies that are something else than was declared.

use toolq_core::types::{Content, Outcome, OutputKind};

use crate::server::{Act, Server, response};

#[test]
fn a_pointer_selects_from_the_response() {
    let body = r#"{"rate":1.50,"a/b":["x",{"n":null}],"text":"a\nb\n"}"#;
    let server = Server::saying(&response("200 OK", body));
    let select = |pointer: &str| {
        let pointer = Some(pointer.to_owned());
        server
            .get("/")
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
    for pointer in ["/none", "/a~1b/2", "/a~1b/-1", "/rate/x"] {
        assert!(
            matches!(select(pointer).outcome(), Outcome::BadOutput { .. }),
            "{pointer}"
        );
    }
}

/// FAULTS 102: a page where JSON was declared, a byte order mark, an empty body.
#[test]
fn bodies_that_are_something_else() {
    let json = |body: &str| {
        let asked = Server::saying(&response("200 OK", body)).get("/");
        asked.tool(|tool| tool.output = OutputKind::Json).run()
    };
    assert_eq!(json("\u{FEFF}{ }").text(), "{}");
    for body in ["<html></html>", "", "{} {}"] {
        assert!(
            matches!(json(body).outcome(), Outcome::BadOutput { .. }),
            "{body}"
        );
    }
    let blocks = Server::saying(&response(
        "200 OK",
        r#"{"content":[{"type":"text","text":"x"}]}"#,
    ))
    .get("/");
    let ran = blocks
        .tool(|tool| tool.output = OutputKind::Content)
        .http_backing(|backing| backing.select = Some("/content".to_owned()))
        .run();
    assert!(
        matches!(ran.outcome(), Outcome::Succeeded { content: Content::Blocks(blocks), .. } if blocks.len() == 1)
    );
}

/// FAULTS 102: the type that a response claims changes nothing: a body is read as UTF-8, and as what the tool declares.
#[test]
fn a_body_is_read_as_declared() {
    let typed = |kind: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\n");
        Server::new(&[Act::Say([head.as_bytes(), body].concat())]).get("/")
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
    for (body, problem) in [
        (b"<!DOCTYPE html><html>sign in</html>".as_slice(), "no JSON"),
        (b"caf\xe9", "no UTF-8"),
        (&utf16, "no UTF-8"),
        (b"", "no JSON"),
        (b"NaN", "no JSON"),
    ] {
        let ran = typed("application/json", body)
            .tool(|tool| tool.output = OutputKind::Json)
            .run();
        assert!(
            matches!(ran.outcome(), Outcome::BadOutput { problem: told, .. } if told.contains(problem)),
            "{:?}",
            ran.outcome()
        );
    }
}

/// FAULTS 102: readers disagree on which of two members of one name counts; none is handed on as if there were one.
#[test]
fn a_member_that_stands_twice_is_not_selected() {
    let server = Server::saying(&response(
        "200 OK",
        r#"{"a":{"rate":1,"r\u0061te":2},"b":3}"#,
    ));
    let select = |pointer: &str| {
        let pointer = Some(pointer.to_owned());
        let asked = server
            .get("/")
            .http_backing(|backing| backing.select = pointer);
        asked.run()
    };
    assert!(matches!(
        select("/a/rate").outcome(),
        Outcome::BadOutput { .. }
    ));
    assert_eq!(select("/b").text(), "3");
    assert_eq!(select("/a").text(), r#"{"rate":1,"r\u0061te":2}"#);
}
