//! Tools of MCP servers, with a server that is a shell script.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::waiting::{is_running, wait_until, wait_until_gone};
use support::{CliSandbox, parse_json_lines};

/// A server that notes its pid, its starts, every call and its end. What a call does depends on the tool's name.
const SERVER: &str = r#"#!/bin/sh
echo "$$" >> starts
echo "listening on stdio"
trap 'echo term >> ends; exit 0' TERM
while read -r line; do
  rest=${line#*'"id":'}
  id=${rest%%,*}
  case $line in
  *'"method":"server/discover"'*)
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"what?"}}\r\n' "$id" ;;
  *'"method":"initialize"'*)
    printf '\n{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}}\n' "$id" ;;
  *'"method":"notifications/cancelled"'*) echo cancelled >> calls ;;
  *'"method":"tools/call"'*)
    printf '%s\n' "$line" >> calls
    case $line in
    *'"name":"hang"'*) ;;
    *'"name":"leave"'*) sleep 600 & echo "$!" >> starts ;;
    *'"name":"die"'*) echo "out of cheese" >&2; exit 3 ;;
    *'"name":"fail"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"content":[{"type":"text","text":"no such note"}]}}\n' "$id" ;;
    *'"name":"refuse"'*)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown tool"}}\n' "$id" ;;
    *'"name":"picture"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}}\n' "$id" ;;
    *'"name":"count"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"n": 12345678901234567890.10}}}\n' "$id" ;;
    *)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}}\n' "$id" ;;
    esac ;;
  esac
done
echo eof >> ends
"#;

const TOOLS: &str = r#"
version: 1
servers:
  notes:
    command: {argv: [./server], env: {SERVER_TOKEN: "${SERVER_TOKEN:-}"}}
tools:
  read: &read
    input_schema: {type: object}
    effect: read
    timeout: 20s
    mcp: {server: notes}
  get_note:
    input_schema: {type: object, properties: {name: {type: string}, n: {}}, required: [name]}
    effect: read
    mcp: {server: notes, tool: read, arguments: {path: "notes/{name}.md", n: "{n?}", deep: [true, {x: 1.50}]}}
  fail: *read
  refuse: *read
  hang: {input_schema: {type: object}, effect: read, timeout: 300ms, mcp: {server: notes}}
  pay: {input_schema: {type: object}, timeout: 300ms, mcp: {server: notes, tool: hang}}
  die: *read
  die_paying: {input_schema: {type: object}, mcp: {server: notes, tool: die}}
  leave: {input_schema: {type: object}, effect: read, timeout: 300s, mcp: {server: notes}}
  picture: {input_schema: {type: object}, effect: read, output: content, mcp: {server: notes}}
  count: {input_schema: {type: object}, effect: read, output: json, mcp: {server: notes}}
"#;

fn sandbox(calls: &[(&str, Value)]) -> CliSandbox {
    let blocks = calls.iter().enumerate().map(|(index, (tool, input))| {
        json!({"type": "tool_use", "id": format!("c{index}"), "name": tool, "input": input})
    });
    let message = json!({"role": "assistant", "content": blocks.collect::<Value>()});
    CliSandbox::new()
        .tools(TOOLS)
        .program("server", SERVER)
        .stdin(message.to_string())
}

