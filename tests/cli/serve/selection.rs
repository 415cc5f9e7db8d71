//! Which tools are served.

use crate::serve::client::{Client, TOOLS};
use crate::support::CliSandbox;
use serde_json::json;

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
