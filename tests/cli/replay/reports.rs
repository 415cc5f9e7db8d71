//! Reports as `JUnit`, Markdown, a page, and text on stderr.

use serde_json::json;

use crate::replay::{error_result, ok_result, recorded_turn, replay_sandbox};
use crate::support::CliOutput;

/// Returns the elements of an XML document: depth, and the tag verbatim. Panics if it isn't well-formed.
fn xml_elements(xml: &str) -> Vec<(usize, String)> {
    let mut open: Vec<String> = Vec::new();
    let mut found = Vec::new();
    let body = xml
        .strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
        .unwrap();
    let allowed = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    assert!(
        body.chars().all(allowed),
        "a character that XML doesn't allow"
    );
    for segment in body.split('<').skip(1) {
        let (tag, text) = segment.split_once('>').unwrap();
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

fn replay_hostile_recording() -> CliOutput {
    let hostile = "<b>&\"'\u{1b}[31m\u{7}\u{202e}]]>\u{fffe}| `x` ```\n## x @me";
    let recording = recorded_turn(&[
        (
            "a",
            "read",
            json!({"path": "poem"}),
            ok_result("so much depends\nupon"),
        ),
        ("b", "read", json!({"path": "poem"}), ok_result(hostile)),
        (hostile, "read", json!({hostile: 1}), ok_result("x")),
        ("d", hostile, json!({}), error_result("x")),
    ]) + &recorded_turn(&[("e", "write", json!({"text": "x"}), None)]);
    replay_sandbox()
        .file("<r>&.jsonl", recording)
        .file(
            "other.jsonl",
            recorded_turn(&[("a", "write", json!({"text": "x"}), ok_result("x"))]),
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
            "--html",
            "page.html",
        ])
        .assert_exit(1)
}

/// A report is well-formed regardless of what a recording contains, and skipped calls are marked as such.
#[test]
fn junit_is_well_formed_and_counts() {
    let ran = replay_hostile_recording();
    let xml = ran.file("x.xml").unwrap();
    let elements = xml_elements(&xml);
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
        (1, 2, 6, 3, 2)
    );
    // Jenkins' schema allows `skipped` on a suite, but not on all suites together.
    let all = "testsuites name=\"toolq replay\" tests=\"6\" failures=\"3\" errors=\"0\" time=";
    assert!(elements[0].1.starts_with(all), "{}", elements[0].1);
    let one = "name=\"&lt;r&gt;&amp;.jsonl\" tests=\"5\" failures=\"3\" errors=\"0\" time=";
    assert!(elements[1].1.contains(one), "{}", elements[1].1);
    assert_eq!(xml.matches("skipped=\"1\">").count(), 2, "{xml}");
    // The place of the tool in tools.yaml. There is no such place for an unknown tool.
    for (place, cases) in [("tools.yaml:3<", 3), ("tools.yaml:8<", 2)] {
        let element = format!("<system-out>{place}/system-out>");
        assert_eq!(xml.matches(&element).count(), cases, "{xml}");
    }
    assert_eq!(tags("system-out"), 0);
}

/// The schemas of Jenkins and Surefire allow only certain attributes on a case, and its output only at its end.
#[test]
fn junit_has_only_what_its_schemas_allow() {
    let xml = replay_hostile_recording().file("x.xml").unwrap();
    let elements = xml_elements(&xml);
    let cases = elements
        .iter()
        .filter(|(_, tag)| tag.starts_with("testcase "));
    for (_, tag) in cases {
        let attributes: Vec<&str> = tag
            .split('"')
            .step_by(2)
            .map(|part| part.trim_start_matches("testcase").trim_matches([' ', '=']))
            .filter(|name| !name.is_empty())
            .collect();
        assert_eq!(attributes, ["name", "classname", "time"], "{tag}");
    }
    for (end, next) in elements.iter().zip(elements.iter().skip(1)) {
        if end.1 == "system-out" {
            assert!(next.0 < end.0, "{next:?} comes after {end:?}");
        }
    }
}

