//! Results as they come, and what is said of a cut.

use super::*;

fn succeeded(content: Content, captured: Captured) -> Outcome {
    Outcome::Succeeded {
        content,
        captured,
        ending: Ending::Exit(0),
    }
}

fn cut(saved: Option<&str>, bytes: u64) -> Captured {
    Captured {
        bytes,
        cut: 1_234_567,
        cut_at: 5,
        saved: saved.map(Into::into),
        lossy: false,
        leftovers: 0,
    }
}

/// FAULTS 75, 77.
#[test]
fn results_come_as_they_are_and_say_what_was_cut() {
    for whole in ["", "\n", "text\n\n", "\u{0}\u{fffd}"] {
        let outcome = succeeded(Content::Text(whole.to_owned()), Captured::default());
        assert_eq!(text_of(Some(&read()), &outcome), whole);
    }
    let text = || Content::Text("head\ntail".to_owned());
    let block = serde_json::value::to_raw_value(&json!({"type": "image"})).unwrap();
    let failed = Outcome::Failed {
        output: "12é45".to_owned(),
        stderr: String::new(),
        captured: Captured {
            cut_at: 3,
            ..cut(None, 2_000_000)
        },
        ending: Ending::Exit(1),
    };
    insta::assert_snapshot!(texts(&[
        succeeded(text(), cut(Some("/log/1.out"), 2_000_000)),
        succeeded(text(), cut(Some("/log/1.out"), 80 << 20)),
        succeeded(text(), cut(None, 2_000_000)),
        succeeded(Content::Blocks(vec![block]), cut(None, 2_000_000)),
        failed,
    ]), @r#"
    head
    [… 1,234,567 bytes cut; the whole output is in /log/1.out …]
    tail
    ---
    head
    [… 1,234,567 bytes cut; the first 64 MiB of the output are in /log/1.out …]
    tail
    ---
    head
    [… 1,234,567 bytes cut; the whole output was not kept …]
    tail
    ---
    {"type":"image"}
    {"type":"text","text":"[… 1,234,567 bytes cut; the whole output was not kept …]"}

    ---
    Exit code 1.
    12
    [… 1,234,567 bytes cut; the whole output was not kept …]
    é45
    Hint: read what it wrote, and change the input before you call it again.
    "#);
}
