//! Results of earlier runs in the log of this one, which answer calls of tools whose `cache` is `over_runs`.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::plan_file::{CallIdentity, PlanDigester, used_variables};
use redact::Mask;
use toolq_core::os::Environment;
use toolq_core::types::{AcceptedCall, CallLocks, ResultContent, ToolsConfig};
use toolq_engine::{LoggedResult, LoggedResults};
use toolq_log::{KeptResults, records};

/// The salt of the digests, which have to be the same in every run.
const SALT: &str = "toolq cache";

/// The identity of a call, regardless of where it is made.
const ANYWHERE: CallIdentity<'static> = CallIdentity {
    turn: 0,
    position: 0,
    id: "",
    name: "",
};

/// The results of earlier runs, and what is needed to compute the digests by which they are found. As in plans, anything
/// with secrets is digested under the user's key.
pub struct EarlierResults {
    results: KeptResults,
    root: PathBuf,
    digester: Mutex<PlanDigester>,
}

impl EarlierResults {
    /// Takes what a log has.
    pub fn new(
        results: KeptResults,
        tools: &ToolsConfig,
        mask: &Arc<Mask>,
        environment: &Arc<Environment>,
    ) -> Self {
        let (mask, environment) = (Arc::clone(mask), Arc::clone(environment));
        let digester = PlanDigester::new(SALT.to_owned(), tools, mask, environment);
        Self {
            results,
            root: tools.root.clone(),
            digester: Mutex::new(digester),
        }
    }

    /// Returns the digest of a call.
    ///
    /// # Errors
    /// There is no key.
    fn digest_call(
        &self,
        accepted: &AcceptedCall,
        locks: Option<&CallLocks>,
    ) -> Result<String, String> {
        let digester = self.digester.lock().map_err(|error| error.to_string())?;
        let call = digester.digest_accepted(ANYWHERE, accepted)?;
        let variables = used_variables(&accepted.tool);
        let variables = variables
            .iter()
            .map(|name| digester.digest_variable(name))
            .collect::<Result<Vec<_>, _>>()?;
        let definition = records::definition_digests(&accepted.tool);
        let parts = (&self.root, definition, variables, locks, call);
        Ok(HEXLOWER.encode(&Sha256::digest(format!("{parts:?}"))))
    }
}

impl fmt::Debug for EarlierResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EarlierResults").finish_non_exhaustive()
    }
}

impl LoggedResults for EarlierResults {
    fn list(&self) -> Vec<LoggedResult> {
        let entries = self.results.list().into_iter();
        let results = entries.map(|entry| LoggedResult {
            digest: entry.digest,
            tool_use_id: entry.tool_use_id,
            taken: entry.taken,
            locks: entry.locks,
        });
        results.collect()
    }

    fn digest(&self, accepted: &AcceptedCall, locks: Option<&CallLocks>) -> Option<String> {
        self.digest_call(accepted, locks).ok()
    }

    fn load(&self, digest: &str) -> Option<ResultContent> {
        self.results.load(digest)
    }
}
