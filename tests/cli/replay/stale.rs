//! Results that differ because an earlier call was served.

use serde_json::json;

use crate::replay::{
    TOOLS, differences, error_result, ok_result, recorded_turn, replay, replay_sandbox,
    report_counts,
};

/// A session of an agent that writes: it reads a file, changes it, and reads it again.
fn edit_session(first: &str, second: &str) -> String {
    let read =
        |id, text: &str| recorded_turn(&[(id, "read", json!({"path": "poem"}), ok_result(text))]);
    let write = recorded_turn(&[(
        "w",
        "write",
        json!({"text": "x"}),
        ok_result("written then"),
    )]);
    [read("a", first), write, read("b", second)].concat()
}

const POEM: &str = "so much depends\nupon";

/// The read returns something else because the write before it was only served.
#[test]
fn a_read_after_a_served_write_is_stale_instead_of_different() {
    let ran = replay(&edit_session(POEM, "edited"), &[]).assert_exit(0);
    assert_eq!(differences(&ran), []);
    assert_eq!(ran.json()["stale"], 1);
    assert_eq!(report_counts(&ran), [3, 2, 1, 2]);
    let place = "r.jsonl: turn 2, read (b): stale: the result differs, but write (w) in turn 1, which may have changed it, did not run\n";
    assert!(ran.stderr.starts_with(place), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("none differ, 1 stale, 1 matches, 1 served from the recording (not run)\n"),
        "{}",
        ran.stderr
    );
    // A read that matches anyway isn't stale.
    let ran = replay(&edit_session(POEM, POEM), &[]).assert_exit(0);
    assert_eq!(ran.json()["stale"], 0);
    assert_eq!(report_counts(&ran), [3, 2, 1, 3]);
}

#[test]
fn a_read_before_the_first_served_write_differs() {
    let ran = replay(&edit_session("other", "edited"), &[]).assert_exit(1);
    assert_eq!(differences(&ran), [("result".to_owned(), String::new())]);
    assert_eq!(ran.json()["differ"][0]["tool_use_id"], "a");
    assert_eq!(ran.json()["stale"], 1);
    // Within a turn, the order of the calls decides.
    let calls = [
        ("a", "read", json!({"path": "poem"}), ok_result("one thing")),
        ("w", "write", json!({"text": "x"}), ok_result("written")),
        ("b", "read", json!({"path": "poem"}), ok_result("another")),
    ];
    let ran = replay(&recorded_turn(&calls), &[]).assert_exit(1);
    assert_eq!(ran.json()["differ"].as_array().unwrap().len(), 1);
    assert_eq!(ran.json()["differ"][0]["tool_use_id"], "a");
}

/// What didn't change anything back then, either, excuses nothing.
#[test]
fn a_write_that_was_rejected_or_ran_makes_no_result_stale() {
    let read = recorded_turn(&[("b", "read", json!({"path": "poem"}), ok_result("edited"))]);
    let refusal = error_result("Invalid input for write; it was not run:\n- /text: is required");
    let rejected = recorded_turn(&[("w", "write", json!({}), refusal)]);
    let ran = replay(&[rejected, read.clone()].concat(), &[]).assert_exit(1);
    assert_eq!(ran.json()["stale"], 0);
    let recording = edit_session(POEM, "edited");
    let ran = replay(&recording, &["--execute", "all"]).assert_exit(1);
    assert_eq!(ran.json()["stale"], 0);
    // Another recording starts anew.
    let ran = replay_sandbox()
        .file("1.jsonl", edit_session(POEM, "edited"))
        .file("2.jsonl", read)
        .run(&["replay", "1.jsonl", "2.jsonl", "--json", "-"])
        .assert_exit(1);
    assert_eq!(ran.json()["stale"], 1);
    assert_eq!(ran.json()["differ"][0]["file"], "2.jsonl");
}

#[test]
fn strict_makes_stale_results_differences() {
    let ran = replay(&edit_session(POEM, "edited"), &["--strict"]).assert_exit(1);
    assert_eq!(differences(&ran), [("result".to_owned(), String::new())]);
    assert_eq!(ran.json()["stale"], 1);
    replay(&edit_session(POEM, POEM), &["--strict"]).assert_exit(0);
}

/// A stale result isn't what the tool returned after the write.
#[test]
fn a_stale_result_is_not_written_into_the_recording() {
    for strict in [&["--update"][..], &["--update", "--strict"]] {
        let recording = edit_session(POEM, "edited");
        let ran = replay(&recording, strict);
        assert_eq!(ran.file("r.jsonl").unwrap(), recording, "{strict:?}");
    }
    // Other results of the same recording are.
    let ran = replay(&edit_session("other", "edited"), &["--update"]).assert_exit(0);
    assert_eq!(ran.file("r.jsonl").unwrap(), edit_session(POEM, "edited"));
}

#[test]
fn reports_show_stale_results_without_failing() {
    let ran = replay_sandbox()
        .tools(TOOLS)
        .file("r.jsonl", edit_session(POEM, "edited"))
        .run(&[
            "replay",
            "-q",
            "r.jsonl",
            "--junit",
            "x.xml",
            "--markdown",
            "m.md",
        ])
        .assert_exit(0);
    assert_eq!(ran.stderr, "");
    let xml = ran.file("x.xml").unwrap();
    let skipped = "<skipped message=\"stale: the result differs, but write (w) in turn 1, which may have changed it, did not run\"/>";
    assert!(xml.contains(skipped), "{xml}");
    assert!(
        xml.contains("failures=\"0\"") && xml.contains("skipped=\"2\""),
        "{xml}"
    );
    let page = ran.file("m.md").unwrap();
    assert!(
        page.starts_with("### toolq replay: no call differs, some are stale\n"),
        "{page}"
    );
}
