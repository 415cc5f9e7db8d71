//! Renders what a call's program can reach, for people and for programs.

use std::borrow::Cow;
use std::fmt::Write as _;

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
    let sandbox = find_sandbox(accepted)?;
    let mut line = "sandbox:".to_owned();
    for (verb, places) in [("read", &sandbox.read), ("write", &sandbox.write)] {
        let texts: Vec<String> = places.iter().map(SandboxPlace::text).collect();
        let texts = match texts.join(", ") {
            none if none.is_empty() => "nothing".to_owned(),
            texts => texts,
        };
        // Writing to a string can't fail.
        let _ = write!(line, " {verb} {texts};");
    }
    match &sandbox.network {
        SandboxNetwork::None => line.push_str(" no network"),
        SandboxNetwork::All => line.push_str(" any network"),
        SandboxNetwork::Ports(ports) => {
            let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
            let _ = write!(line, " TCP to {}", ports.join(", "));
        }
    }
    if sandbox.missing == MissingProtection::Warn {
        line.push_str("; as far as the system can");
    }
    Some(escape(&mask.apply(&line)).into_owned())
}

/// Returns the sandbox of the program that a call starts, or of the server that it calls.
fn find_sandbox(accepted: &AcceptedCall) -> Option<Cow<'_, SandboxInvocation>> {
    if let Some(Invocation::Command(command)) = &accepted.invocation {
        return command.sandbox.as_ref().map(Cow::Borrowed);
    }
    let Some(Backing::Mcp(mcp)) = &accepted.tool.backing else {
        return None;
    };
    let command = build_server_command(mcp.server.program()?);
    command.sandbox.map(Cow::Owned)
}
