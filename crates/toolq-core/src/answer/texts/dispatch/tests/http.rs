//! What becomes of requests.

use super::*;

#[test]
fn statuses() {
    let statuses = [
        302, 400, 403, 404, 405, 408, 409, 413, 418, 429, 500, 503, 600,
    ];
    let outcomes = statuses.map(|status| failed(Ending::Http(status), "{\"error\":\"x\"}", ""));
    insta::assert_snapshot!(texts(&outcomes), @r#"
        The service answered HTTP 302 (a redirect).
        {"error":"x"}
        Hint: the tool doesn't follow it. Tell the user.
        ---
        The service answered HTTP 400 (the request is wrong).
        {"error":"x"}
        Hint: check the values of the input against the tool's description, and correct them.
        ---
        The service answered HTTP 403 (not permitted).
        {"error":"x"}
        Hint: the tool's access doesn't cover this, and calling again won't change that. Tell the user.
        ---
        The service answered HTTP 404 (not found).
        {"error":"x"}
        Hint: what the input names doesn't exist there. Check names and ids.
        ---
        The service answered HTTP 405 (not offered).
        {"error":"x"}
        Hint: the service doesn't offer this. Use another tool, or tell the user.
        ---
        The service answered HTTP 408 (it took too long).
        {"error":"x"}
        Hint: ask for less at once, or try again later.
        ---
        The service answered HTTP 409 (a conflict).
        {"error":"x"}
        Hint: what the input names is in another state than expected. Look at it first.
        ---
        The service answered HTTP 413 (the request is too large).
        {"error":"x"}
        Hint: send less at once.
        ---
        The service answered HTTP 418.
        {"error":"x"}
        Hint: the service doesn't take this request. Read its answer and change the input.
        ---
        The service answered HTTP 429 (too many requests).
        {"error":"x"}
        Hint: wait before you call it again, with fewer calls at once.
        ---
        The service answered HTTP 500 (the service failed).
        {"error":"x"}
        Hint: the input may be right. Try once more later, or use another tool.
        ---
        The service answered HTTP 503 (overloaded or down).
        {"error":"x"}
        Hint: the input may be right. Try again later, or go on without it.
        ---
        The service answered HTTP 600.
        {"error":"x"}
        Hint: the answer is none that this tool takes. Try another input, or tell the user.
        "#);
}

#[test]
fn requests_without_an_answer() {
    insta::assert_snapshot!(texts(&[
        transport(TransportPhase::Build, "the URL is malformed"),
        transport(TransportPhase::Connect, "connection refused"),
        transport(TransportPhase::Connect, "the name can't be resolved"),
        transport(TransportPhase::Connect, "invalid peer certificate"),
        transport(TransportPhase::Connect, "network unreachable"),
        transport(TransportPhase::Connect, "evil.example has an address that is not public"),
        transport(TransportPhase::Connect, "operation timed out"),
        transport(TransportPhase::Response, "connection reset"),
        transport(TransportPhase::Body, "60 of 100 bytes came"),
        transport(TransportPhase::TooLarge, "more than 64 MiB"),
    ]), @"
        The request could not be built: the URL is malformed.
        Hint: nothing was sent. Check the values of the input, or tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: connection refused.
        Hint: nobody listens at this address, and nothing was sent. The service may not be running: try again later, or tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: the name can't be resolved.
        Hint: the host's name is unknown, and nothing was sent. Try again later, or tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: invalid peer certificate.
        Hint: no safe connection can be made, and nothing was sent. Tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: network unreachable.
        Hint: nothing was sent. Try again later, or use another tool.
        ---
        http://127.0.0.1:8080 could not be reached: evil.example has an address that is not public.
        Hint: this tool may ask public addresses only, and nothing was sent. Use another URL, or tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: operation timed out.
        Hint: nothing was sent. Try again later, or use another tool.
        ---
        http://127.0.0.1:8080 gave no complete answer: connection reset.
        Hint: try again later, or ask for less at once.
        ---
        The answer of http://127.0.0.1:8080 broke off: 60 of 100 bytes came.
        Hint: try again later, or ask for less at once.
        ---
        The answer of http://127.0.0.1:8080 is too large: more than 64 MiB.
        Hint: ask for less at once: a narrower search, a smaller page.
        ");
    let write = tool_with_schema("pay", json!(true));
    let unsure = text_of(Some(&write), &failed(Ending::Http(502), "", ""));
    assert!(unsure.contains("look before you call it again"), "{unsure}");
}

/// FAULTS 100: the model is told that nobody knows, what came of the answer, and not to try blindly.
#[test]
fn requests_in_doubt() {
    let broken = |phase| {
        Doubt::Broken(Box::new(Transport {
            phase,
            origin: "https://api.example.com".to_owned(),
            detail: "connection reset".to_owned(),
        }))
    };
    let in_doubt = |doubt, output: &str| Outcome::InDoubt {
        doubt,
        output: output.to_owned(),
        captured: Captured::default(),
    };
    insta::assert_snapshot!(texts(&[
        in_doubt(broken(TransportPhase::Response), ""),
        in_doubt(broken(TransportPhase::Body), "{\"paid\": tr"),
        in_doubt(Doubt::TimedOut(Duration::from_secs(5)), ""),
        in_doubt(Doubt::Interrupted(Halt::Signal(15)), ""),
        in_doubt(Doubt::Interrupted(Halt::OverBudget(Budget::Time(Duration::from_mins(1)))), ""),
        in_doubt(Doubt::Cancelled("bash".to_owned()), "{"),
    ]), @r#"
        In doubt: search may have done its work: https://api.example.com gave no complete answer: connection reset.
        Hint: look whether it did before you call it again, or tell the user.
        ---
        In doubt: search may have done its work: the answer of https://api.example.com broke off: connection reset.
        {"paid": tr
        Hint: look whether it did before you call it again, or tell the user.
        ---
        In doubt: search may have done its work: no complete answer came within 5s.
        Hint: look whether it did before you call it again, or tell the user.
        ---
        In doubt: search may have done its work: the run was ended from outside, and no answer had come.
        Hint: look whether it did before you call it again, or tell the user.
        ---
        In doubt: search may have done its work: the time budget of this run, 1m, is used up, and no answer had come.
        Hint: look whether it did before you call it again, or tell the user.
        ---
        In doubt: search may have done its work: the bash call beside it failed, and no answer had come.
        {
        Hint: look whether it did before you call it again, or tell the user.
        "#);
    let large = transport(TransportPhase::TooLarge, "more than 64 MiB");
    let done = text_of(Some(&tool_with_schema("pay", json!(true))), &large);
    assert!(done.contains("its work is done"), "{done}");
    let mut pay = tool_with_schema("pay", json!(true));
    pay.messages
        .insert(MessageKey::InDoubt, template("{tool} 状态未知 {timeout}"));
    let late = in_doubt(Doubt::TimedOut(Duration::from_secs(5)), "");
    assert_eq!(text_of(Some(&pay), &late), "pay 状态未知 5s");
}