/// A recording may contain markup and escape sequences.
#[test]
fn a_markdown_report_is_a_table_without_injected_markup() {
    let page = replay_hostile_recording().file("m.md").unwrap();
    assert!(
        page.starts_with("### toolq replay: 3 of 6 calls differ\n"),
        "{page}"
    );
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows.len(), 2 + 4, "{page}");
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
        "a fence that is longer than any in the text: {page}"
    );
    let summaries = page.lines().filter(|line| line.starts_with("<details>"));
    let summaries: Vec<&str> = summaries.collect();
    assert!(
        summaries.iter().all(|line| !line.contains(r"\_")),
        "{summaries:?}"
    );
    let different: std::collections::HashSet<_> = summaries.iter().collect();
    assert_eq!(different.len(), summaries.len(), "{summaries:?}");
}

#[test]
fn differences_are_shown_on_stderr() {
    let recording = recorded_turn(&[(
        "a",
        "read",
        json!({"path": "poem"}),
        ok_result("so much depends\non"),
    )]);
    let sandbox = || replay_sandbox().file("r.jsonl", &recording);
    let ran = sandbox().run(&["replay", "r.jsonl"]).assert_exit(1);
    assert_eq!(ran.stdout, "");
    assert_eq!(
        ran.stderr,
        "r.jsonl: turn 0, read (a): the result differs\n    so much depends\n  - on\n  + upon\nnote: 1 file, 1 turn, 1 \
         call: 1 differs\n"
    );
    let colored = sandbox()
        .run(&["replay", "r.jsonl", "--color", "always"])
        .assert_exit(1);
    assert!(
        colored.stderr.contains("\u{1b}[31m  - on\u{1b}[0m"),
        "{}",
        colored.stderr
    );
    let quiet = sandbox().run(&["replay", "r.jsonl", "-q"]).assert_exit(1);
    assert!(!quiet.stderr.contains("note:"), "{}", quiet.stderr);
}

/// A tool that searches `root` finds the recording itself, so its results change with every recording that is added.
#[test]
fn a_recording_below_root_is_a_suspect_if_a_result_names_it() {
    let recording = |result_text: &str| {
        recorded_turn(&[(
            "a",
            "read",
            json!({"path": "../names"}),
            ok_result(result_text),
        )])
    };
    let tools = crate::replay::TOOLS.replace("version: 1", "version: 1\nroot: root");
    let replay = |name: &str, result_text: &str| {
        replay_sandbox()
            .tools(&tools)
            .file("root/x", "")
            .file("names", "found: r.jsonl")
            .file(name, recording(result_text))
            .run(&["replay", name])
    };
    let inside = replay("root/r.jsonl", "other").assert_exit(1);
    assert!(
        inside.stderr.contains("recordings that lie below `root`"),
        "{}",
        inside.stderr
    );
    for (name, result_text, code) in [
        ("r.jsonl", "other", 1),
        ("root/other.jsonl", "other", 1),
        ("root/r.jsonl", "found: r.jsonl", 0),
    ] {
        let ran = replay(name, result_text).assert_exit(code);
        assert!(!ran.stderr.contains("lie below"), "{name}: {}", ran.stderr);
    }
    // No file that a tool finds makes a call unknown.
    let unknown = recorded_turn(&[("a", "gone", json!({}), ok_result("x"))]);
    let ran = replay_sandbox()
        .tools(&tools)
        .file("root/r.jsonl", unknown)
        .run(&["replay", "root/r.jsonl"])
        .assert_exit(1);
    assert!(!ran.stderr.contains("lie below"), "{}", ran.stderr);
}

