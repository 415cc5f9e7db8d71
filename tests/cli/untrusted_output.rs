//! Untrusted output: its size, invalid bytes, and terminal control sequences.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use crate::support::{CliOutput, CliSandbox, model_response};
use serde_json::{Value, json};

/// The limit for the peak memory usage of toolq, in KiB.
const MAX_MEMORY_KIB: u64 = 64 << 10;
/// The size of a flood in bytes. `TOOLQ_TEST_FLOOD=10000000000` tests the size that the documentation promises.
const FLOOD_BYTES: u64 = 80_000_000;

/// Returns a sandbox with a tool that runs this script without input, and a call of it. `keys` are added to the tool.
fn sandbox_with_script(script: &str, keys: &str) -> CliSandbox {
    let script = serde_json::to_string(script).unwrap();
    CliSandbox::new()
        .tools(&format!(
            "version: 1\ntools:\n  tool:\n    description: Write.\n    input_schema: {{type: object}}\n    \
             effect: read\n    timeout: 10m\n    status: {{doing: working}}\n{keys}    \
             command: {{argv: [sh, -c, {script}], stdin: none}}\n"
        ))
        .stdin(model_response(&[("tool", json!({}))]))
}

fn run_script(script: &str, keys: &str) -> CliOutput {
    sandbox_with_script(script, keys)
        .run(&["run"])
        .assert_exit(0)
}

/// Returns the peak memory usage of a process in KiB, and its stdout.
fn watch_memory(mut child: Child) -> (u64, String) {
    let mut stdout = child.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        text
    });
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let mark = mark.and_then(|mark| mark.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(mark.unwrap_or_default());
        sleep(Duration::from_millis(5));
    }
    (peak, reading.join().unwrap())
}

/// Memory usage stays flat regardless of how much a program writes to stdout, stderr or both, and every byte of stdout is
/// counted.
#[test]
fn memory_stays_flat_in_a_flood() {
    let flood = std::env::var("TOOLQ_TEST_FLOOD").ok();
    let bytes = flood
        .and_then(|flood| flood.parse().ok())
        .unwrap_or(FLOOD_BYTES);
    let yes = format!("yes | head -c {bytes}");
    for (script, keys, expected) in [
        (yes.clone(), "", bytes),
        (format!("{yes} >&2"), "", 0),
        (format!("{yes} & {yes} >&2; wait"), "", bytes),
        (
            format!("head -c {bytes} /dev/zero"),
            "    output: json\n",
            bytes,
        ),
    ] {
        let toolq = sandbox_with_script(&script, keys);
        let mut child = toolq.command(&["run", "--log", "log"]).spawn().unwrap();
        let input = model_response(&[("tool", json!({}))]);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        let (peak, stdout) = watch_memory(child);
        assert!(peak < MAX_MEMORY_KIB, "{script}: {peak} KiB");
        assert!(stdout.len() < 1 << 20);
        // Only the beginning of a document is kept, which no file may pass off as the whole.
        assert!(
            keys.is_empty() || stdout.contains("the whole output was not kept"),
            "{stdout}"
        );
        let log = fs::read_to_string(toolq.path().join("log")).unwrap();
        assert!(log.contains(&format!("\"bytes\":{expected}")), "{log}");
    }
}

/// Characters that arrive byte by byte are reassembled. Incomplete ones are replaced.
#[test]
fn characters_may_arrive_in_pieces() {
    let complete =
        r"for b in 303 251 344 270 255 360 237 230 200; do printf '\'$b; sleep 0.01; done";
    assert_eq!(
        run_script(complete, "").result_texts(),
        [("é中😀".to_owned(), false)]
    );
    let incomplete =
        r"printf '\303'; sleep 0.02; printf '(\344\270'; sleep 0.02; printf ')\377\000'";
    let ran = run_script(incomplete, "");
    assert_eq!(ran.result_texts()[0].0, "\u{FFFD}(\u{FFFD})\u{FFFD}\0");
    let lossy = |record: &&Value| record["metadata"]["lossy"] == true;
    assert_eq!(ran.log_records().iter().filter(lossy).count(), 1);
}

/// The model gets a raw output verbatim. On stderr, color, cursor and bidirectional control sequences are escaped.
#[test]
fn terminal_sequences_are_escaped_on_stderr() {
    let hostile = "\x1b[31mred\x1b]0;title\x07\x1b]52;c;aGk=\x07\rover\u{9b}1A\u{202e}txt\u{200b}";
    let status = json!({"tip": hostile, "progress": 0.5}).to_string();
    let script = "cat status >&3; cat output; cat output >&2; exit 3";
    let name = format!("tool{hostile}");
    for progress in ["plain", "none"] {
        let ran = sandbox_with_script(script, "    raw: true\n")
            .file("output", hostile)
            .file("status", format!("{status}\n"))
            .stdin(model_response(&[("tool", json!({})), (&name, json!({}))]))
            .run(&["run", "-v", "--progress", progress])
            .assert_exit(0);
        assert!(ran.result_texts()[0].0.contains(hostile));
        let seen = ran.stderr.chars();
        let hidden = seen.filter(|c| c.is_control() && *c != '\n');
        assert_eq!(hidden.count(), 0, "{:?}", ran.stderr);
        assert!(!ran.stderr.contains(['\u{202e}', '\u{200b}']));
        assert!(ran.stderr.contains("\\x1b[31mred"), "{:?}", ran.stderr);
    }
}

/// Along with what the tool printed instead.
#[test]
fn invalid_json_is_reported_with_its_position() {
    for (output, position) in [
        ("{\"a\": 1,\\n \"b\": oops}", "line 2 column 7"),
        ("{\"a\": [1, 2", "line 1 column 11"),
        ("", "the output is empty"),
        ("{} {}", "line 1 column 4"),
        ("\"ab\\377\"", "invalid byte at offset 3"),
    ] {
        let ran = run_script(&format!("printf '{output}'"), "    output: json\n");
        let (text, is_error) = &ran.result_texts()[0];
        assert!(is_error & text.contains(position), "{output}: {text}");
    }
}

/// Content blocks that fit are passed on verbatim. Too large or malformed ones are an error, never truncated.
#[test]
fn content_blocks_are_passed_on_whole_or_not_at_all() {
    let image = |bytes: usize| {
        json!([
            {"type": "text", "text": "a plot"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(bytes)}},
        ])
    };
    let printed = |blocks: &str, limit: &str| {
        let keys = format!("    output: content\n    max_output: {limit}\n");
        let toolq = sandbox_with_script("cat blocks", &keys).file("blocks", blocks);
        toolq.run(&["run"]).assert_exit(0).results()[0].clone()
    };
    let fits = printed(&image(1 << 20).to_string(), "2MiB");
    assert_eq!(
        (&fits["content"], &fits["is_error"]),
        (&image(1 << 20), &json!(false))
    );
    let large = printed(&image(1 << 20).to_string(), "1MiB");
    assert_eq!(large["is_error"], true);
    let text = large["content"].as_str().unwrap();
    assert!(text.contains("more than max_output (1048576)"), "{text}");
    let half = printed(
        r#"[{"type":"text","text":"\ud83d and \ud83d\ude00"}]"#,
        "1KiB",
    );
    let text = half["content"].as_str().unwrap();
    assert!(
        text.contains("/0: a string contains a lone surrogate"),
        "{text}"
    );
}
