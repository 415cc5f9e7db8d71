//! What limits when a call starts: its tool, and its server or host.

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::types::{AcceptedCall, Backing, Invocation, StartLimits, ToolsConfig};
use crate::url::build_request_url;

/// What limits calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LimitedSubject {
    /// The tool with this name. Agents at different depths have limits of their own: one waits for those it calls.
    Tool(String, usize),
    /// The server with this name.
    Server(String),
    /// The hosts that match this pattern.
    Host(String),
}

/// For people: `save`, `server files`, `host api.example.com`.
impl fmt::Display for LimitedSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(name, _) => f.write_str(name),
            Self::Server(name) => write!(f, "server {name}"),
            Self::Host(name) => write!(f, "host {name}"),
        }
    }
}

/// The limits that apply to a call.
pub type AppliedLimits = Arc<[(LimitedSubject, StartLimits)]>;

/// What most calls have. They share it.
static UNLIMITED: LazyLock<AppliedLimits> = LazyLock::new(|| Arc::from([]));

/// Returns what limits a call, whose agent is nested in `depth` others. `env` looks up environment variables: they may
/// name the host.
pub fn applied_limits(
    accepted: &AcceptedCall,
    tools: &ToolsConfig,
    depth: usize,
    env: &dyn Fn(&str) -> Option<String>,
) -> AppliedLimits {
    let tool = &accepted.tool;
    let depth = match accepted.invocation {
        Some(Invocation::Agent(_)) => depth,
        _ => 0,
    };
    let own = (!tool.start_limits.is_empty()).then(|| {
        let subject = LimitedSubject::Tool(tool.name.clone(), depth);
        (subject, tool.start_limits)
    });
    let shared = match (&tool.backing, &accepted.invocation) {
        (Some(Backing::Mcp(mcp)), _) => {
            let limits = mcp.server.start_limits;
            (!limits.is_empty()).then(|| {
                let subject = LimitedSubject::Server(mcp.server.name.clone());
                (subject, limits)
            })
        }
        (Some(Backing::Http(http)), Some(Invocation::Http(request))) if !tools.hosts.is_empty() => {
            let url = build_request_url(http, request, env).ok();
            let host = url.as_ref().and_then(url::Url::host_str);
            host.and_then(|host| tools.host_limits(host))
                .filter(|(_, limits)| !limits.is_empty())
        }
        _ => None,
    };
    if own.is_none() && shared.is_none() {
        return Arc::clone(&UNLIMITED);
    }
    own.into_iter().chain(shared).collect()
}

impl ToolsConfig {
    /// Returns the limits of a host: those of its own name, or else of the first pattern that it matches.
    fn host_limits(&self, host: &str) -> Option<(LimitedSubject, StartLimits)> {
        let is_own = |pattern: &str| pattern == host;
        let own = self
            .hosts
            .iter()
            .find(|entry| is_own(&entry.pattern.to_string()));
        let entry = own.or_else(|| self.hosts.iter().find(|entry| entry.pattern.matches(host)))?;
        let subject = LimitedSubject::Host(entry.pattern.to_string());
        Some((subject, entry.limits))
    }
}

#[cfg(test)]
mod tests;
