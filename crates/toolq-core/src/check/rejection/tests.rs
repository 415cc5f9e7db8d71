//! What a model reads about a call that may not run.

use super::*;

use crate::testing::{sample_call, sample_tool, sample_tools};

#[test]
fn an_unknown_tool_is_answered_with_the_known_ones() {
    let lines = |count: usize| {
        let tools = (0..count).map(|number| sample_tool(&format!("t{number}")));
        let call = sample_call(0, "zzzzzz", "{}");
        let rejection = unknown_tool(&call, &sample_tools(tools.collect()));
        let details = rejection.details.into_iter();
        details.map(|detail| detail.message).collect::<Vec<_>>()
    };
    let unknown = "no tool named `zzzzzz`";
    assert_eq!(lines(0), [unknown]);
    assert_eq!(lines(2), [unknown, "known: t0, t1"]);
    assert!(lines(50)[1].ends_with(", t49"));
    assert!(lines(51)[1].ends_with(", t49 and 1 more"));
}

/// A turn may have as many calls as there are tools, and more: the time that they take grows with their number, not with its
/// product with that of the tools.
#[test]
fn only_the_first_calls_of_a_turn_are_told_the_closest_name() {
    let tools = sample_tools(vec![sample_tool("read_file")]);
    for (position, suggests) in [(0, true), (99, true), (100, false), (20_000, false)] {
        let call = sample_call(position, "raed_file", "{}");
        let rejection = unknown_tool(&call, &tools);
        let text = &rejection.details[0].message;
        assert_eq!(
            text.contains("did you mean `read_file`?"),
            suggests,
            "{text}"
        );
        assert_eq!(rejection.details[1].message, "known: read_file");
    }
}

#[test]
fn the_reason_for_an_unreadable_input_says_what_to_correct() {
    let duplicate = InvalidInput::DuplicateKey {
        pointer: "/a".to_owned(),
        key: "k".to_owned(),
    };
    for (fault, reason, path) in [
        (InvalidInput::MissingName, RejectionReason::UnknownTool, ""),
        (duplicate, RejectionReason::InvalidInput, "/a"),
        (
            InvalidInput::TooLarge("is too large".to_owned()),
            RejectionReason::InvalidInput,
            "",
        ),
        (InvalidInput::Missing, RejectionReason::InvalidArguments, ""),
    ] {
        let rejection = unreadable_input(&fault);
        assert_eq!(rejection.reason, reason, "{fault}");
        assert_eq!(rejection.details[0].path, path, "{fault}");
    }
}

#[test]
fn reasons_are_truncated_to_what_a_model_should_read() {
    let message_len = |rejection: Rejection| rejection.details[0].message.chars().count();
    let long = "x".repeat(1_000);
    let fault = InvalidInput::TooLarge(long.clone());
    assert_eq!(
        message_len(unreadable_input(&fault)),
        401,
        "with the ellipsis"
    );
    let around = message_len(undescribed_tool(""));
    assert_eq!(message_len(undescribed_tool(&long)), around + 801);
}
