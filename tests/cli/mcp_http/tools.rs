//! Lists, calls, progress and headers.

use std::fs;

use serde_json::json;

use crate::mcp_http::{TOKEN, no_input, sandbox, sandbox_with};
use crate::support::scripted_server::{LEGACY, MODERN, Script, ScriptedServer};

#[test]
fn calls_are_answered_in_both_eras_and_both_forms() {
    for script in [MODERN, LEGACY] {
        for streams in [false, true] {
            let server = ScriptedServer::start(Script { streams, ..script });
            let input = json!({"n": 1});
            let calls = [
                ("echo", input.clone()),
                ("echo", input.clone()),
                ("pay_echo", input),
            ];
            let output = sandbox(&server, &calls).run(&["run", "-q"]).assert_exit(0);
            let expected = (r#"{"n":1}"#.to_owned(), false);
            assert_eq!(output.result_texts(), vec![expected; 3]);
            let methods = server.methods();
            let expected = if script.is_modern {
                &["server/discover", "tools/list", "tools/call"][..]
            } else {
                &[
                    "server/discover",
                    "initialize",
                    "notifications/initialized",
                    "tools/call",
                ]
            };
            assert_eq!(methods[..expected.len()], *expected);
            assert_eq!(server.calls().len(), 3, "{methods:?}");
            let ends_session = methods.last().unwrap() == "DELETE";
            assert_eq!(ends_session, !script.is_modern, "{methods:?}");
        }
    }
}

/// `protocol` says which era it is, so that nothing else is tried.
#[test]
fn a_revision_can_be_fixed() {
    for (script, revision, first) in [
        (LEGACY, "2025-11-25", "initialize"),
        (MODERN, "2026-07-28", "server/discover"),
    ] {
        let server = ScriptedServer::start(script);
        let keys = format!("    protocol: {revision}\n");
        let sandbox = sandbox_with(&server, &keys, &no_input(&["echo"]));
        let output = sandbox.run(&["run", "-q"]).assert_exit(0);
        assert_eq!(output.result_texts(), [("{}".to_owned(), false)]);
        assert_eq!(server.methods()[0], first);
    }
    let server = ScriptedServer::start(LEGACY);
    let keys = "    protocol: 2026-07-28\n";
    let output = sandbox_with(&server, keys, &no_input(&["echo"])).run(&["run", "-q"]);
    let (text, is_error) = &output.result_texts()[0];
    assert!(*is_error && text.contains("no session"), "{text}");
    assert_eq!(server.methods(), ["server/discover"]);
}

#[test]
fn a_call_that_writes_has_its_key_and_every_request_the_headers() {
    for script in [MODERN, LEGACY] {
        let server = ScriptedServer::start(script);
        sandbox(&server, &no_input(&["pay_echo"]))
            .run(&["run", "-q"])
            .assert_exit(0);
        for request in server.requests() {
            assert_eq!(request.headers["authorization"], format!("Bearer {TOKEN}"));
        }
        let calls = server.calls();
        let key = &calls[0].message["params"]["_meta"]["dev.toolq/idempotency-key"];
        assert_eq!(key.as_str().map(str::len), Some(64), "{:?}", calls[0]);
    }
}

#[test]
fn arguments_are_repeated_in_the_headers_that_a_tool_asks_for() {
    let server = ScriptedServer::start(MODERN);
    let calls = [
        ("regional", json!({"region": "us-west1"})),
        ("regional", json!({})),
    ];
    let output = sandbox(&server, &calls).run(&["run", "-q"]).assert_exit(0);
    let texts = output.result_texts();
    assert_eq!(texts[0].0, r#"{"region":"us-west1"}"#);
    assert!(texts.iter().all(|(_, is_error)| !is_error), "{texts:?}");
}

#[test]
fn progress_reaches_the_events_and_not_the_result() {
    for script in [MODERN, LEGACY] {
        let server = ScriptedServer::start(script);
        let output = sandbox(&server, &no_input(&["progress"]))
            .run(&["run", "-q", "--events", "events.ndjson"])
            .assert_exit(0);
        assert_eq!(output.result_texts(), [("done".to_owned(), false)]);
        let events = output.file("events.ndjson").unwrap();
        assert!(
            events.contains("step 1") && events.contains("step 2"),
            "{events}"
        );
    }
}

/// Not even if the server repeats it.
#[test]
fn a_secret_in_a_header_appears_nowhere() {
    let server = ScriptedServer::start(MODERN);
    let sandbox = sandbox(&server, &no_input(&["show_token"]));
    let log = sandbox.path().join("log.jsonl");
    let output = sandbox
        .run(&["run", "--log", "log.jsonl", "-vv"])
        .assert_exit(0);
    assert_eq!(
        output.result_texts(),
        [("Bearer [masked]".to_owned(), false)]
    );
    let log = fs::read_to_string(log).unwrap();
    for text in [&output.stdout, &output.stderr, &log] {
        assert!(!text.contains(TOKEN), "{text}");
    }
}

/// What another program is configured with is reached from here, too, with secrets from the environment alone.
#[test]
fn servers_of_another_program_are_imported_and_called() {
    let server = ScriptedServer::start(MODERN);
    let servers = json!({"s": {"type": "http", "url": server.url, "headers": {
        "Authorization": "Bearer s3cr3t-in-the-file",
        "Accept": "application/json",
        "X-Region": "eu",
    }}});
    let sandbox = sandbox(&server, &no_input(&["show_token"]));
    let sandbox = sandbox
        .file(".mcp.json", json!({ "mcpServers": servers }).to_string())
        .env("S_AUTHORIZATION", TOKEN)
        .env("S_X_REGION", "eu");
    let script = r#""$TOOLQ" init --from .mcp.json -c imported.yaml &&
        printf 'tools:\n  show_token: {input_schema: {type: object}, effect: read, mcp: {server: s}}\n' >> imported.yaml &&
        "$TOOLQ" run -q -c imported.yaml"#;
    let output = sandbox.run_shell(script).assert_exit(0);
    assert_eq!(
        output.result_texts(),
        [("Bearer [masked]".to_owned(), false)]
    );
    assert!(
        output.stderr.contains("S_AUTHORIZATION"),
        "{}",
        output.stderr
    );
    let imported = output.file("imported.yaml").unwrap();
    assert!(!imported.contains("s3cr3t"), "{imported}");
    let regions = server
        .requests()
        .into_iter()
        .filter_map(|mut request| request.headers.remove("x-region"));
    assert!(regions.clone().count() > 0);
    assert!(regions.clone().all(|region| region == "eu"));
}

#[test]
fn servers_can_be_listed_and_locked() {
    for script in [MODERN, LEGACY] {
        let server = ScriptedServer::start(script);
        let sandbox = sandbox(&server, &[]);
        let mut lock = sandbox.command(&["servers", "lock"]);
        let locked = lock.output().unwrap();
        assert!(locked.status.success(), "{locked:?}");
        let stderr = String::from_utf8(locked.stderr).unwrap();
        // A server of the legacy era doesn't know what the header means.
        assert_eq!(
            stderr.contains("the tool odd is left out"),
            script.is_modern,
            "{stderr}"
        );
        let lock = fs::read_to_string(sandbox.path().join("tools.lock")).unwrap();
        assert!(lock.contains("\"regional\""), "{lock}");
        let output = sandbox.run(&["servers"]).assert_exit(0);
        assert!(
            output.stdout.contains("locked") || output.stdout.contains("ok"),
            "{}",
            output.stdout
        );
        assert!(server.calls().is_empty());
    }
}

#[test]
fn mistakes_in_the_file_are_errors_with_a_hint() {
    let server = ScriptedServer::start(MODERN);
    for (keys, problem) in [
        ("    command: [cat]\n", "has both `command` and `url`"),
        ("    restarts: 1\n", "`restarts` has no meaning"),
    ] {
        let output = sandbox_with(&server, keys, &[])
            .run(&["check"])
            .assert_exit(1);
        assert!(
            output.stderr.contains(problem),
            "{problem}:\n{}",
            output.stderr
        );
    }
    for (from, to, problem) in [
        ("Authorization", "Mcp-Session-Id", "is set by toolq itself"),
        ("Authorization", "A b", "isn't a valid header name"),
        (
            server.url.as_str(),
            "ftp://127.0.0.1/",
            "neither http nor https",
        ),
        (
            server.url.as_str(),
            "http://127.0.0.1/{x}",
            "nothing about it can come from an input",
        ),
        (
            &format!("url: \"{}\"", server.url),
            "command: [cat]",
            "`headers` has no meaning",
        ),
    ] {
        let sandbox = sandbox(&server, &[]);
        let tools = fs::read_to_string(sandbox.path().join("tools.yaml")).unwrap();
        let tools = tools.replacen(from, to, 1);
        let output = sandbox.tools(&tools).run(&["check"]).assert_exit(1);
        assert!(
            output.stderr.contains(problem),
            "{problem}:\n{}",
            output.stderr
        );
    }
    assert!(server.requests().is_empty());
}

/// The value of a variable in the query of the address is a secret, too, and a missing one fails the call.
#[test]
fn variables_of_an_address_are_filled_in() {
    let server = ScriptedServer::start(MODERN);
    let sandbox = sandbox(&server, &no_input(&["echo"]));
    let tools = fs::read_to_string(sandbox.path().join("tools.yaml")).unwrap();
    let with_key = format!("{}?key=${{KEY}}", server.url);
    let sandbox = sandbox.tools(&tools.replace(&server.url, &with_key));
    let output = sandbox.run(&["run", "-q"]).assert_exit(0);
    let (text, is_error) = &output.result_texts()[0];
    assert!(*is_error && text.contains("KEY"), "{text}");
    assert!(server.requests().is_empty());
}
