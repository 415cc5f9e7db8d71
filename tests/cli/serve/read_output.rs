//! `read_output` for the client on stdin and stdout.

use crate::serve::client::Client;
use crate::support::CliSandbox;
use serde_json::json;

const TOOLS: &str = r"
version: 1
builtins: [read_output]
tools:
  dump: {effect: read, max_output: 100, input_schema: {type: object}, command: [seq, '1000']}
";

fn client(arguments: &[&str]) -> Client {
    let sandbox = CliSandbox::new().tools(TOOLS);
    let mut client = Client::start(sandbox, &[&["serve"], arguments].concat());
    client.initialize();
    client
}

#[test]
fn a_client_reads_the_outputs_of_its_calls() {
    let mut client = client(&[]);
    let (cut, _) = client.result(1, "dump", &json!({}));
    assert!(
        cut.contains(r#"read_output {"id":"call_0"} reads it"#),
        "{cut}"
    );
    let page = client.result(2, "read_output", &json!({"id": "call_0", "limit": 4}));
    let expected = "[bytes 0 to 4 of 3893; continue with \"offset\": 4]\n1\n2\n";
    assert_eq!(page, (expected.to_owned(), false));
    let (unknown, is_error) = client.result(3, "read_output", &json!({"id": "call_9"}));
    assert!(
        is_error && unknown.contains("cut: \"call_0\"\n"),
        "{unknown}"
    );
}

/// A client that can't call the tool isn't pointed to it.
#[test]
fn a_client_that_cannot_call_it_is_not_sent_there() {
    let mut client = client(&["--only", "dump"]);
    let (cut, _) = client.result(1, "dump", &json!({}));
    assert!(cut.contains("the whole output is in"), "{cut}");
    assert!(!cut.contains("read_output"), "{cut}");
}
