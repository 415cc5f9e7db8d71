//! Digests that are the same on every run: idempotency keys and content hashes.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use toolq_core::json::Input;
use toolq_core::types::Call;

/// Returns the key by which a callee recognizes a call that it receives twice.
///
/// This is the SHA-256, in hex, of the task, of the call's turn, position, tool and input, and of the positions of the
/// agents that the call is nested in. It is the same for every attempt, and differs from
/// the key of every other call. A call that a memory claims has the key of its claim instead.
pub(crate) fn idempotency_key(task: &str, call: &Call, input: &Input) -> String {
    let mut hasher = Sha256::new();
    let fixed_fields = [
        task.len() as u64,
        call.turn as u64,
        call.position as u64,
        call.name.len() as u64,
    ];
    for number in fixed_fields {
        hasher.update(number.to_le_bytes());
    }
    hasher.update(task);
    hasher.update(&*call.name);
    hasher.update(input.text());
    if let Some(parent) = &call.parent {
        let ancestors = std::iter::successors(Some(&**parent), |agent| agent.parent.as_deref());
        for agent in ancestors {
            hasher.update(b"\0within");
            hasher.update((agent.turn as u64).to_le_bytes());
            hasher.update((agent.position as u64).to_le_bytes());
        }
    }
    hex_digest(hasher)
}

/// Finishes a hash and returns it as lowercase hexadecimal digits.
pub(crate) fn hex_digest(hasher: Sha256) -> String {
    HEXLOWER.encode(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All attempts of a call have one key, in later runs, too, so that a server recognizes a request that it got
    /// twice.
    #[test]
    fn a_key_depends_on_task_position_tool_and_input() {
        let key = |task, turn, position, name: &str, input: &str| {
            let call = Call {
                turn,
                position,
                id: "any".to_owned(),
                name: name.into(),
                input: Input::parse(input).map_err(Box::new),
                parent: None,
                has_number_id: false,
                kind: toolq_core::types::CallKind::Function,
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
