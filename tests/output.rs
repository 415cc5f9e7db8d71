//! Output that can't be trusted: how much of it there is, what bytes it has, and who is to read it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test that can't go on fails; how much it does is said by its environment"
)]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Ran, Toolq, response};

/// The most memory that toolq may take, in KiB.
const MOST: u64 = 64 << 10;
/// Bytes of a flood; `TOOLQ_TEST_FLOOD=10000000000` makes it what was promised.
const FLOOD: u64 = 80_000_000;

/// A tool without input whose script this is, with further keys.
fn scripted(script: &str, keys: &str) -> Toolq {
    let script = serde_json::to_string(script).unwrap();
    Toolq::new()
        .tools(&format!(
            "version: 1\ntools:\n  tool:\n    description: Write.\n    input_schema: {{type: object}}\n    \
             effect: read\n    timeout: 10m\n    status: {{doing: working}}\n{keys}    \
             command: {{argv: [sh, -c, {script}], stdin: none}}\n"
        ))
        .stdin(response(&[("tool", json!({}))]))
}

fn ran(script: &str, keys: &str) -> Ran {
    scripted(script, keys).run(&["run"]).exits(0)
}

/// The high-water mark of its memory, in KiB, and all that it wrote.
fn watched(mut child: Child) -> (u64, String) {
    let mut stdout = child.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        text
    });
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let mark = mark.and_then(|mark| mark.trim().trim_end_matches(" kB").parse().ok());
        most = most.max(mark.unwrap_or_default());
        sleep(Duration::from_millis(5));
    }
    (most, reading.join().unwrap())
}

/// FAULTS 55, 56: whatever comes on either pipe or on both, memory is flat, and every byte is counted.
#[test]
fn memory_stays_flat_in_a_flood() {
    let flood = std::env::var("TOOLQ_TEST_FLOOD").ok();
    let bytes = flood.and_then(|flood| flood.parse().ok()).unwrap_or(FLOOD);
    let yes = format!("yes | head -c {bytes}");
    for (script, keys, written) in [
        (yes.clone(), "", bytes),
        (format!("{yes} >&2"), "", 0),
        (format!("{yes} & {yes} >&2; wait"), "", bytes),
        (
            format!("head -c {bytes} /dev/zero"),
            "    output: json\n",
            bytes,
        ),
    ] {
        let toolq = scripted(&script, keys);
        let mut child = toolq.command(&["run", "--log", "log"]).spawn().unwrap();
        let asked = response(&[("tool", json!({}))]);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(asked.as_bytes()).unwrap();
        drop(stdin);
        let (most, stdout) = watched(child);
        assert!(most < MOST, "{script}: {most} KiB");
        assert!(stdout.len() < 1 << 20);
        let log = fs::read_to_string(toolq.path().join("log")).unwrap();
        assert!(log.contains(&format!("\"bytes\":{written}")), "{log}");
    }
}

/// FAULTS 74: a character that comes byte by byte, and a few that never come whole.
#[test]
fn characters_may_come_in_pieces() {
    let whole = r"for b in 303 251 344 270 255 360 237 230 200; do printf '\'$b; sleep 0.01; done";
    assert_eq!(ran(whole, "").texts(), [("é中😀".to_owned(), false)]);
    let broken = r"printf '\303'; sleep 0.02; printf '(\344\270'; sleep 0.02; printf ')\377\000'";
    let ran = ran(broken, "");
    assert_eq!(ran.texts()[0].0, "\u{FFFD}(\u{FFFD})\u{FFFD}\0");
    let lossy = |record: &&Value| record["metadata"]["lossy"] == true;
    assert_eq!(ran.log().iter().filter(lossy).count(), 1);
}

/// FAULTS 74, 78: the model reads what the tool wrote; a person sees no colour, no cursor, no other direction.
#[test]
fn people_see_no_commands() {
    let hostile = "\x1b[31mred\x1b]0;title\x07\x1b]52;c;aGk=\x07\rover\u{9b}1A\u{202e}txt\u{200b}";
    let status = json!({"tip": hostile, "progress": 0.5}).to_string();
    let script = "cat status >&3; cat said; cat said >&2; exit 3";
    let name = format!("tool{hostile}");
    for progress in ["plain", "none"] {
        let ran = scripted(script, "")
            .file("said", hostile)
            .file("status", format!("{status}\n"))
            .stdin(response(&[("tool", json!({})), (&name, json!({}))]))
            .run(&["run", "-v", "--progress", progress])
            .exits(0);
        assert!(ran.texts()[0].0.contains(hostile));
        let seen = ran.stderr.chars();
        let hidden = seen.filter(|c| c.is_control() && *c != '\n');
        assert_eq!(hidden.count(), 0, "{:?}", ran.stderr);
        assert!(!ran.stderr.contains(['\u{202e}', '\u{200b}']));
        assert!(ran.stderr.contains("\\x1b[31mred") == (progress == "plain"));
    }
}

/// An output that is not what was declared says what is wrong, and where.
#[test]
fn json_that_does_not_parse_says_where() {
    for (output, place) in [
        ("{\"a\": 1,\\n \"b\": oops}", "line 2 column 7"),
        ("{\"a\": [1, 2", "line 1 column 11"),
        ("", "line 1 column 0"),
        ("{} {}", "line 1 column 4"),
        ("\"ab\\377\"", "byte 3 begins no character"),
    ] {
        let ran = ran(&format!("printf '{output}'"), "    output: json\n");
        let (text, is_error) = &ran.texts()[0];
        assert!(is_error & text.contains(place), "{output}: {text}");
    }
}

/// FAULTS 79: images are carried as they are, if they fit; half a character is in none.
#[test]
fn content_blocks_are_carried_whole_or_not_at_all() {
    let image = |bytes: usize| {
        json!([
            {"type": "text", "text": "a plot"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(bytes)}},
        ])
    };
    let printed = |blocks: &str, limit: &str| {
        let keys = format!("    output: content\n    max_output: {limit}\n");
        let toolq = scripted("cat blocks", &keys).file("blocks", blocks);
        toolq.run(&["run"]).exits(0).results()[0].clone()
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
        text.contains("/0: a string holds half of a surrogate pair"),
        "{text}"
    );
}
