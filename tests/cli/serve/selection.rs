//! Which tools are served, and how a client is configured for them.

use std::fs;

use crate::serve::client::{Client, TOOLS};
use crate::support::CliSandbox;
use serde_json::{Value, json};

#[test]
fn flags_choose_the_tools_that_are_served() {
    for (flags, expected) in [
        (
            &["--only", "w*", "--only", "pay"][..],
            &["wait_for", "pay", "work"][..],
        ),
        (&["--only", "[pw]*", "--read-only"], &["wait_for"]),
    ] {
        let mut client = Client::initialized(flags);
        let listed = client.ask(1, "tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        let names: Vec<&str> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected, "{flags:?}");
        let refused = client.ask(
            2,
            "tools/call",
            &json!({"name": "echo", "arguments": {"text": "a"}}),
        );
        assert_eq!(refused["error"]["code"], -32602);
    }
}

#[test]
fn what_cannot_be_served_is_an_error_before_the_first_message() {
    let dotted = "version: 1\ntools:\n  a.b: {input_schema: {type: object}, command: [date]}\n";
    for (tools, flags, problem) in [
        (TOOLS, &["--only", "nothing"][..], "no tool is left"),
        (TOOLS, &["--only", "["], "--only ["),
        (dotted, &[], "the name a.b"),
        ("version: 1\ntools: {a: 1}\n", &[], "can't be used"),
    ] {
        let sandbox = CliSandbox::new().tools(tools);
        let output = sandbox.run(&[&["serve"], flags].concat()).assert_exit(2);
        assert!(output.stderr.contains(problem), "{}", output.stderr);
        assert_eq!(output.stdout, "");
    }
}

/// Prints the configuration for a client, with a variable that the tools need.
fn print_configuration(client: &str) -> (String, String, CliSandbox) {
    let tools = "version: 1\nsecrets: [TOKEN]\ntools: {a: {input_schema: {type: object}, effect: read, command: [date]}}\n";
    let sandbox = CliSandbox::new().file("my tools/tools.yaml", tools);
    let serve = ["serve", "-c", "my tools/tools.yaml", "--print", client];
    let arguments = [&serve[..], &["--only", "a*", "--read-only"]].concat();
    let output = sandbox.command(&arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (stdout, stderr, sandbox)
}

/// The arguments that a configuration must have: clients start servers in any directory.
fn printed_arguments(sandbox: &CliSandbox) -> Value {
    let dir = fs::canonicalize(sandbox.path()).unwrap();
    let file = dir.join("my tools/tools.yaml");
    json!(["serve", "-q", "-c", file, "--only", "a*", "--read-only"])
}

/// Claude Code: <https://code.claude.com/docs/en/mcp>, `mcpServers` with `${NAME}`. Cursor:
/// <https://cursor.com/docs/mcp>, `mcpServers` with `${env:NAME}`. VS Code:
/// <https://code.visualstudio.com/docs/copilot/reference/mcp-configuration>, `servers`, whose `type` is required.
#[test]
fn the_configuration_of_a_client_starts_this_server() {
    for (client, key, reference, file) in [
        ("claude", "mcpServers", "${TOKEN}", "for .mcp.json"),
        (
            "cursor",
            "mcpServers",
            "${env:TOKEN}",
            "for .cursor/mcp.json",
        ),
        ("vscode", "servers", "${env:TOKEN}", "for .vscode/mcp.json"),
    ] {
        let (stdout, stderr, sandbox) = print_configuration(client);
        assert!(stderr.contains(file), "{client}: {stderr}");
        let printed: Value = serde_json::from_str(&stdout).unwrap();
        let server = json!({
            "type": "stdio",
            "command": fs::canonicalize(env!("CARGO_BIN_EXE_toolq")).unwrap(),
            "args": printed_arguments(&sandbox),
            "env": {"TOKEN": reference},
        });
        assert_eq!(printed, json!({key: {"my_tools": server}}), "{client}");
    }
}

/// <https://developers.openai.com/codex/mcp>: a table `mcp_servers.NAME`; `env_vars` are the variables to forward.
#[test]
fn the_configuration_of_codex_is_toml() {
    let (stdout, stderr, sandbox) = print_configuration("codex");
    assert!(stderr.contains("config.toml"), "{stderr}");
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_toolq")).unwrap();
    let expected = format!(
        "[mcp_servers.my_tools]\ncommand = {}\nargs = {}\nenv_vars = [\"TOKEN\"]\n",
        json!(program),
        printed_arguments(&sandbox)
    );
    assert_eq!(stdout, expected);
}
