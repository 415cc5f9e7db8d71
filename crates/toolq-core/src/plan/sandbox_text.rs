//! Renders what a call's program can reach, for people and for programs.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use crate::check::build_server_command;
use crate::text::escape;
use crate::types::{
    AcceptedCall, Backing, Invocation, MissingProtection, SandboxInvocation, SandboxNetwork,
    SandboxPlace,
};
use redact::Mask;

/// What a program can reach.
#[derive(Serialize)]
pub(crate) struct SandboxJson {
    read: Vec<String>,
    write: Vec<String>,
    /// `none`, `all`, or TCP ports.
    network: Value,
    /// Whether it also runs where the system can't confine all of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'static str>,
}

impl SandboxJson {
    /// Returns `None` if the call's program isn't confined.
    pub(crate) fn new(accepted: &AcceptedCall, mask: &Mask) -> Option<Self> {
        let sandbox = find_sandbox(accepted)?;
        let texts = |places: &[SandboxPlace]| {
            let texts = places.iter().map(SandboxPlace::text);
            texts.map(|text| mask.apply(&text).into_owned()).collect()
        };
        Some(Self {
            read: texts(&sandbox.read),
            write: texts(&sandbox.write),
            network: match &sandbox.network {
                SandboxNetwork::Ports(ports) => json!(ports),
                word => json!(word.to_string()),
            },
            missing: (sandbox.missing == MissingProtection::Warn).then_some("warn"),
        })
    }
}

/// Renders `sandbox: read root, system; write a.txt; no network` on one line, with control characters escaped. Returns
/// `None` if the call's program isn't confined.
pub(crate) fn render_sandbox(accepted: &AcceptedCall, mask: &Mask) -> Option<String> {
    let line = format!("sandbox: {}", find_sandbox(accepted)?.describe());
    Some(escape(&mask.apply(&line)).into_owned())
}

/// Returns the sandbox of the program that a call starts, or of the server that it calls.
fn find_sandbox(accepted: &AcceptedCall) -> Option<Cow<'_, SandboxInvocation>> {
    if let Some(Invocation::Command(command)) = &accepted.invocation {
        return command.sandbox.as_deref().map(Cow::Borrowed);
    }
    let Some(Backing::Mcp(mcp)) = &accepted.tool.backing else {
        return None;
    };
    let command = build_server_command(mcp.server.program()?);
    command.sandbox.map(|sandbox| Cow::Owned(*sandbox))
}
