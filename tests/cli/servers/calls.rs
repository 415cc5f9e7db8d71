//! What a call hands to its server, and what of the answer is its result.

use std::fs;

use serde_json::{Value, json};

use crate::servers::{SERVER, TOOLS, lines, sandbox};
use crate::support::parse_json_lines;

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

/// What says what may run, and what is on record, isn't for a model to write.
#[test]
fn only_tools_that_read_get_the_paths_of_toolqs_own_files() {
    let tools = TOOLS.replace(
        "  fail: *read",
        r#"  open: {input_schema: {type: object}, effect: read, paths: [p], mcp: {server: notes, tool: read}}
  save: {input_schema: {type: object}, paths: [p], mcp: {server: notes, tool: read}}
  append: {input_schema: schema.json, paths: [p], on_failure: continue, command: [touch, "{p}"]}
  fail: *read"#,
    );
    let tools = tools.replace(
        "version: 1",
        "version: 1\ninclude: [more.yaml]\nenv_file: more.env",
    );
    let paths = [
        "tools.yaml",
        "more.yaml",
        "more.env",
        "schema.json",
        "link",
        "tools.lock",
        "log.jsonl",
        "log.jsonl.d/x",
        "state/toolq/claims/x",
        "a.txt",
    ];
    let calls: Vec<(&str, Value)> = ["open", "save", "append"]
        .iter()
        .flat_map(|tool| paths.iter().map(|path| (*tool, json!({ "p": path }))))
        .collect();
    let sandbox = sandbox(&calls).tools(&tools);
    let path_of = |name| sandbox.path().join(name);
    fs::write(path_of("more.yaml"), "version: 1\ntools: {}\n").unwrap();
    fs::write(path_of("more.env"), "A=1\n").unwrap();
    let schema =
        json!({"type": "object", "properties": {"p": {"type": "string"}}, "required": ["p"]});
    fs::write(path_of("schema.json"), schema.to_string()).unwrap();
    std::os::unix::fs::symlink("tools.yaml", path_of("link")).unwrap();
    let script = r#"
        cat > in.json; "$TOOLQ" plan -q --log log.jsonl in.json > planned
        "$TOOLQ" run -q --log log.jsonl in.json"#;
    let output = sandbox.run_shell(script);
    let results = output.result_texts();
    for ((tool, input), (text, is_error)) in calls.iter().zip(&results) {
        let is_refused = *tool != "open" && input["p"] != "a.txt";
        assert_eq!(*is_error, is_refused, "{tool} {input}: {text}");
        for part in ["belongs to toolq", "what decides what runs"] {
            assert_eq!(text.contains(part), is_refused, "{text}");
        }
        assert!(!text.contains("relative path"), "{text}");
    }
    assert_eq!(lines(output.dir.path(), "calls").len(), paths.len() + 1);
    let planned = output.file("planned").unwrap();
    for path in ["tools.yaml", "log.jsonl.d", "state/toolq"] {
        let refused = format!("must not lead to {path}, which belongs to toolq");
        assert!(planned.contains(&refused), "{planned}");
    }
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
fn a_server_learns_the_key_of_a_write_and_is_asked_for_progress_that_somebody_sees() {
    let calls = [("read", json!({})), ("pay", json!({}))];
    let meta = |arguments: &[&str]| -> Vec<Value> {
        let output = sandbox(&calls).run(&[&["run"], arguments].concat());
        let lines = lines(output.dir.path(), "calls").into_iter();
        let calls = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        calls.map(|call| call["params"]["_meta"].clone()).collect()
    };
    let unseen = meta(&["-q", "--no-log"]);
    assert_eq!(unseen[0], Value::Null);
    let names = |meta: &Value| -> Vec<String> {
        let names = meta.as_object().unwrap().keys();
        names.cloned().collect()
    };
    assert_eq!(names(&unseen[1]), ["dev.toolq/idempotency-key"]);
    for arguments in [
        ["--no-log", "--progress", "plain"],
        ["--no-log", "--events", "events.jsonl"],
    ] {
        let seen = meta(&arguments);
        assert_eq!(names(&seen[0]), ["progressToken"], "{arguments:?}");
        assert_eq!(seen[1].as_object().unwrap().len(), 2, "{arguments:?}");
    }
}
