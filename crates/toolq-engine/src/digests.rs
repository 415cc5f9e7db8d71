//! Names made of what they name, the same on every run.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use toolq_core::json::Input;
use toolq_core::types::Call;

/// What a callee can know a call by when it comes twice: SHA-256, in hex, of the task and the call's place, tool and
/// input, and of the places of the agents that it stands within. The same for every attempt, also of a run that resumes
/// the task, and no other call's.
pub(crate) fn idempotency_key(task: &str, call: &Call, input: &Input) -> String {
    let mut hash = Sha256::new();
    let place = [
        task.len() as u64,
        call.turn as u64,
        call.position as u64,
        call.name.len() as u64,
    ];
    for number in place {
        hash.update(number.to_le_bytes());
    }
    hash.update(task);
    hash.update(&call.name);
    hash.update(input.text());
    if let Some(agent) = &call.within {
        let agents = std::iter::successors(Some(&**agent), |agent| agent.within.as_deref());
        for agent in agents {
            hash.update(b"\0within");
            hash.update((agent.turn as u64).to_le_bytes());
            hash.update((agent.position as u64).to_le_bytes());
        }
    }
    hex(hash)
}

/// SHA-256 of a text, in hex.
pub(crate) fn of_text(text: &str) -> String {
    hex(Sha256::new_with_prefix(text))
}

/// A digest in lower-case hexadecimal digits.
pub(crate) fn hex(hash: Sha256) -> String {
    hash.finalize()
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FAULTS 101: the key of a call, and of no other.
    #[test]
    fn a_key_is_of_task_place_tool_and_input() {
        let key = |task, turn, position, name: &str, input: &str| {
            let call = Call {
                turn,
                position,
                id: "any".to_owned(),
                name: name.to_owned(),
                input: Input::parse(input),
                within: None,
            };
            idempotency_key(task, &call, &Input::parse(input).unwrap())
        };
        let keys = [
            key("t", 0, 0, "a", "{}"),
            key("u", 0, 0, "a", "{}"),
            key("t", 0, 1, "a", "{}"),
            key("t", 1, 0, "a", "{}"),
            key("t", 0, 0, "b", "{}"),
            key("t", 0, 0, "a", r#"{"x":1}"#),
        ];
        assert_eq!(keys[0], key("t", 0, 0, "a", "{}"));
        assert_eq!(keys[0].len(), 64);
        assert!(keys[1..].iter().all(|other| *other != keys[0]));
    }
}
