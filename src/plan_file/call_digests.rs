//! The digests of a plan's calls. They are of texts without secrets: the values of variables are no part of a plan, and a
//! digest would let a reader of the plan find a short secret by trying.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use redact::Mask;
use toolq_core::json::{Input, JsonText, meaning_digest};
use toolq_core::types::{AcceptedCall, CheckedCall, Verdict};

/// A call, as far as it is the same before and after it was checked.
#[derive(Debug, Clone, Copy)]
pub struct CallIdentity<'a> {
    pub turn: usize,
    pub position: usize,
    pub id: &'a str,
    pub name: &'a str,
}

/// The digests of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallDigests {
    /// Of the call as it came.
    pub input: String,
    /// Of what becomes of it: what would run, or why nothing would.
    pub verdict: String,
}

impl CallDigests {
    /// Returns the digests of a checked call.
    pub fn of_checked(checked: &CheckedCall, mask: &Mask) -> Self {
        let call = &checked.call;
        let identity = CallIdentity {
            turn: call.turn,
            position: call.position,
            id: &call.id,
            name: &call.name,
        };
        let input = match &call.input {
            Ok(input) => describe_input(input, mask),
            Err(invalid) => format!("{invalid:?}"),
        };
        let verdict = match &checked.verdict {
            Verdict::Accepted(accepted) => describe_accepted(accepted, mask),
            Verdict::Rejected(rejection) => format!("{:?}", rejection.reason),
        };
        Self::of_texts(identity, &input, &verdict, mask)
    }

    /// Returns the digests of a call that waits for an approval.
    pub fn of_accepted(identity: CallIdentity<'_>, accepted: &AcceptedCall, mask: &Mask) -> Self {
        let received = accepted.before_coercion.as_ref();
        let input = describe_input(received.unwrap_or(&accepted.input), mask);
        let verdict = describe_accepted(accepted, mask);
        Self::of_texts(identity, &input, &verdict, mask)
    }

    fn of_texts(identity: CallIdentity<'_>, input: &str, verdict: &str, mask: &Mask) -> Self {
        let CallIdentity {
            turn,
            position,
            id,
            name,
        } = identity;
        let place = format!("{turn}/{position}");
        let digest = |domain: &str, text: &str| {
            let mut hasher = Sha256::new();
            // Each part is preceded by its length, so that no two lists of parts look the same.
            for part in [domain, &place, id, name, text] {
                let part = mask.apply(part);
                hasher.update((part.len() as u64).to_be_bytes());
                hasher.update(part.as_bytes());
            }
            HEXLOWER.encode(&hasher.finalize())
        };
        Self {
            input: digest("input", input),
            verdict: digest("verdict", verdict),
        }
    }
}

/// Returns a digest of what an input means with its secrets masked, whatever form it comes in.
fn describe_input(input: &Input, mask: &Mask) -> String {
    let masked = mask.apply_to_json(input.text());
    HEXLOWER.encode(&meaning_digest(JsonText::new(&masked)))
}

/// What decides what an accepted call does, beside its tool, which has digests of its own.
fn describe_accepted(accepted: &AcceptedCall, mask: &Mask) -> String {
    let AcceptedCall {
        tool,
        input,
        safe,
        needs_approval,
        ..
    } = accepted;
    let (name, input) = (&tool.name, describe_input(input, mask));
    format!("{name:?} {input} {safe} {needs_approval}")
}