/// A lost report is never a success.
#[test]
fn an_unwritable_report_is_an_error() {
    let recording = recorded_turn(&[(
        "a",
        "read",
        json!({"path": "poem"}),
        ok_result("so much depends\nupon"),
    )]);
    let sandbox = || replay_sandbox().file("r.jsonl", &recording);
    sandbox()
        .run(&["replay", "r.jsonl", "--json", "nowhere/j"])
        .assert_exit(2);
    sandbox()
        .run(&["replay", "r.jsonl", "--json", "-", "--junit", "-"])
        .assert_exit(2);
    let full = std::path::Path::new("/dev/full");
    if full.exists() {
        for report in ["--json", "--junit", "--markdown"] {
            let ran = sandbox()
                .run(&["replay", "r.jsonl", report, "/dev/full"])
                .assert_exit(74);
            let names_file = ran.stderr.contains("/dev/full can't be written");
            assert!(
                names_file && !ran.stderr.contains("stdout"),
                "{}",
                ran.stderr
            );
        }
    }
    for command in ["replay", "run -q --no-log"] {
        let ran = sandbox().run_shell(&format!(
            "cat r.jsonl | TMPDIR=nowhere \"$TOOLQ\" {command} -; echo $? > code"
        ));
        assert_eq!(ran.file("code").unwrap(), "2\n", "{}", ran.stderr);
        let names_cause = ran.stderr.contains("TMPDIR") && ran.stderr.contains("nowhere");
        assert!(names_cause, "{}", ran.stderr);
    }
    // What differs is kept in a temporary file until the counts are known.
    let no_temp_dir = sandbox()
        .file("r.jsonl", recording.replace("upon", "on"))
        .env("TMPDIR", "nowhere");
    let ran = no_temp_dir
        .run(&["replay", "r.jsonl", "--json", "-"])
        .assert_exit(74);
    let names_cause = ran.stderr.contains("TMPDIR") && ran.stderr.contains("nowhere");
    assert!(names_cause, "{}", ran.stderr);
    // Without a stdout, nothing runs, rather than that the report is lost.
    for report in ["--json", "--junit", "--markdown"] {
        let ran = sandbox().run_shell(&format!(
            "\"$TOOLQ\" replay r.jsonl {report} - >&-; echo $? > code"
        ));
        assert_eq!(ran.file("code").unwrap(), "74\n", "{report}");
        assert!(!ran.stderr.contains("1 run"), "{}", ran.stderr);
        let to_file = format!("\"$TOOLQ\" replay r.jsonl {report} out >&-; echo $? > code");
        let ran = sandbox().run_shell(&to_file);
        assert_eq!(ran.file("code").unwrap(), "0\n", "{report}");
    }
    // A reader that goes away ends the replay silently.
    let ran = sandbox().run_shell("\"$TOOLQ\" replay r.jsonl --json - 2>err | true; cat err");
    assert!(!ran.stdout.contains("panic"), "{}", ran.stdout);
}

/// `.ci/pages` looks at it in a browser.
#[test]
fn the_page_has_every_call_and_no_foreign_markup() {
    let ran = replay_hostile_recording();
    let page = ran.file("page.html").unwrap();
    assert_eq!(page.matches("<li ").count(), 6, "{page}");
    assert_eq!(page.matches("data-state=\"differs\"").count(), 3, "{page}");
    assert_eq!(
        page.matches("<script").count(),
        2,
        "its data and its own script"
    );
    assert!(!page.contains("<b>") && !page.contains("<r>"), "{page}");
    assert!(
        !page.contains('\u{202e}') && !page.contains('\u{1b}'),
        "{page}"
    );
    let policy = "Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-";
    assert!(page.contains(policy), "{page}");
    // The counts add up, and what didn't run doesn't look like what ran with the same result.
    let totals = "2 files, 3 turns, 6 calls: 3 differ, 1 matches, \
        1 served from the recording (not run), 1 not compared (no recorded result)";
    assert!(page.contains(&format!("{totals}</p>")), "{page}");
    // All reports say the same.
    assert!(
        ran.stderr.contains(&format!("note: {totals}\n")),
        "{}",
        ran.stderr
    );
    assert!(ran.file("m.md").unwrap().contains(totals));
    assert!(page.contains("class=\"served\""), "{page}");
    // An input that is rejected now has only one side.
    assert!(page.contains("is required (not run)</p>"), "{page}");
    assert!(
        page.contains("<td class=\"after\">so much depends</td>"),
        "{page}"
    );
}
