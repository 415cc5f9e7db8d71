//! Canaries replace secrets in every place where a secret can reach toolq. Regardless of what a tool, server or model does
//! with one, nothing that toolq writes may contain it: stdout, stderr, session log and the files next to it, events, plans.

mod leak_sources;
#[cfg(target_os = "linux")]
mod own_process;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::{fs, thread};

use crate::support::{CliSandbox, model_response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leak_sources::{LeakSource, http_sources, model_input_sources, tool_output_sources};
use serde_json::{Value, json};

/// A canary that looks like an ordinary API key.
const PLAIN: &str = "c4n4ry-plain-0123456789";
/// A canary full of characters that quoting, JSON and URLs encode differently.
const ODD: &str = "c4n4ry \"odd\" o'\\é/+=&%\ttab";

/// Starts a server that echoes each request in its response body, with status 500 for paths that begin with `/500`. Returns
/// its URL.
fn echo_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = vec![0; 1 << 16];
            let len = stream.read(&mut request).unwrap_or_default();
            let body = &request[..len];
            let status = if body.starts_with(b"GET /500") {
                "500 No"
            } else {
                "200 OK"
            };
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(&[head.as_bytes(), body].concat());
        }
    });
    url
}

fn tools(backing: &str) -> String {
    let schema = "{type: object, properties: {x: {type: string}, n: {type: integer}, list: {type: array}}, additionalProperties: false}";
    format!("secrets: [PLAIN, ODD]\ntools:\n  it:\n    input_schema: {schema}\n    {backing}\n")
}

fn toolq(tools: &str) -> CliSandbox {
    CliSandbox::new()
        .tools(tools)
        .env("PLAIN", PLAIN)
        .env("ODD", ODD)
}

/// The texts that may appear nowhere: the common prefix of both canaries, plain, percent-encoded and escaped, and its
/// base64 at each of the three possible alignments.
fn canary_traces() -> Vec<String> {
    let encoded = (0..3).map(|skip| {
        let encoded = STANDARD.encode([&b"\0\0\0"[..skip], b"c4n4ry"].concat());
        encoded[(skip * 8_usize).div_ceil(6)..(skip + 6) * 8 / 6].to_owned()
    });
    let plain = ["c4n4ry", "%63%34%6e", "%63%34%6E", "tab\"", "u0063"];
    encoded.chain(plain.map(str::to_owned)).collect()
}

#[track_caller]
fn assert_no_canary(what: &str, text: &str) {
    for trace in canary_traces() {
        assert!(!text.contains(&trace), "{what} contains {trace}:\n{text}");
    }
}

/// Collects path and text of every file that a run wrote: all but tools.yaml.
fn collect_written_files(dir: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_written_files(&path, files);
        } else if !path.ends_with("tools.yaml") {
            let bytes = fs::read(&path).unwrap();
            files.push((
                path.display().to_string(),
                String::from_utf8_lossy(&bytes).into_owned(),
            ));
        }
    }
}

/// Runs the calls with every kind of output. No output may contain a canary. Returns whether one was masked.
fn run_and_check_outputs(name: &str, toolq: CliSandbox, calls: &[(&str, Value)]) -> bool {
    let ran = toolq.stdin(model_response(calls)).run(&[
        "run",
        "-v",
        "--progress",
        "plain",
        "--events",
        "events.ndjson",
        "--log",
        "log.jsonl",
    ]);
    assert!(ran.code == 0 || ran.code == 3, "{name}: {}", ran.stderr);
    let mut outputs = vec![
        ("stdout".to_owned(), ran.stdout.clone()),
        ("stderr".to_owned(), ran.stderr.clone()),
    ];
    collect_written_files(ran.dir.path(), &mut outputs);
    assert!(outputs.len() >= 4, "{name}: log or events are missing");
    for (output, text) in &outputs {
        assert_no_canary(&format!("{name}: {output}"), text);
    }
    outputs.iter().any(|(_, text)| text.contains("[masked]"))
}

