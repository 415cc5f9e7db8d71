//! Calls that don't run, and the author's own words for that.

use super::*;

#[test]
fn rejections() {
    let unknown = rejected(
        Reason::UnknownTool,
        &[
            ("", "no tool is called `serch`; did you mean `search`?"),
            ("", "known: read_file, search"),
        ],
    );
    insta::assert_snapshot!(text_of(None, &unknown), @"
        Unknown tool: no tool is called `serch`; did you mean `search`?
        known: read_file, search
        Hint: call one of the known tools by its exact name, or go on without.
        ");
    insta::assert_snapshot!(texts(&[
        rejected(Reason::InvalidInput, &[("/lines/start", "must be integer, not string"), ("/path", "is required")]),
        rejected(Reason::InvalidArguments, &[("", "the input is a string; an object is needed")]),
        rejected(Reason::PathOutsideRoot, &[("/path", "Path must be within working directory")]),
        rejected(Reason::DuplicateId, &[("", "another call of this turn has the same id")]),
        rejected(Reason::Truncated, &[("", "the answer ended at its token limit inside this call")]),
    ]), @"
        Invalid input for search; it was not run:
        - /lines/start: must be integer, not string
        - /path: is required
        Hint: correct this and call it again.
        ---
        Invalid input for search; it was not run:
        - the input is a string; an object is needed
        Hint: send the input as one JSON object, `{}` for no arguments.
        ---
        Invalid input for search; it was not run:
        - /path: Path must be within working directory
        Hint: use a relative path below the working directory.
        ---
        Not executed: another call of this turn has the same id.
        Hint: call it again; each call needs an id of its own.
        ---
        Not executed: the answer ended at its token limit inside this call, so its input may be incomplete.
        Hint: call it again with a shorter input, or in several smaller calls.
        ");
}

#[test]
fn calls_that_were_not_run_or_not_to_their_end() {
    let by = "bash".to_owned();
    let cancelled = |output: &str, stderr: &str| Outcome::Cancelled {
        by: by.clone(),
        output: output.to_owned(),
        stderr: stderr.to_owned(),
        captured: Captured::default(),
    };
    insta::assert_snapshot!(texts(&[
        Outcome::NotExecuted(NotExecuted::Preceding { tool: by.clone() }),
        Outcome::NotExecuted(NotExecuted::Sibling { tool: by.clone() }),
        cancelled("half", ""),
        Outcome::Paused { failures: 3 },
        Outcome::MissingVariable("RATES_TOKEN".to_owned()),
        Outcome::NoBacking,
        Outcome::LogRefused("the session log can't be written: the disk is full".to_owned()),
        Outcome::Broken("index out of bounds".to_owned()),
        Outcome::BadOutput {
            problem: "no JSON: expected value at line 1 column 2".to_owned(),
            output: "<html>".to_owned(),
            stderr: "the session is over".to_owned(),
            captured: Captured::default(),
            ending: Ending::Exit(0),
        },
    ]), @"
        Not executed: the preceding bash call failed.
        Hint: see to that failure first, then call this again if it is still needed.
        ---
        Not executed: the bash call beside it failed.
        Hint: see to that failure first, then call this again if it is still needed.
        ---
        Cancelled while it ran: the bash call beside it failed.
        Until then it wrote:
        half
        Hint: see to that failure first, then call this again if it is still needed.
        ---
        Paused: search failed 3 times in a row, so this call was not run.
        Hint: don't call it again for now. Use another tool, or tell the user what went wrong.
        ---
        search can't run: the environment variable RATES_TOKEN is not set or empty.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        search can't run: it has no backing.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        Not executed: the session log can't be written: the disk is full.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        search failed by a fault of toolq itself: index out of bounds.
        Hint: another input won't change that. Use another tool, or tell the user.
        ---
        search ran, but its output is not what it declares: no JSON: expected value at line 1 column 2.
        stderr:
        the session is over
        stdout:
        <html>
        Hint: this is the tool's fault. Try another input or another tool, and tell the user of it.
        ");
    insta::assert_snapshot!(text_of(Some(&tool_with_schema("save", json!(true))), &cancelled("", "cleaning up")), @"
        Cancelled while it ran: the bash call beside it failed.
        Until then it wrote:
        cleaning up
        Hint: it may have done a part of its work: see to that failure first, and look before you call this again.
        ");
}

/// FAULTS 38, 131: values are put in once, and secrets never.
#[test]
fn the_authors_words_take_the_place_of_ours() {
    let mut tool = read();
    tool.messages
        .insert(MessageKey::Timeout, template("工具 {tool} 超时({timeout})"));
    tool.messages
        .insert(MessageKey::Failed, template("{error}|{details}"));
    tool.messages
        .insert(MessageKey::InvalidInput, template("输入无效:\n{details}"));
    let late = Outcome::TimedOut {
        idle: false,
        limit: Duration::from_millis(1_500),
        output: String::new(),
        stderr: String::new(),
        captured: Captured::default(),
    };
    let texts = [
        late,
        failed(Ending::Exit(1), "{tool} s3cr3t-value", ""),
        rejected(
            Reason::InvalidInput,
            &[("/a", "is required"), ("", "must be object")],
        ),
    ]
    .map(|outcome| text_of(Some(&tool), &outcome));
    insta::assert_snapshot!(texts.join("\n---\n"), @"
        工具 search 超时(1.5s)
        ---
        Exit code 1.|{tool} [masked]
        ---
        输入无效:
        - /a: is required
        - must be object
        ");
}
