//! Results of earlier runs in the log of this one, which answer calls of tools whose `cache` is `over_runs`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::plan_file::describe_accepted;
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::types::{
    AcceptedCall, Backing, CallLocks, CommandBacking, HttpBacking, RequestBody, ResultContent,
    Template, Tool,
};
use toolq_engine::{LoggedResult, LoggedResults};
use toolq_log::{KeptResults, records};

/// The results of earlier runs, and what is needed to compute the digests by which they are found.
pub struct EarlierResults {
    results: KeptResults,
    root: PathBuf,
    mask: Arc<Mask>,
}

impl EarlierResults {
    /// Takes what a log has.
    pub fn new(results: KeptResults, root: PathBuf, mask: Arc<Mask>) -> Self {
        Self {
            results,
            root,
            mask,
        }
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

    /// What depends on a variable or has a secret isn't kept: its digest would let a reader of the log find a short secret by
    /// trying.
    fn digest(&self, accepted: &AcceptedCall, locks: Option<&CallLocks>) -> Option<String> {
        let received = accepted.before_coercion.as_ref();
        let received = Input::text(received.unwrap_or(&accepted.input));
        let call = (received, describe_accepted(accepted));
        let definition = records::definition_digests(&accepted.tool);
        let text = format!("{:?}", (&self.root, definition, locks, call));
        let is_public = !uses_variables(&accepted.tool) && self.mask.apply(&text) == text;
        is_public.then(|| HEXLOWER.encode(&Sha256::digest(text)))
    }

    fn load(&self, digest: &str) -> Option<ResultContent> {
        self.results.load(digest)
    }
}

/// Returns whether calls of a `read` tool read variables of the environment or pass them on.
fn uses_variables(tool: &Tool) -> bool {
    let has_names = |template: &Template| template.env_names().next().is_some();
    match &tool.backing {
        Some(Backing::Command(command)) => command_uses_variables(command),
        Some(Backing::Http(http)) => http_templates(http).into_iter().any(has_names),
        Some(Backing::Mcp(mcp)) => {
            let arguments = mcp.arguments.as_ref();
            let arguments = arguments.map_or_else(Vec::new, |body| body.templates());
            mcp.server
                .templates()
                .into_iter()
                .chain(arguments)
                .any(has_names)
                || mcp
                    .server
                    .program()
                    .is_some_and(|program| !program.pass_env.is_empty())
        }
        // An agent's answer isn't the same twice.
        Some(Backing::Agent(_)) => true,
        Some(Backing::Builtin(_) | Backing::Host) | None => false,
    }
}

fn command_uses_variables(command: &CommandBacking) -> bool {
    let mut templates = command.env.iter().map(|(_, template)| template);
    !command.pass_env.is_empty() || templates.any(|template| template.env_names().next().is_some())
}

fn http_templates(http: &HttpBacking) -> Vec<&Template> {
    let pairs = http.query.iter().chain(&http.headers);
    let mut templates: Vec<&Template> = pairs.map(|(_, template)| template).collect();
    templates.push(&http.url);
    templates.extend(&http.proxy);
    if let RequestBody::Json(body) = &http.body {
        templates.extend(body.templates());
    }
    templates
}
