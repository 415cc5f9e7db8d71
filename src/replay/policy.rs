//! What is to be done with a recorded call, decided before anything runs.

use serde_json::Value;

use crate::replay::case::{Difference, Kind};
use redact::Mask;
use toolq_core::answer;
use toolq_core::types::{
    Accepted, Call, Compare, Effect, Outcome, Reason, Recorded, Rejection, Tools,
};

/// Which calls are really run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execute {
    /// Those of tools that only read.
    Read,
    /// All that have a backing.
    All,
    /// None.
    None,
}

/// Whether a call that today's tools accept is run. What would not be compared, or was skipped when it was recorded, is
/// not.
pub(crate) fn is_run(accepted: &Accepted, recorded_as_skipped: bool, execute: Execute) -> bool {
    let wanted = match execute {
        Execute::Read => accepted.tool.effect == Effect::Read,
        Execute::All => true,
        Execute::None => false,
    };
    wanted
        && accepted.invocation.is_some()
        && accepted.tool.compare != Compare::None
        && !recorded_as_skipped
}

/// Whether a recorded result is an error, so that a call which is refused today holds. Where the form doesn't say: it is
/// today's own answer, or begins as errors do.
pub(crate) fn was_error(
    recorded: &Recorded,
    call: &Call,
    rejection: &Rejection,
    tools: &Tools,
    mask: &Mask,
) -> bool {
    recorded.is_error.unwrap_or_else(|| {
        let text = answer::as_text(&recorded.content);
        let begins = text.get(..5);
        if begins.is_some_and(|begins| begins.eq_ignore_ascii_case("error")) {
            return true;
        }
        let tool = tools.get(&call.name).map(|tool| &**tool);
        let words = tool.map_or(&tools.messages, |tool| &tool.messages);
        let outcome = Outcome::Rejected(rejection.clone());
        let today = answer::answer(call, tool, &outcome, words, mask);
        text == answer::as_text(&today.content)
    })
}

/// What is wrong with a call that is refused today.
pub(crate) fn refused(call: &Call, rejection: &Rejection, mask: &Mask) -> Vec<Difference> {
    if rejection.reason == Reason::UnknownTool {
        let lines: Vec<&str> = rejection
            .details
            .iter()
            .map(|detail| detail.message.as_str())
            .collect();
        return vec![Difference {
            kind: Kind::UnknownTool,
            path: String::new(),
            expected: Some(json(&lines.join("; "), mask)),
            actual: Some(json(&call.name, mask)),
        }];
    }
    let input = call.input.as_ref().ok().map(toolq_core::json::Input::value);
    let difference = |detail: &toolq_core::types::Detail| {
        let value = input.as_ref().and_then(|input| input.pointer(&detail.path));
        Difference {
            kind: Kind::Schema,
            path: mask.text(&detail.path).into_owned(),
            expected: Some(json(&detail.message, mask)),
            actual: value.map(|value: &Value| mask.json(&value.to_string()).into_owned()),
        }
    };
    rejection.details.iter().map(difference).collect()
}

/// A text as JSON.
fn json(text: &str, mask: &Mask) -> String {
    Value::from(mask.text(text)).to_string()
}
