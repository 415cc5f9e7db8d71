//! Explains why `read_output` has nothing to return.

use std::borrow::Cow;

use crate::answer::texts::error_text::ErrorText;
use crate::text::truncate;
use crate::types::OutputUnavailable;

/// Maximum length of an id that a model named, in characters.
const MAX_ID_CHARS: usize = 100;

/// Says what is missing, in one sentence.
pub(crate) fn describe(why: &OutputUnavailable) -> String {
    match why {
        OutputUnavailable::UnknownId { id, .. } => format!(
            "no call of this conversation that has ended has the id {}",
            quoted(id)
        ),
        OutputUnavailable::NotCut { id } => format!(
            "the output of {} wasn't cut: its result has all of it",
            quoted(id)
        ),
        OutputUnavailable::NotKept { id } => format!(
            "the output of {} was cut, and the rest of it wasn't kept",
            quoted(id)
        ),
        OutputUnavailable::Gone { id } => {
            format!("the output of {} can't be read any more", quoted(id))
        }
        OutputUnavailable::PastEnd { offset, len } => {
            format!("there is nothing at byte {offset}: the output has {len} bytes")
        }
        OutputUnavailable::NoConversation => {
            "this client has no session, so its earlier calls aren't known".to_owned()
        }
    }
}

pub(crate) fn explain(why: &OutputUnavailable) -> ErrorText {
    let hint: Cow<'static, str> = match why {
        OutputUnavailable::UnknownId { known, .. } if known.is_empty() => {
            "no output was cut in this conversation, so there is nothing to read.".into()
        }
        OutputUnavailable::UnknownId { .. } => "use one of these ids.".into(),
        OutputUnavailable::NotCut { .. } => "read that result.".into(),
        OutputUnavailable::NotKept { .. } | OutputUnavailable::Gone { .. } => {
            "make that call again with an input that returns less.".into()
        }
        OutputUnavailable::PastEnd { len, .. } => format!("use an offset below {len}.").into(),
        OutputUnavailable::NoConversation => {
            "make calls with inputs that return less, so that nothing is cut.".into()
        }
    };
    let sentence = describe(why);
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let error: String = first.into_iter().chain(letters).collect();
    ErrorText::new(format!("{error}."), hint).with_details(known_ids(why))
}

fn known_ids(why: &OutputUnavailable) -> String {
    match why {
        OutputUnavailable::UnknownId { known, more, .. } if !known.is_empty() => {
            let listed: Vec<String> = known.iter().map(|id| json_string(id)).collect();
            let earlier = match more {
                0 => String::new(),
                more => format!(" and {more} earlier ones"),
            };
            format!("Outputs that were cut: {}{earlier}", listed.join(", "))
        }
        _ => String::new(),
    }
}

/// Returns an id that a model named. It may be anything, so it isn't repeated whole.
fn quoted(id: &str) -> String {
    json_string(&truncate(id, MAX_ID_CHARS))
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