/// Returns the lines of a file that the server writes.
fn lines(dir: &Path, name: &str) -> Vec<String> {
    let text = fs::read_to_string(dir.join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn calls_of_one_server_share_its_process_which_ends_with_the_run() {
    let calls: Vec<(&str, Value)> = (0..5).map(|_| ("read", json!({}))).collect();
    let output = sandbox(&calls).run(&["run", "-q"]).assert_exit(0);
    assert_eq!(
        output.result_texts(),
        vec![("one\ntwo".to_owned(), false); 5]
    );
    let dir = output.dir.path();
    assert_eq!(lines(dir, "starts").len(), 1);
    assert_eq!(lines(dir, "calls").len(), 5);
    assert_eq!(lines(dir, "ends"), ["eof"], "the server ended by itself");
}

#[test]
fn nothing_starts_without_a_call() {
    for arguments in [&["plan"][..], &["check"], &["tools"]] {
        let output = sandbox(&[("read", json!({}))])
            .run(arguments)
            .assert_exit(0);
        assert_eq!(output.file("starts"), None, "{arguments:?}");
    }
}

#[test]
fn arguments_are_filled_as_values_and_keep_their_digits() {
    let name = "\u{2028}\"}, {\n$(id) -x";
    let input = json!({"name": name, "n": 1});
    let text = input
        .to_string()
        .replace("\"n\":1", "\"n\":12345678901234567890.10");
    let message = format!(r#"{{"type":"tool_use","id":"c0","name":"get_note","input":{text}}}"#);
    let output = sandbox(&[])
        .stdin(message)
        .run(&["run", "-q"])
        .assert_exit(0);
    let calls = lines(output.dir.path(), "calls");
    assert!(calls[0].contains("12345678901234567890.10"), "{calls:?}");
    let call: Value = serde_json::from_str(&calls[0]).unwrap();
    assert_eq!(
        call["params"]["arguments"]["path"],
        format!("notes/{name}.md")
    );
    assert_eq!(
        call["params"]["arguments"]["deep"],
        json!([true, {"x": 1.5}])
    );
    assert_eq!(call["params"]["name"], "read");
}

/// A path is judged as the argument that it becomes, and ordinary names still pass.
#[test]
fn a_path_that_an_argument_leads_outside_is_refused() {
    let tools = TOOLS.replace(
        "  get_note:\n",
        "  open: {input_schema: {type: object}, effect: read, paths: [p], mcp: {server: notes, tool: read, arguments: {path: \"link/{p?}\"}}}\n  get_note:\n",
    );
    for (name, is_refused) in [
        ("hostname", true),
        ("../x", true),
        ("x/../../y", true),
        ("/etc/hostname", true),
    ] {
        let sandbox = sandbox(&[("open", json!({"p": name}))]).tools(&tools);
        std::os::unix::fs::symlink("/etc", sandbox.path().join("link")).unwrap();
        let output = sandbox.run(&["run", "-q"]);
        assert_eq!(output.result_texts()[0].1, is_refused, "{name}");
        assert_eq!(output.file("calls"), None, "{name}");
    }
    for name in ["src", "a b", "ü", "-n", "a:b", "a=b"] {
        let sandbox = sandbox(&[("open", json!({"p": name}))]).tools(&tools);
        fs::create_dir(sandbox.path().join("link")).unwrap();
        let output = sandbox.run(&["run", "-q"]).assert_exit(0);
        let call: Value = serde_json::from_str(&lines(output.dir.path(), "calls")[0]).unwrap();
        assert_eq!(call["params"]["arguments"]["path"], format!("link/{name}"));
    }
}

/// `defaults: {leftovers: allow}` is about commands. A server that outlived the run would wait for nobody.
#[test]
#[cfg(target_os = "linux")]
fn a_server_ends_with_the_run_even_where_commands_may_leave_processes() {
    let tools = TOOLS.replace("servers:\n", "defaults: {leftovers: allow}\nservers:\n");
    let tools = tools.replace("timeout: 300s", "timeout: 300ms");
    let output = sandbox(&[("leave", json!({}))])
        .tools(&tools)
        .run(&["run", "-q"]);
    let pids = lines(output.dir.path(), "starts");
    assert_eq!(pids.len(), 2);
    wait_until_gone(&pids);
}

/// What says what may run, and what is on record, isn't for a model to write.
#[test]
fn only_tools_that_read_get_the_paths_of_toolqs_own_files() {
    let tools = TOOLS.replace(
        "  fail: *read",
        r#"  open: {input_schema: {type: object}, effect: read, paths: [p], mcp: {server: notes, tool: read}}
  save: {input_schema: {type: object}, paths: [p], mcp: {server: notes, tool: read}}
  append: {input_schema: {type: object, properties: {p: {type: string}}, required: [p]}, paths: [p], on_failure: continue, command: [touch, "{p}"]}
  fail: *read"#,
    );
    let paths = [
        "tools.yaml",
        "link",
        "tools.lock",
        "log.jsonl",
        "log.jsonl.d/x",
        "a.txt",
    ];
    let calls: Vec<(&str, Value)> = ["open", "save", "append"]
        .iter()
        .flat_map(|tool| paths.iter().map(|path| (*tool, json!({ "p": path }))))
        .collect();
    let sandbox = sandbox(&calls).tools(&tools);
    std::os::unix::fs::symlink("tools.yaml", sandbox.path().join("link")).unwrap();
    let output = sandbox.run(&["run", "-q", "--log", "log.jsonl"]);
    let results = output.result_texts();
    for ((tool, input), (text, is_error)) in calls.iter().zip(&results) {
        let is_refused = *tool != "open" && input["p"] != "a.txt";
        assert_eq!(*is_error, is_refused, "{tool} {input}: {text}");
        for part in ["belongs to toolq", "own rules and records"] {
            assert_eq!(text.contains(part), is_refused, "{text}");
        }
        assert!(!text.contains("relative path"), "{text}");
    }
    assert_eq!(lines(output.dir.path(), "calls").len(), paths.len() + 1);
    assert_eq!(output.file("a.txt").as_deref(), Some(""));
}

#[test]
fn errors_of_the_server_are_results_and_images_stay_images() {
    let calls = ["fail", "refuse", "picture", "count", "read"].map(|tool| (tool, json!({})));
    let output = sandbox(&calls).run(&["run", "-q"]).assert_exit(0);
    let results = output.results();
    let text = |index: usize| results[index]["content"].as_str().unwrap_or_default();
    assert!(text(0).contains("no such note"), "{}", text(0));
    assert!(text(1).contains("unknown tool"), "{}", text(1));
    assert_eq!(
        results[2]["content"][0]["source"]["media_type"],
        "image/png"
    );
    assert_eq!(text(3), r#"{"n":12345678901234567890.10}"#);
    assert_eq!(text(4), "one\ntwo");
}

/// `result` of the server counts for all of its tools, and that of a tool for itself.
#[test]
fn the_model_reads_the_parts_of_a_result_that_the_file_says() {
    let both = r#"{"content":[{"type":"text","text":"one note"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"structuredContent":{"n": 1.50}}"#;
    let server = SERVER.replace(
        "*'\"name\":\"count\"'*)",
        &format!("*'\"name\":\"parts\"'*) printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}}\\n' \"$id\" '{both}' ;;\n    *never*)"),
    );
    let tool = |name: &str, output: &str, result: &str| {
        format!(
            "  {name}: {{input_schema: {{type: object}}, effect: read, output: {output}, mcp: {{server: notes, tool: parts{result}}}}}\n"
        )
    };
    let added = [
        tool("of_server", "content", ""),
        tool("both", "content", ", result: both"),
        tool("plain", "content", ", result: content"),
        tool("text", "text", ""),
        tool("json", "json", ", result: content"),
    ];
    let tools = TOOLS
        .replace("  notes:\n", "  notes:\n    result: structured\n")
        .replace("  fail: *read", &format!("{}  fail: *read", added.concat()));
    let calls =
        ["of_server", "both", "plain", "text", "json", "read"].map(|tool| (tool, json!({})));
    let output = sandbox(&calls)
        .tools(&tools)
        .program("server", &server)
        .run(&["run", "-q"])
        .assert_exit(0);
    let results = output.results();
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let structured = text(r#"{"n": 1.50}"#);
    for (result, expected) in results.iter().zip([
        json!([structured, image]),
        json!([text("one note"), image, structured]),
        json!([text("one note"), image]),
    ]) {
        assert_eq!(result["content"], expected);
    }
    let plain = results[3]["content"].as_str().unwrap();
    assert!(plain.starts_with("{\"n\": 1.50}\n[an image"), "{plain}");
    assert_eq!(results[4]["content"], r#"{"n":1.50}"#);
    assert_eq!(results[5]["content"], "one\ntwo");
}

/// What a model can't read as it is stays beside the log. The text says where.
#[test]
fn sounds_resources_and_images_without_room_are_kept_beside_the_log() {
    let large = "QUJD".repeat(30_000);
    let content = json!([
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "image", "data": large, "mimeType": "image/png"},
        {"type": "image", "data": "PHN2Zy8+", "mimeType": "image/svg+xml"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": "JVBERg=="}},
        {"type": "resource_link", "uri": "file:///b.txt", "name": "b"},
        {"type": "audio", "data": "no base64", "mimeType": "audio/wav"},
    ]);
    let result = json!({ "content": content }).to_string();
    let server = SERVER.replace(
        "*'\"name\":\"picture\"'*)",
        "*'\"name\":\"picture\"'*|*'\"name\":\"plain\"'*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\\n' \"$id\" \"$(cat content.json)\" ;;\n    *never*)",
    );
    let tools = TOOLS.replace("  fail: *read", "  plain: *read\n  fail: *read");
    let calls = [("picture", json!({})), ("plain", json!({}))];
    let script = r#""$TOOLQ" run -q --log log.jsonl && "$TOOLQ" -q log verify log.jsonl >&2 || exit 9
        for file in log.jsonl.d/*.wav; do echo damage > "$file"; done
        "$TOOLQ" -q log verify log.jsonl >&2 && exit 8
        for file in log.jsonl.d/*.wav; do printf RIFF > "$file"; done"#;
    let output = sandbox(&calls)
        .tools(&tools)
        .program("server", &server)
        .file("content.json", &result)
        .run_shell(script)
        .assert_exit(0);
    let log = parse_json_lines(&output.file("log.jsonl").unwrap());
    let mut ends = log.iter().filter(|record| record["type"] == "tool_result");
    let end = ends.find(|end| end["metadata"]["tool_name"] == "picture");
    let named = end.unwrap()["metadata"]["attachments"].clone();
    let extensions: Vec<&str> = (named.as_array().unwrap().iter())
        .filter_map(|name| name.as_str()?.rsplit('.').next())
        .collect();
    assert_eq!(extensions, ["png", "svg", "wav", "pdf"]);
    let results = output.results();
    let blocks = results[0]["content"].as_array().unwrap();
    assert_eq!(blocks[0]["source"]["data"], "AAAA");
    let text = |index: usize| blocks[index]["text"].as_str().unwrap();
    let saved = |index: usize, what: &str| {
        let rest = text(index)
            .strip_prefix(what)
            .unwrap_or_else(|| panic!("{}", text(index)));
        let path = rest
            .strip_prefix(", saved in ")
            .unwrap()
            .strip_suffix(']')
            .unwrap();
        (
            fs::read(output.dir.path().join(path)).unwrap(),
            path.to_owned(),
        )
    };
    assert_eq!(
        saved(1, "[an image of type image/png, 87.8 KiB").0,
        b"ABC".repeat(30_000)
    );
    assert_eq!(
        saved(2, "[an image of type image/svg+xml, 6 bytes").0,
        b"<svg/>"
    );
    let (sound, path) = saved(3, "[a sound of type audio/wav, 4 bytes");
    assert_eq!(sound, b"RIFF");
    assert!(
        path.contains("log.jsonl.d/") && path.strip_suffix(".wav").is_some(),
        "{path}"
    );
    assert_eq!(
        saved(4, "[the binary resource file:///a.pdf, 4 bytes").0,
        b"%PDF"
    );
    assert_eq!(text(5), "[a link to file:///b.txt, b]");
    assert_eq!(text(6), "[a sound of type audio/wav that can't be decoded]");
    let plain = results[1]["content"].as_str().unwrap();
    assert!(
        plain.starts_with("[an image of type image/png, 3 bytes, saved in "),
        "{plain}"
    );
}

#[test]
fn events_say_when_a_server_is_ready_and_when_it_has_ended() {
    for (tool, cause, exit) in [("read", "run_ended", 0), ("die", "exited", 3)] {
        let output = sandbox(&[(tool, json!({}))])
            .run(&["run", "-q", "--events", "events"])
            .assert_exit(0);
        let events = parse_json_lines(&output.file("events").unwrap());
        let is_of_server = |event: &&Value| event.get("server").is_some();
        let events: Vec<&Value> = events.iter().filter(is_of_server).collect();
        let (start, end) = (events[0], events[1]);
        assert_eq!(
            (&start["type"], &start["server"], &start["protocol"]),
            (
                &json!("server_started"),
                &json!("notes"),
                &json!("2025-11-25")
            )
        );
        assert!(
            start["ready_ms"].is_u64() && start.get("turn").is_none(),
            "{start}"
        );
        assert_eq!(
            (&end["type"], &end["cause"], &end["exit"], &end["calls"]),
            (
                &json!("server_ended"),
                &json!(cause),
                &json!(exit),
                &json!(1)
            )
        );
        assert_eq!(end["error"].is_string(), tool == "die", "{end}");
    }
}

#[test]
fn a_read_that_times_out_is_cancelled_and_the_server_goes_on() {
    let output = sandbox(&[("hang", json!({})), ("read", json!({}))]).run(&["run", "-q"]);
    let results = output.result_texts();
    assert!(results[0].0.contains("300ms"), "{results:?}");
    assert_eq!(results[1], ("one\ntwo".to_owned(), false));
    let dir = output.dir.path();
    assert_eq!(lines(dir, "starts").len(), 1);
    assert!(lines(dir, "calls").contains(&"cancelled".to_owned()));
}

#[test]
fn a_write_without_an_answer_is_in_doubt_and_runs_no_second_time() {
    for tool in ["pay", "die_paying"] {
        let script = r#"cat > in.json
            "$TOOLQ" run -q --log log.jsonl in.json > first.json
            "$TOOLQ" run -q --log log.jsonl --resume in.json"#;
        let output = sandbox(&[(tool, json!({}))])
            .run_shell(script)
            .assert_exit(3);
        let results = output.result_texts();
        assert!(results[0].0.starts_with("In doubt:"), "{results:?}");
        assert_eq!(output.file("first.json").as_ref(), Some(&output.stdout));
        let calls = lines(output.dir.path(), "calls");
        let made = calls
            .iter()
            .filter(|line| line.contains("tools/call"))
            .count();
        assert_eq!(made, 1, "{tool}: {calls:?}");
    }
}

#[test]
fn a_server_that_dies_fails_its_call_with_its_last_words_and_starts_again() {
    let calls = [("die", json!({})), ("read", json!({}))];
    let output = sandbox(&calls).run(&["run", "-q", "-j", "1"]);
    let results = output.result_texts();
    assert!(results[0].0.contains("out of cheese"), "{results:?}");
    assert_eq!(results[1], ("one\ntwo".to_owned(), false));
    assert_eq!(lines(output.dir.path(), "starts").len(), 2);
}

/// The file beside the log holds what the server said, and the failure its last lines.
#[test]
fn the_log_says_what_a_server_did() {
    let server = SERVER
        .replace(
            "echo \"out of cheese\"",
            "printf 'token %s\\n  in the cellar\\nout of cheese\\n' \"$SERVER_TOKEN\"",
        )
        .replace("*'\"name\":\"hang\"'*)", "*'\"name\":\"hang\"'*) late=$id ;;\n    *'\"name\":\"read\"'*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\\n' $late \"$id\" ;;\n    *never*)");
    let calls = ["hang", "read", "die", "read"].map(|tool| (tool, json!({})));
    let output = sandbox(&calls)
        .program("server", &server)
        .env("SERVER_TOKEN", "s3cr3t-canary-value")
        .run_shell(r#""$TOOLQ" run -q -j 1 --log log.jsonl && "$TOOLQ" log verify log.jsonl && "$TOOLQ" log show log.jsonl"#)
        .assert_exit(0);
    let text = output.stdout.clone();
    assert!(
        text.contains("Its stderr ends with:\\ntoken [masked]\\n  in the cellar\\nout of cheese"),
        "{text}"
    );
    assert!(
        text.contains("server notes was ready again after"),
        "{text}"
    );
    let ended = "and 3 calls, with 1 late answer and 1 noise line: the server exited with code 3";
    assert!(text.contains(ended), "{text}");

    let log = output.file("log.jsonl").unwrap();
    let records: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_type = |kind: &str| -> Vec<&Value> {
        let found = records.iter().filter(|record| record["type"] == kind);
        found.collect()
    };
    let (starts, ends) = (of_type("server_start"), of_type("server_end"));
    assert_eq!((starts.len(), ends.len()), (2, 2), "{log}");
    for (number, (start, end)) in starts.iter().zip(&ends).enumerate() {
        let metadata = &start["metadata"];
        assert_eq!(metadata["server"], "notes");
        assert_eq!(metadata["earlier_starts"], number);
        assert_eq!(metadata["protocol"], "2025-11-25");
        assert_eq!(metadata["era"], "legacy");
        assert_eq!(
            (&metadata["name"], &metadata["version"]),
            (&json!("t"), &json!("1"))
        );
        assert!(metadata["ready_ms"].is_u64(), "{start}");
        assert_eq!(end["parentId"], start["id"]);
    }
    let died = &ends[0]["metadata"];
    assert_eq!(
        (&died["cause"], &died["exit"]),
        (&json!("exited"), &json!(3))
    );
    assert_eq!(died["calls"], 3);
    let file = died["stderr_saved"].as_str().unwrap();
    let saved = fs::read_to_string(output.dir.path().join(file)).unwrap();
    assert_eq!(saved, "token [masked]\n  in the cellar\nout of cheese\n");
    let ended = &ends[1]["metadata"];
    assert_eq!(
        (&ended["cause"], &ended["calls"]),
        (&json!("run_ended"), &json!(1))
    );
    assert!(ended["stderr_saved"].is_null(), "{ended}");
    let last = records.last().unwrap();
    assert_eq!(last["type"], "session_end");
}

#[test]
fn a_server_that_keeps_dying_is_started_only_so_often() {
    let tools = TOOLS.replace("  notes:\n", "  notes:\n    restarts: 1\n");
    let calls = [("die", json!({})), ("die", json!({})), ("read", json!({}))];
    let output = sandbox(&calls).tools(&tools).run(&["run", "-q", "-j", "1"]);
    let results = output.result_texts();
    let text = &results[2].0;
    assert!(
        text.contains("it has ended 2 times within 10m, and isn't started again for now"),
        "{text}"
    );
    assert_eq!(lines(output.dir.path(), "starts").len(), 2);
}

#[test]
fn a_server_that_cannot_start_fails_its_calls_alone() {
    let tools = TOOLS.replace("argv: [./server]", "argv: [./missing]");
    let output = sandbox(&[("read", json!({}))])
        .tools(&tools)
        .run(&["run", "-q"]);
    let results = output.result_texts();
    assert!(
        results[0].1 && results[0].0.contains("missing"),
        "{results:?}"
    );
}

#[test]
fn a_server_that_is_never_ready_is_given_up() {
    let tools = TOOLS
        .replace("argv: [./server]", "argv: [sleep, \"600\"]")
        .replace("  notes:\n", "  notes:\n    startup: 300ms\n");
    let output = sandbox(&[("read", json!({}))])
        .tools(&tools)
        .run(&["run", "-q"]);
    let results = output.result_texts();
    assert!(
        results[0].0.contains("wasn't ready after 300ms"),
        "{results:?}"
    );
}

#[test]
fn the_values_of_a_servers_variables_are_masked() {
    let server = SERVER.replace("out of cheese", "bad token $SERVER_TOKEN");
    let output = sandbox(&[("die", json!({}))])
        .program("server", &server)
        .env("SERVER_TOKEN", "s3cr3t-canary-value")
        .run(&["run"]);
    assert!(
        output.stdout.contains("bad token [masked]"),
        "{}",
        output.stdout
    );
    let log = Value::from(output.log_records()).to_string();
    for text in [&output.stdout, &output.stderr, &log] {
        assert!(!text.contains("s3cr3t-canary"), "{text}");
    }
}

/// The second call comes when the server has ended, and isn't counted as a restart.
#[test]
fn a_server_that_nobody_calls_is_ended_and_started_again() {
    let tools = TOOLS.replace("  notes:\n", "  notes:\n    idle: 50ms\n    restarts: 0\n");
    let tools = tools.replace(
        "  fail: *read",
        "  wait: {input_schema: {type: object}, command: [sh, -c, 'until [ -e ends ]; do sleep 0.05; done']}\n  fail: *read",
    );
    let calls = ["read", "wait", "read"].map(|tool| (tool, json!({})));
    let script = r#""$TOOLQ" run -q --log log.jsonl; jq -c 'select(.type == "server_end").metadata | [.cause, .calls]' log.jsonl >&2"#;
    let output = sandbox(&calls).tools(&tools).run_shell(script);
    let results = output.result_texts();
    assert!(results.iter().all(|(_, is_error)| !is_error), "{results:?}");
    assert_eq!(lines(output.dir.path(), "starts").len(), 2);
    assert_eq!(lines(output.dir.path(), "ends"), ["eof", "eof"]);
    assert!(output.stderr.contains(r#"["idle",1]"#), "{}", output.stderr);
}

/// A server that was idle and ends only when it is told to, or after 4 s by SIGKILL. A call that needs it again waits
/// within its own timeout, and calls of another server don't wait at all.
#[test]
fn a_server_that_takes_long_to_end_holds_up_only_its_own_calls() {
    let slow_end = "trap '' TERM; echo eof >> ends; until [ -e released ]; do sleep 0.05; done; echo released >> ends";
    let server = SERVER.replace("echo eof >> ends", slow_end);
    let other = SERVER.replace(">> ends", ">> other_ends");
    let other = other.replace(">> starts", ">> other_starts");
    let tools = TOOLS
        .replace(
            "  notes:\n",
            "  other: {command: {argv: [./other]}}\n  notes:\n    idle: 50ms\n",
        )
        .replace(
            "  fail: *read",
            "  wait: {input_schema: {type: object}, command: [sh, -c, 'until [ -e ends ]; do sleep 0.05; done']}
  release: {input_schema: {type: object}, command: [touch, released]}
  impatient: {input_schema: {type: object}, effect: read, timeout: 300ms, mcp: {server: notes, tool: read}}
  other: {input_schema: {type: object}, effect: read, mcp: {server: other}}
  fail: *read",
        );
    let calls = ["read", "wait", "impatient", "other", "release"].map(|tool| (tool, json!({})));
    let output = sandbox(&calls)
        .tools(&tools)
        .program("server", &server)
        .program("other", &other)
        .run(&["run", "-q"]);
    let results = output.result_texts();
    assert!(
        results[2].0.contains("not ready within 300ms"),
        "{results:?}"
    );
    assert_eq!(results[3], ("one\ntwo".to_owned(), false));
    let dir = output.dir.path();
    assert_eq!(lines(dir, "ends"), ["eof", "released"], "{results:?}");
    assert_eq!(lines(dir, "starts").len(), 1, "nobody needs it any more");
}

/// A call that takes long is no lack of calls.
#[test]
fn a_server_with_a_call_is_not_idle() {
    let tools = TOOLS.replace("  notes:\n", "  notes:\n    idle: 1ms\n");
    let calls = [("hang", json!({}))];
    let output = sandbox(&calls).tools(&tools).run(&["run", "-q"]);
    let results = output.result_texts();
    assert!(results[0].0.contains("300ms"), "{results:?}");
}

/// Neither the server nor what it started outlives toolq.
#[test]
#[cfg(target_os = "linux")]
fn nothing_of_a_server_survives_a_killed_run() {
    let sandbox = sandbox(&[("leave", json!({}))]);
    let mut command = sandbox.command(&["run", "-q", "--no-log"]);
    let input = sandbox.path().join("in.json");
    fs::write(
        &input,
        r#"{"type":"tool_use","id":"c0","name":"leave","input":{}}"#,
    )
    .unwrap();
    let mut run = command.arg("in.json").spawn().unwrap();
    wait_until("the server has started a process", || {
        lines(sandbox.path(), "starts").len() == 2
    });
    let pids = lines(sandbox.path(), "starts");
    assert!(pids.iter().all(|pid| is_running(pid)));
    let toolq = Pid::from_child(&run);
    kill_process(toolq, Signal::KILL).unwrap();
    run.wait().unwrap();
    wait_until_gone(&pids);
}

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
        ("argv: [./server]", "argv: [./server, \"{name}\"]", "name"),
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
