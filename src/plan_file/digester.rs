//! The digests of a plan. Each is under the plan's salt; those of variables, and of calls whose text has secrets, are
//! also under the user's key.

use std::cell::OnceCell;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::plan_file::key::PlanKey;
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::os::Environment;
use toolq_core::types::{AcceptedCall, CheckedCall, ToolsConfig, Verdict};

/// Number of random bytes of a salt.
const SALT_BYTES: usize = 16;

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

/// Makes the digests of one plan.
pub struct PlanDigester {
    salt: String,
    mask: Arc<Mask>,
    /// The environment of toolq, which may have the key.
    environment: Arc<Environment>,
    /// The environment of calls, with the variables of `env_file`.
    variables: Environment,
    /// Loaded when it is needed: most plans have no secrets.
    key: OnceCell<PlanKey>,
}

impl PlanDigester {
    /// Digests under this salt.
    pub fn new(
        salt: String,
        tools: &ToolsConfig,
        mask: Arc<Mask>,
        environment: Arc<Environment>,
    ) -> Self {
        Self {
            salt,
            mask,
            variables: environment.with_env_file(&tools.env_file),
            environment,
            key: OnceCell::new(),
        }
    }

    /// Returns a new salt.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random_salt() -> Result<String, String> {
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt).map_err(|error| error.to_string())?;
        Ok(HEXLOWER.encode(&salt))
    }

    /// Returns a digest that tells keys apart, if the key was needed.
    pub fn key_check(&self) -> Option<String> {
        let key = self.key.get()?;
        Some(self.digest(key.bytes(), "key", &[b""]))
    }

    /// Returns the digest of a variable.
    ///
    /// # Errors
    /// There is no key.
    pub fn digest_variable(&self, name: &str) -> Result<String, String> {
        let key = self.load_key()?.bytes();
        Ok(match self.variables.get_os(name) {
            Some(value) => self.digest(
                key,
                "variable",
                &[name.as_bytes(), value.as_encoded_bytes()],
            ),
            None => self.digest(key, "unset variable", &[name.as_bytes()]),
        })
    }

    /// Returns the digests of a checked call.
    ///
    /// # Errors
    /// There is no key.
    pub fn digest_call(&self, checked: &CheckedCall) -> Result<CallDigests, String> {
        let call = &checked.call;
        let identity = CallIdentity {
            turn: call.turn,
            position: call.position,
            id: &call.id,
            name: &call.name,
        };
        let input = match &call.input {
            Ok(input) => input.text().to_owned(),
            Err(invalid) => format!("{invalid:?}"),
        };
        let verdict = match &checked.verdict {
            Verdict::Accepted(accepted) => describe_accepted(accepted),
            Verdict::Rejected(rejection) => format!("{rejection:?}"),
        };
        self.digest_texts(identity, &input, &verdict)
    }

    /// Returns the digests of a call that waits for an approval.
    ///
    /// # Errors
    /// There is no key.
    pub fn digest_accepted(
        &self,
        identity: CallIdentity<'_>,
        accepted: &AcceptedCall,
    ) -> Result<CallDigests, String> {
        let received = accepted.before_coercion.as_ref();
        let input = received.unwrap_or(&accepted.input);
        self.digest_texts(identity, Input::text(input), &describe_accepted(accepted))
    }

    fn digest_texts(
        &self,
        identity: CallIdentity<'_>,
        input: &str,
        verdict: &str,
    ) -> Result<CallDigests, String> {
        let CallIdentity {
            turn,
            position,
            id,
            name,
        } = identity;
        let has_secrets = |text: &str| self.mask.apply(text) != text;
        let key = if [id, name, input, verdict].into_iter().any(has_secrets) {
            self.load_key()?.bytes()
        } else {
            b""
        };
        let place = format!("{turn}/{position}");
        let identity = [place.as_bytes(), id.as_bytes(), name.as_bytes()];
        let with = |text: &'_ str, domain| {
            let [place, id, name] = identity;
            self.digest(key, domain, &[place, id, name, text.as_bytes()])
        };
        Ok(CallDigests {
            input: with(input, "input"),
            verdict: with(verdict, "verdict"),
        })
    }

    fn load_key(&self) -> Result<&PlanKey, String> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let key = PlanKey::load(&self.environment)?;
        Ok(self.key.get_or_init(|| key))
    }

    /// Each part is preceded by its length, so that no two lists of parts look the same.
    fn digest(&self, key: &[u8], domain: &str, parts: &[&[u8]]) -> String {
        // A key of any length is allowed.
        #[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
        for part in [self.salt.as_bytes(), domain.as_bytes()]
            .iter()
            .chain(parts)
        {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        HEXLOWER.encode(&mac.finalize().into_bytes())
    }
}

/// Everything that decides what an accepted call does. Its tool has a digest of its own.
fn describe_accepted(accepted: &AcceptedCall) -> String {
    let AcceptedCall {
        tool,
        input,
        before_coercion: _,
        is_coerced: _,
        safe,
        safety_source: _,
        locks: _,
        needs_approval,
        invocation,
        probe,
    } = accepted;
    let name = &tool.name;
    let input = input.text();
    format!("{name:?} {input:?} {safe} {needs_approval} {invocation:?} {probe:?}")
}
