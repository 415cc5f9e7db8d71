//! Requests that fail, and requests in doubt.

use super::*;

#[test]
fn every_http_status_has_its_hint() {
    let statuses = [
        302, 400, 403, 404, 405, 408, 409, 413, 418, 429, 500, 503, 600,
    ];
    let outcomes =
        statuses.map(|status| failed(CallEnding::HttpStatus(status), "{\"error\":\"x\"}", ""));
    insta::assert_snapshot!(answer_texts(&outcomes), @r#"
        The service returned HTTP 302 (a redirect).
        {"error":"x"}
        Hint: the tool doesn't follow it any further. Tell the user.
        ---
        The service returned HTTP 400 (bad request).
        {"error":"x"}
        Hint: check the input's values against the tool's description, and correct them.
        ---
        The service returned HTTP 403 (not permitted).
        {"error":"x"}
        Hint: the tool's credentials don't allow this, and calling again won't change that. Tell the user.
        ---
        The service returned HTTP 404 (not found).
        {"error":"x"}
        Hint: what the input refers to doesn't exist there. Check names and ids.
        ---
        The service returned HTTP 405 (not supported).
        {"error":"x"}
        Hint: the service doesn't support this. Use another tool, or tell the user.
        ---
        The service returned HTTP 408 (timed out).
        {"error":"x"}
        Hint: ask for less at a time, or try again later.
        ---
        The service returned HTTP 409 (conflict).
        {"error":"x"}
        Hint: what the input refers to isn't in the expected state. Check its state first.
        ---
        The service returned HTTP 413 (request too large).
        {"error":"x"}
        Hint: send less at a time.
        ---
        The service returned HTTP 418.
        {"error":"x"}
        Hint: the service refused this request. Read its response and change the input.
        ---
        The service returned HTTP 429 (too many requests).
        {"error":"x"}
        Hint: wait before calling it again, and make fewer calls at once.
        ---
        The service returned HTTP 500 (server error).
        {"error":"x"}
        Hint: the input may be fine. Try again later, or use another tool.
        ---
        The service returned HTTP 503 (overloaded or down).
        {"error":"x"}
        Hint: the input may be fine. Try again later, or continue without it.
        ---
        The service returned HTTP 600.
        {"error":"x"}
        Hint: the tool doesn't accept this response. Try another input, or tell the user.
        "#);
}

/// The result says how far the exchange got before a connection was refused or reset, or TLS failed.
#[test]
fn transport_errors_name_their_phase() {
    insta::assert_snapshot!(answer_texts(&[
        transport(TransportPhase::Build, "the URL is malformed"),
        unreachable(TransportPhase::Connect, TransportCause::ConnectionRefused, "connection refused"),
        unreachable(TransportPhase::Connect, TransportCause::UnknownHost, "the name can't be resolved"),
        unreachable(TransportPhase::Connect, TransportCause::Tls, "invalid peer certificate"),
        transport(TransportPhase::Connect, "network unreachable"),
        unreachable(TransportPhase::Connect, TransportCause::NonPublicAddress, "evil.example has an address that is not public"),
        transport(TransportPhase::Connect, "operation timed out"),
        transport(TransportPhase::Response, "connection reset"),
        transport(TransportPhase::Body, "60 of 100 bytes came"),
        transport(TransportPhase::TooLarge, "more than 64 MiB"),
    ]), @"
        The request could not be built: the URL is malformed.
        Hint: nothing was sent. Check the input's values, or tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: connection refused.
        Hint: nothing is listening at this address, and nothing was sent. The service may not be running: try again later, or tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: the name can't be resolved.
        Hint: the host name is unknown, and nothing was sent. Try again later, or tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: invalid peer certificate.
        Hint: a secure connection couldn't be established, and nothing was sent. Tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: network unreachable.
        Hint: nothing was sent. Try again later, or use another tool.
        ---
        http://127.0.0.1:8080 could not be reached: evil.example has an address that is not public.
        Hint: this tool may only contact public addresses, and nothing was sent. Use another URL, or tell the user.
        ---
        http://127.0.0.1:8080 could not be reached: operation timed out.
        Hint: nothing was sent. Try again later, or use another tool.
        ---
        http://127.0.0.1:8080 sent no complete response: connection reset.
        Hint: try again later, or ask for less at a time.
        ---
        The response from http://127.0.0.1:8080 broke off: 60 of 100 bytes came.
        Hint: try again later, or ask for less at a time.
        ---
        The response from http://127.0.0.1:8080 is too large: more than 64 MiB.
        Hint: ask for less at a time: a narrower search, a smaller page.
        ");
    let write = tool_with_schema("pay", json!(true));
    for ending in [
        CallEnding::HttpStatus(502),
        // What was declared is another one, so the work may be done all the same.
        CallEnding::HttpStatus(200),
        // The redirect came from who did the work.
        CallEnding::RedirectedStatus(429),
        CallEnding::Signal(15),
    ] {
        let maybe_done = answer_text(Some(&write), &failed(ending, "", ""));
        let hint = "Hint: it may have done part of its work: check before calling it again.";
        assert!(maybe_done.ends_with(hint), "{maybe_done}");
    }
}

/// The text says that the outcome is unknown, includes the partial response, and warns against a blind retry.
#[test]
fn requests_in_doubt_advise_against_a_blind_retry() {
    let broken = |phase| {
        DoubtCause::ConnectionLost(Box::new(TransportError {
            phase,
            origin: "https://api.example.com".to_owned(),
            cause: TransportCause::Other,
            detail: "connection reset".to_owned(),
        }))
    };
    let in_doubt = |doubt, output: &str| Outcome::InDoubt {
        cause: doubt,
        output: CallOutput {
            text: output.to_owned(),
            ..CallOutput::default()
        },
    };
    insta::assert_snapshot!(answer_texts(&[
        in_doubt(broken(TransportPhase::Response), ""),
        in_doubt(broken(TransportPhase::Body), "{\"paid\": tr"),
        in_doubt(DoubtCause::TimedOut(Duration::from_secs(5)), ""),
        in_doubt(DoubtCause::Interrupted(HaltCause::Signal(15)), ""),
        in_doubt(DoubtCause::Interrupted(HaltCause::OverBudget(BudgetLimit::Time(Duration::from_mins(1)))), ""),
        in_doubt(DoubtCause::Canceled("bash".to_owned()), "{"),
    ]), @r#"
        In doubt: search may have done its work: https://api.example.com sent no complete response: connection reset.
        Hint: check whether it did before calling it again, or tell the user.
        ---
        In doubt: search may have done its work: the response from https://api.example.com broke off: connection reset.
        {"paid": tr
        Hint: check whether it did before calling it again, or tell the user.
        ---
        In doubt: search may have done its work: no complete response arrived within 5s.
        Hint: check whether it did before calling it again, or tell the user.
        ---
        In doubt: search may have done its work: the run was stopped from outside, and no complete result had arrived.
        Hint: check whether it did before calling it again, or tell the user.
        ---
        In doubt: search may have done its work: this run's time budget of 1m is used up, and no complete result had arrived.
        Hint: check whether it did before calling it again, or tell the user.
        ---
        In doubt: search may have done its work: the parallel bash call failed, and no complete result had arrived.
        Output until then:
        {
        Hint: check whether it did before calling it again, or tell the user.
        "#);
    let large = transport(TransportPhase::TooLarge, "more than 64 MiB");
    let done = answer_text(Some(&tool_with_schema("pay", json!(true))), &large);
    assert!(done.contains("its work is done"), "{done}");
    let mut pay = tool_with_schema("pay", json!(true));
    pay.messages.insert(
        MessageKey::InDoubt,
        sample_template("{tool} 状态未知 {timeout}"),
    );
    let late = in_doubt(DoubtCause::TimedOut(Duration::from_secs(5)), "");
    assert_eq!(answer_text(Some(&pay), &late), "pay 状态未知 5s");
}
