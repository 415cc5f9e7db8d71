//! `JUnit`, Markdown, and what people see.

use serde_json::json;

use crate::support::Ran;
use crate::{fails, says, scene, turn};

/// The elements of an XML text: depth, and the tag as it is written. Panics where it is not well formed.
fn elements(xml: &str) -> Vec<(usize, String)> {
    let mut open: Vec<String> = Vec::new();
    let mut found = Vec::new();
    let body = xml
        .strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
        .unwrap();
    let allowed = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    assert!(body.chars().all(allowed), "a character that XML has not");
    for piece in body.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        assert!(!text.contains('>'), "{text}");
        for entity in text.split('&').skip(1).chain(tag.split('&').skip(1)) {
            let name = entity.split(';').next().unwrap();
            assert!(
                matches!(name, "amp" | "lt" | "gt" | "quot" | "#10" | "#9"),
                "{name}"
            );
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        found.push((open.len(), tag.trim_end_matches('/').to_owned()));
        if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap().to_owned());
        }
    }
    assert!(open.is_empty(), "{open:?}");
    found
}

fn hostile() -> Ran {
    let strange = "<b>&\"'\u{1b}[31m\u{7}\u{202e}]]>\u{fffe}| `x` ```\n## x @me";
    let recording = turn(&[
        (
            "a",
            "read",
            json!({"path": "poem"}),
            says("so much depends\nupon"),
        ),
        ("b", "read", json!({"path": "poem"}), says(strange)),
        (strange, "read", json!({strange: 1}), says("x")),
        ("d", strange, json!({}), fails("x")),
    ]) + &turn(&[("e", "write", json!({"text": "x"}), None)]);
    scene()
        .file("<r>&.jsonl", recording)
        .file(
            "other.jsonl",
            turn(&[("a", "write", json!({"text": "x"}), says("x"))]),
        )
        .run(&[
            "replay",
            "<r>&.jsonl",
            "other.jsonl",
            "--junit",
            "x.xml",
            "--markdown",
            "m.md",
            "--json",
            "j",
        ])
        .exits(1)
}

/// FAULTS 78: whatever a recording holds, a report is well formed, and a call is told apart from a skipped one.
#[test]
fn junit_is_well_formed_and_counts() {
    let ran = hostile();
    let xml = ran.file("x.xml").unwrap();
    let elements = elements(&xml);
    let tags = |name: &str| {
        let begin = format!("{name} ");
        elements
            .iter()
            .filter(|(_, tag)| tag.starts_with(&begin))
            .count()
    };
    assert_eq!(
        (
            tags("testsuites"),
            tags("testsuite"),
            tags("testcase"),
            tags("failure"),
            tags("skipped")
        ),
        (1, 2, 6, 2, 1)
    );
    // What Jenkins' schema lets all suites have, and what each.
    let all = "testsuites name=\"toolq replay\" tests=\"6\" failures=\"2\" errors=\"0\" time=";
    assert!(elements[0].1.starts_with(all), "{}", elements[0].1);
    let one = "name=\"&lt;r&gt;&amp;.jsonl\" tests=\"5\" failures=\"2\" errors=\"0\" time=";
    assert!(elements[1].1.contains(one), "{}", elements[1].1);
    assert!(
        xml.contains("skipped=\"1\">") && xml.contains("skipped=\"0\">"),
        "{xml}"
    );
    // The line of the tool in tools.yaml, for whoever wants to look there.
    assert!(xml.contains("file=\"tools.yaml\" line=\"3\""), "{xml}");
    assert!(xml.contains("file=\"tools.yaml\" line=\"8\""), "{xml}");
}

#[test]
fn markdown_is_a_table_without_foreign_markup() {
    let page = hostile().file("m.md").unwrap();
    assert!(
        page.starts_with("### toolq replay: 2 of 6 calls differ\n"),
        "{page}"
    );
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows.len(), 2 + 3, "{page}");
    for row in &rows {
        let cells = row.replace("\\|", "").matches('|').count();
        assert_eq!(cells, 5, "{row}");
    }
    assert!(
        !page.contains('\u{1b}') && !page.contains("\n## x"),
        "{page}"
    );
    assert!(
        page.contains("````diff"),
        "a fence that its text can't end: {page}"
    );
}

#[test]
fn people_see_what_differs() {
    let recording = turn(&[(
        "a",
        "read",
        json!({"path": "poem"}),
        says("so much depends\non"),
    )]);
    let scene = || scene().file("r.jsonl", &recording);
    let ran = scene().run(&["replay", "r.jsonl"]).exits(1);
    assert_eq!(ran.stdout, "");
    assert_eq!(
        ran.stderr,
        "r.jsonl: turn 0, read (a): the result is another\n    so much depends\n  - on\n  + upon\nnote: 1 file, 1 turn, 1 \
         call: 1 run, 0 served from the recording; 0 hold, 1 differs\n"
    );
    let colored = scene()
        .run(&["replay", "r.jsonl", "--color", "always"])
        .exits(1);
    assert!(
        colored.stderr.contains("\u{1b}[31m  - on\u{1b}[0m"),
        "{}",
        colored.stderr
    );
    let quiet = scene().run(&["replay", "r.jsonl", "-q"]).exits(1);
    assert!(!quiet.stderr.contains("note:"), "{}", quiet.stderr);
}

#[test]
fn a_report_that_cannot_be_written_is_said() {
    let recording = turn(&[(
        "a",
        "read",
        json!({"path": "poem"}),
        says("so much depends\nupon"),
    )]);
    let scene = || scene().file("r.jsonl", &recording);
    scene()
        .run(&["replay", "r.jsonl", "--json", "nowhere/j"])
        .exits(2);
    scene()
        .run(&["replay", "r.jsonl", "--json", "-", "--junit", "-"])
        .exits(2);
    let full = std::path::Path::new("/dev/full");
    if full.exists() {
        scene()
            .run(&["replay", "r.jsonl", "--json", "/dev/full"])
            .exits(74);
    }
    // A reader that goes away ends it quietly.
    let ran = scene().shell("\"$TOOLQ\" replay r.jsonl --json - 2>err | true; cat err");
    assert!(!ran.stdout.contains("panic"), "{}", ran.stdout);
}
