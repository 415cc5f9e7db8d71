//! Verbatim results, and marks in truncated ones.

use super::*;

fn succeeded(content: ResultContent, captured: CaptureStats) -> Outcome {
    Outcome::Succeeded {
        content,
        captured,
        ending: CallEnding::ExitCode(0),
        for_clients: None,
    }
}

fn captured_with_cut(saved: Option<&str>, bytes: u64) -> CaptureStats {
    CaptureStats {
        total_bytes: bytes,
        cut_bytes: 1_234_567,
        cut_offset: 5,
        saved_path: saved.map(|path| Box::new(path.into())),
        attachments: Box::default(),
        lossy: false,
        killed_leftovers: 0,
        was_printing: false,
        cached: None,
    }
}

#[test]
fn results_are_verbatim_and_mark_truncation() {
    for whole in ["\n", "text\n\n", "\u{0}\u{fffd}"] {
        let outcome = succeeded(
            ResultContent::Text(whole.to_owned()),
            CaptureStats::default(),
        );
        assert_eq!(answer_text(Some(&read_tool()), &outcome), whole);
    }
    let text = || ResultContent::Text("head\ntail".to_owned());
    let block = serde_json::value::to_raw_value(&json!({"type": "image"})).unwrap();
    let failed = Outcome::Failed {
        output: CallOutput {
            text: "12é45".to_owned(),
            captured: CaptureStats {
                cut_offset: 3,
                ..captured_with_cut(None, 2_000_000)
            },
            ..CallOutput::default()
        },
        ending: CallEnding::ExitCode(1),
    };
    insta::assert_snapshot!(answer_texts(&[
        succeeded(text(), captured_with_cut(Some("/log/1.out"), 2_000_000)),
        succeeded(text(), captured_with_cut(Some("/log/1.out"), 80 << 20)),
        succeeded(text(), captured_with_cut(None, 2_000_000)),
        succeeded(ResultContent::Blocks(vec![block]), captured_with_cut(None, 2_000_000)),
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
    Hint: read its output, and change the input before calling it again.
    "#);
}