/// A tool, a server or a model may repeat a secret: it is masked in results, the log, saved outputs, events, progress
/// and messages.
#[test]
fn a_canary_is_in_no_output() {
    let server = echo_server();
    let sources: Vec<LeakSource> = [
        tool_output_sources(),
        http_sources(&server),
        model_input_sources(),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert!(sources.len() >= 12);
    for source in &sources {
        let calls = [("it", source.input.clone())];
        let was_masked = run_and_check_outputs(source.name, toolq(&tools(&source.backing)), &calls);
        assert_eq!(was_masked, !source.is_omitted, "{}", source.name);
    }
}

/// Names and ids that a model makes up are masked, too. Only on stdout an id stays verbatim, so that the caller can match
/// the result to its call.
#[test]
fn a_canary_in_a_name_is_in_no_output() {
    let long = format!("{}{PLAIN}", "x".repeat(90));
    let longer = format!("{}{PLAIN}", "x".repeat(190));
    let calls = [PLAIN, ODD, &long, &longer].map(|name| (name, json!({})));
    let new_toolq = || toolq(&tools("command: [\"true\"]"));
    assert!(run_and_check_outputs(
        "an unknown tool",
        new_toolq(),
        &calls
    ));

    let call = json!({"type": "tool_use", "id": PLAIN, "name": "it", "input": {}});
    let ran = new_toolq()
        .stdin(call.to_string())
        .run(&[
            "run",
            "-v",
            "--progress",
            "plain",
            "--events",
            "events.ndjson",
            "--log",
            "log.jsonl",
        ])
        .assert_exit(0);
    assert_eq!(ran.json()["tool_use_id"], PLAIN);
    let mut outputs = vec![("stderr".to_owned(), ran.stderr)];
    collect_written_files(ran.dir.path(), &mut outputs);
    for (output, text) in outputs {
        assert_no_canary(&output, &text);
    }
}

/// A plan shows the real arguments with secrets masked, however it quotes them.
#[test]
fn a_canary_is_in_no_plan() {
    let backings = [
        "command: {argv: [echo, --, \"{x}\"], env: {K: \"${PLAIN}\", X: \"{x}\"}, stdin: \"{x}\"}",
        "http: {method: POST, url: \"http://127.0.0.1:1/{x}\", query: {k: \"${PLAIN}\", x: \"{x}\"}, headers: {k: \"${PLAIN}\"}, body: {x: \"{x}\", k: \"${ODD}\"}}",
    ];
    let inputs = [PLAIN, ODD, &format!("{ODD}\n\u{1b}[31m")].map(|text| json!({ "x": text }));
    for backing in backings {
        for format in ["text", "json", "html"] {
            let valid = inputs.iter().map(|input| ("it", input.clone()));
            let invalid = [(PLAIN, json!({})), ("it", json!({ODD: 1}))];
            let calls: Vec<_> = valid.chain(invalid).collect();
            let ran = toolq(&tools(backing))
                .stdin(model_response(&calls))
                .run(&["plan", "-v", "--format", format])
                .assert_exit(0);
            assert_no_canary(format, &ran.stdout);
            assert_no_canary("stderr", &ran.stderr);
            assert!(ran.stdout.contains("[masked"), "{}", ran.stdout);
        }
    }
}

/// Messages about files whose names contain a canary mask it.
#[test]
fn a_canary_is_in_no_message() {
    let tools = tools("command: [echo]");
    let calls = model_response(&[("it", json!({}))]);
    let run = |arguments: &[&str]| {
        let ran = toolq(&tools)
            .file(&format!("{PLAIN}/tools.yaml"), &tools)
            .stdin(&calls);
        let ran = ran.run(&[&["run", "-v"], arguments].concat());
        assert_no_canary("stdout", &ran.stdout);
        assert_no_canary("stderr", &ran.stderr);
        assert!(ran.stderr.contains("[masked]"), "{}", ran.stderr);
        ran
    };
    run(&["--log", &format!("{PLAIN}/missing/log.jsonl")]).assert_exit(4);
    run(&["--events", &format!("{PLAIN}/missing/events")]).assert_exit(2);
    let ran = run(&[
        "-c",
        &format!("{PLAIN}/tools.yaml"),
        "--log",
        &format!("{PLAIN}.jsonl"),
    ]);
    assert_no_canary(
        "the log",
        &ran.assert_exit(0).file(&format!("{PLAIN}.jsonl")).unwrap(),
    );
}

/// A secret may be any number. Where it is masked, JSON stays JSON.
#[test]
fn a_masked_number_keeps_json_valid() {
    let tools = "secrets: [PIN]\ntools:\n  it:\n    input_schema: {type: object}\n    output: json\n    \
                 command: [echo, '{\"pin\": 31415926, \"at\": [31415926.5], \"ok\": 1}']\n";
    let ran = CliSandbox::new()
        .tools(tools)
        .env("PIN", "31415926")
        .stdin(model_response(&[("it", json!({}))]))
        .run(&["run"])
        .assert_exit(0);
    let (text, is_error) = ran.result_texts().remove(0);
    let value: Value = serde_json::from_str(&text).unwrap();
    let expected = json!({"pin": "[masked]", "at": ["[masked].5"], "ok": 1});
    assert_eq!((value, is_error), (expected, false));
}

/// The lines of a key, indented by a program, and a variable that isn't UTF-8.
#[test]
fn secrets_of_several_lines_or_other_bytes_are_masked() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let tools = "secrets: [PEM, RAW]\ntools:\n  it:\n    input_schema: {type: object}\n    command:\n      \
                 argv: [sh, -c, 'printf %s \"$PEM\" | sed \"s/^/    /\"; printf %s \"$RAW\"']\n      pass_env: [PEM, RAW]\n";
    let sandbox = CliSandbox::new()
        .tools(tools)
        .file("in.json", model_response(&[("it", json!({}))]));
    let mut command = sandbox.command(&["run", "-q", "in.json"]);
    command.env(
        "PEM",
        "-----BEGIN KEY-----\nAbCdEfGhIjKlMnOp\nQrStUvWxYz012345\n-----END KEY-----",
    );
    command.env("RAW", OsStr::from_bytes(b"c4n4ry-\xff\xfe-raw"));
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("BEGIN KEY-----\\n    [masked]\\n    [masked]\\n    "),
        "{printed}"
    );
    for secret in ["AbCdEf", "QrStUv", "c4n4ry"] {
        assert!(!printed.contains(secret), "{printed}");
    }
    let log = fs::read_dir(sandbox.path().join("state/toolq/sessions")).unwrap();
    for file in log.flatten().filter(|file| file.path().is_file()) {
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(
            !text.contains("AbCdEf") && !text.contains("c4n4ry"),
            "{text}"
        );
    }
}

/// A file that names a variable may hold its value by mistake.
#[test]
fn an_excerpt_shows_no_secret_even_of_a_broken_file() {
    for (rest, exit) in [
        // A file that is read as a whole, one with errors, and one that is no YAML.
        ("descripton: t0p-s3cret-value}}", 1),
        ("timout: t0p-s3cret-value, effect: reed}}", 1),
        ("command: [t0p-s3cret-value}}", 1),
    ] {
        let tools = format!("version: 1\nsecrets: [TOKEN]\ntools: {{a: {{{rest}\n");
        let output = CliSandbox::new()
            .tools(&tools)
            .env("TOKEN", "t0p-s3cret-value")
            .run(&["check"])
            .assert_exit(exit);
        let stderr = &output.stderr;
        assert!(!stderr.contains("s3cret"), "{stderr}");
        assert!(stderr.contains("[masked]********"), "{stderr}");
    }
}
