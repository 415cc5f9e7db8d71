//! Servers in tools.yaml: mistakes, and servers taken from another program.

use serde_json::json;

use crate::servers::{SERVER, TOOLS, sandbox};

/// What another program is configured with runs here, too, with secrets from the environment alone.
#[test]
fn servers_of_another_program_are_imported_and_run() {
    let config = r#"{"mcpServers": {
        "notes": {"command": "./server", "args": ["--", "{x}"], "env": {"SERVER_TOKEN": "s3cr3t-in-the-file", "MODE": "fast"}},
        "far": {"type": "sse", "url": "https://mcp.example.com/"}
    }}"#;
    let script = r#""$TOOLQ" init --from .mcp.json -c imported.yaml &&
        printf 'tools:\n  die: {input_schema: {type: object}, effect: read, mcp: {server: notes}}\n' >> imported.yaml &&
        "$TOOLQ" run -q -c imported.yaml"#;
    let server = SERVER.replace("out of cheese", "$MODE $* $SERVER_TOKEN");
    let output = sandbox(&[("die", json!({}))])
        .program("server", &server)
        .file(".mcp.json", config)
        .env("SERVER_TOKEN", "s3cr3t-canary-value")
        .env("MODE", "fast")
        .run_shell(script)
        .assert_exit(0);
    let results = output.result_texts();
    assert!(results[0].0.contains("fast -- {x} [masked]"), "{results:?}");
    let imported = output.file("imported.yaml").unwrap();
    assert!(imported.contains("${SERVER_TOKEN}"), "{imported}");
    assert!(!imported.contains("s3cr3t"), "{imported}");
    assert!(
        output
            .stderr
            .contains("\"far\" is left out: it has the transport `sse`"),
        "{}",
        output.stderr
    );
}

#[test]
fn mistakes_in_the_file_are_errors_with_a_hint() {
    for (from, to, problem) in [
        (
            "{argv: [./server]",
            "{argv: [./server], leftovers: allow",
            "`leftovers` has no meaning for a server",
        ),
        (
            "{argv: [./server]",
            "{argv: [./server], stdin: input",
            "`stdin` has no meaning for a server",
        ),
        (
            "mcp: {server: notes}\n  get_note",
            "mcp: {server: note}\n  get_note",
            "there is no server `note`",
        ),
        (
            "mcp: {server: notes}\n  get_note",
            "mcp: {tool: x}\n  get_note",
            "`mcp` has no `server`",
        ),
        (
            "    command: {argv",
            "    comand: {argv",
            "has neither `command` nor `url`",
        ),
        (
            "argv: [./server]",
            "argv: [./server, \"{name}\"]",
            "a server serves many calls, so nothing about it can come from an input",
        ),
        (
            "{path: \"notes/{name}.md\", n: \"{n?}\", deep: [true, {x: 1.50}]}",
            "[1]",
            "`arguments` must be a table",
        ),
        (
            "effect: read\n    timeout: 20s",
            "effect: read\n    command: [cat]",
            "a tool can only have one backing",
        ),
    ] {
        let tools = TOOLS.replacen(from, to, 1);
        assert_ne!(tools, TOOLS, "{from}");
        let output = sandbox(&[]).tools(&tools).run(&["check"]).assert_exit(1);
        assert!(
            output.stderr.contains(problem),
            "{problem}:\n{}",
            output.stderr
        );
    }
}
