//! Calls that don't run, and custom messages.

use super::*;

#[test]
fn rejections_name_every_problem() {
    let unknown = rejected(
        RejectionReason::UnknownTool,
        &[
            ("", "no tool named `serch`; did you mean `search`?"),
            ("", "known: read_file, search"),
        ],
    );
    insta::assert_snapshot!(answer_text(None, &unknown), @"
        Unknown tool: no tool named `serch`; did you mean `search`?
        known: read_file, search
        Hint: call one of the known tools by its exact name, or continue without it.
        ");
    insta::assert_snapshot!(answer_texts(&[
        rejected(RejectionReason::InvalidInput, &[("/lines/start", "must be integer, not string"), ("/path", "is required")]),
        rejected(RejectionReason::InvalidArguments, &[("", "the input is a string; it must be an object")]),
        rejected(RejectionReason::PathOutsideRoot, &[("/path", "Path must be within working directory")]),
        rejected(RejectionReason::OwnFile, &[("/path", "Path must not lead to tools.yaml, which belongs to toolq: only tools that read may open it")]),
        rejected(RejectionReason::Truncated, &[("", "the response hit its token limit in the middle of this call")]),
    ]), @"
        Invalid input for search; it was not run:
        - /lines/start: must be integer, not string
        - /path: is required
        Hint: fix this and call it again.
        ---
        Invalid input for search; it was not run:
        - the input is a string; it must be an object
        Hint: send the input as one JSON object; use `{}` for no arguments.
        ---
        Invalid input for search; it was not run:
        - /path: Path must be within working directory
        Hint: use a relative path inside the working directory.
        ---
        Invalid input for search; it was not run:
        - /path: Path must not lead to tools.yaml, which belongs to toolq: only tools that read may open it
        Hint: no tool can change what decides what runs. Use another path, or tell the user what you want to change there.
        ---
        Not executed: the response hit its token limit in the middle of this call, so its input may be incomplete.
        Hint: call it again with a shorter input, or split it into several smaller calls.
        ");
}

#[test]
fn calls_that_did_not_run_to_their_end_say_why() {
    let by = "bash".to_owned();
    let canceled = |output: &str, stderr: &str| Outcome::Canceled {
        failed_tool: by.clone(),
        output: CallOutput {
            text: output.to_owned(),
            stderr: stderr.to_owned(),
            ..CallOutput::default()
        },
    };
    insta::assert_snapshot!(answer_texts(&[
        Outcome::NotExecuted(NotExecutedCause::PrecedingFailed { tool: by.clone() }),
        Outcome::NotExecuted(NotExecutedCause::SiblingFailed { tool: by.clone() }),
        canceled("half", ""),
        Outcome::Paused { failures: 3 },
        Outcome::Paused { failures: 1 },
        Outcome::MissingVariable("RATES_TOKEN".to_owned()),
        Outcome::NoBacking,
        Outcome::LogRefused("the session log can't be written: the disk is full".to_owned()),
        Outcome::InternalError("index out of bounds".to_owned()),
        Outcome::BadOutput {
            problem: "no JSON: expected value at line 1 column 2".to_owned(),
            output: CallOutput { text: "<html>".to_owned(), stderr: "the session is over".to_owned(), ..CallOutput::default() },
            ending: CallEnding::ExitCode(0),
        },
    ]), @"
        Not executed: the preceding bash call failed.
        Hint: deal with that failure first, then call this again if it is still needed.
        ---
        Not executed: the parallel bash call failed.
        Hint: deal with that failure first, then call this again if it is still needed.
        ---
        Canceled while running: the parallel bash call failed.
        Output until then:
        half
        Hint: deal with that failure first, then call this again if it is still needed.
        ---
        Paused: search failed 3 times in a row, so this call was not run.
        Hint: don't call it again for now. Use another tool, or tell the user what went wrong.
        ---
        Paused: search failed, so this call was not run.
        Hint: don't call it again for now. Use another tool, or tell the user what went wrong.
        ---
        search can't run: the environment variable RATES_TOKEN is unset or empty.
        Hint: a different input won't change that. Use another tool, or tell the user.
        ---
        search can't run: it has no backing.
        Hint: a different input won't change that. Use another tool, or tell the user.
        ---
        Not executed: the session log can't be written: the disk is full.
        Hint: a different input won't change that. Use another tool, or tell the user.
        ---
        search failed because of an internal error in toolq: index out of bounds.
        Hint: a different input won't change that. Use another tool, or tell the user.
        ---
        search ran, but its output doesn't match its declaration: no JSON: expected value at line 1 column 2.
        stderr:
        the session is over
        stdout:
        <html>
        Hint: the tool itself is at fault. Try another input or another tool, and tell the user about it.
        ");
    insta::assert_snapshot!(answer_text(Some(&tool_with_schema("save", json!(true))), &canceled("", "cleaning up")), @"
        Canceled while running: the parallel bash call failed.
        Output until then:
        cleaning up
        Hint: it may have done part of its work: check before calling it again.
        ");
}

/// Values are expanded once, and secrets are masked.
#[test]
fn custom_messages_replace_the_built_in_ones() {
    let mut tool = read_tool();
    tool.messages.insert(
        MessageKey::Timeout,
        sample_template("工具 {tool} 超时({timeout})"),
    );
    tool.messages
        .insert(MessageKey::Failed, sample_template("{error}|{details}"));
    tool.messages.insert(
        MessageKey::InvalidInput,
        sample_template("输入无效:\n{details}"),
    );
    let late = Outcome::TimedOut {
        no_calls_started: false,
        limit: Duration::from_millis(1_500),
        output: CallOutput::default(),
    };
    let texts = [
        late,
        failed(CallEnding::ExitCode(1), "{tool} s3cr3t-value", ""),
        rejected(
            RejectionReason::InvalidInput,
            &[("/a", "is required"), ("", "must be object")],
        ),
    ]
    .map(|outcome| answer_text(Some(&tool), &outcome));
    insta::assert_snapshot!(texts.join("\n---\n"), @"
        工具 search 超时(1.5s)
        ---
        Exit code 1|{tool} [masked]
        ---
        输入无效:
        - /a: is required
        - must be object
        ");
}
