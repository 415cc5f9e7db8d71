//! Streams that break off and can be resumed.

use serde_json::json;

use crate::mcp_http::{no_input, sandbox};
use crate::support::scripted_server::{LEGACY, MODERN, Script, ScriptedServer};

/// Returns how many requests had this method.
fn count(server: &ScriptedServer, method: &str) -> usize {
    let methods = server.methods();
    methods.iter().filter(|found| *found == method).count()
}

/// Only the rest of the response is requested, so a `write` isn't in doubt, and isn't sent again.
#[test]
fn the_rest_of_a_broken_stream_is_asked_for() {
    for (tools, resumptions) in [
        (["goes_on", "pay_goes_on"], 2),
        (["goes_on_in_pieces", "pay_goes_on_in_pieces"], 12),
    ] {
        let server = ScriptedServer::start(LEGACY);
        let output = sandbox(&server, &no_input(&tools))
            .run(&["run", "-q"])
            .assert_exit(0);
        let expected = ("at last".to_owned(), false);
        assert_eq!(output.result_texts(), vec![expected; 2]);
        assert_eq!(server.calls().len(), 2, "{tools:?}");
        assert_eq!(count(&server, "GET"), resumptions, "{tools:?}");
    }
}

/// The `write` call is in doubt, since nobody knows whether the server made it.
#[test]
fn a_stream_that_cannot_be_resumed_is_lost() {
    let server = ScriptedServer::start(LEGACY);
    let output = sandbox(&server, &no_input(&["is_lost", "pay_is_lost"]))
        .run(&["run", "-q"])
        .assert_exit(3);
    let texts = output.result_texts();
    assert!(texts[0].1 && !texts[0].0.contains("In doubt"), "{texts:?}");
    assert!(texts[1].1 && texts[1].0.contains("In doubt"), "{texts:?}");
    assert_eq!((server.calls().len(), count(&server, "GET")), (2, 2));
}

/// The modern era has no resumption.
#[test]
fn nothing_is_asked_for_in_the_modern_era() {
    let server = ScriptedServer::start(MODERN);
    let output = sandbox(&server, &no_input(&["pay_goes_on"]))
        .run(&["run", "-q"])
        .assert_exit(3);
    assert!(output.result_texts()[0].0.contains("In doubt"));
    assert_eq!(count(&server, "GET"), 0);
}

/// The server says which headers it wants in its list of tools, and refuses calls with others. A `write` isn't sent twice on
/// its word.
#[test]
fn a_call_with_outdated_headers_is_made_again_after_another_list() {
    let script = Script {
        header_moves: true,
        ..MODERN
    };
    let input = json!({"region": "eu"});
    let server = ScriptedServer::start(script);
    let calls = [("regional", input.clone()), ("pay_regional", input.clone())];
    let output = sandbox(&server, &calls).run(&["run", "-q"]).assert_exit(0);
    let expected = (r#"{"region":"eu"}"#.to_owned(), false);
    assert_eq!(output.result_texts(), vec![expected.clone(); 2]);
    assert_eq!((server.calls().len(), count(&server, "tools/list")), (3, 2));

    let server = ScriptedServer::start(script);
    let calls = [("pay_regional", input.clone()), ("pay_regional", input)];
    let output = sandbox(&server, &calls).run(&["run", "-q"]).assert_exit(0);
    let texts = output.result_texts();
    assert!(
        texts[0].1 && texts[0].0.contains("header mismatch"),
        "{texts:?}"
    );
    assert_eq!(texts[1], expected);
    assert_eq!((server.calls().len(), count(&server, "tools/list")), (2, 2));
}
