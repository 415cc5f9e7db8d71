//! Sandboxes: what the program of a tool or a server can reach.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::types::invocation::PartialTemplate;
use crate::types::template::Template;

/// `sandbox`: what a program, and all that it starts, can reach.
#[derive(Debug, Clone, Default)]
pub struct Sandbox {
    /// What it may read and execute.
    pub read: Vec<SandboxEntry>,
    /// What it may read and change.
    pub write: Vec<SandboxEntry>,
    /// What it may reach over the network.
    pub network: SandboxNetwork,
    /// What happens if the system can't do all of this.
    pub missing: MissingProtection,
    /// Whether nothing outside of the root may be changed, wherever `write` and links lead. tools.yaml can't say so: it
    /// protects everything but a copy of the root.
    pub changes_only_root: bool,
}

/// An entry of `read` or `write`.
#[derive(Debug, Clone)]
pub enum SandboxEntry {
    /// The word `root`: the working root.
    Root,
    /// The word `system`: what programs need to start.
    System,
    /// A file or directory. Values in it are inputs named in `paths`.
    Path(Template),
}

/// What a program may reach over the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SandboxNetwork {
    /// Nothing, not even Unix sockets.
    #[default]
    None,
    /// Everything.
    All,
    /// These ports of any host, as a client over TCP.
    Ports(Vec<u16>),
}

/// What happens if the system can't apply all of a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissingProtection {
    /// The program doesn't start.
    #[default]
    Refuse,
    /// It starts with what the system can do, and there is a warning.
    Warn,
}

/// The sandbox of one call, with its values filled in.
#[derive(Debug, Clone)]
pub struct SandboxInvocation {
    /// What the program may read and execute.
    pub read: Vec<SandboxPlace>,
    /// What it may read and change.
    pub write: Vec<SandboxPlace>,
    /// What it may reach over the network.
    pub network: SandboxNetwork,
    /// What happens if the system can't do all of this.
    pub missing: MissingProtection,
    /// Whether nothing outside of the root may be changed, wherever `write` and links lead.
    pub changes_only_root: bool,
}

/// An entry of `read` or `write`, with its values filled in.
#[derive(Debug, Clone)]
pub enum SandboxPlace {
    /// The working root.
    Root,
    /// What programs need to start.
    System,
    /// A file or directory as declared, relative to the working root.
    Declared(PartialTemplate),
    /// A file or directory that the input names, relative to the program's working directory. It must be in the root.
    FromInput(PartialTemplate),
}

impl Sandbox {
    /// Describes the sandbox on one line: `read root, system; write {path}; no network`.
    pub fn describe(&self) -> String {
        let texts = |entries: &[SandboxEntry]| entries.iter().map(SandboxEntry::text).collect();
        describe(
            texts(&self.read),
            texts(&self.write),
            &self.network,
            self.missing,
        )
    }
}

impl SandboxEntry {
    fn text(&self) -> String {
        match self {
            Self::Root => "root".to_owned(),
            Self::System => "system".to_owned(),
            Self::Path(template) => template.fill(|path| format!("{{{}}}", path.join("."))),
        }
    }
}

impl SandboxInvocation {
    /// As [`Sandbox::describe`], with the values of a call.
    pub fn describe(&self) -> String {
        let texts = |places: &[SandboxPlace]| places.iter().map(SandboxPlace::text).collect();
        describe(
            texts(&self.read),
            texts(&self.write),
            &self.network,
            self.missing,
        )
    }
}

fn describe(
    read: Vec<String>,
    write: Vec<String>,
    network: &SandboxNetwork,
    missing: MissingProtection,
) -> String {
    let list = |texts: Vec<String>| match texts.join(", ") {
        none if none.is_empty() => "nothing".to_owned(),
        texts => texts,
    };
    let network = match network {
        SandboxNetwork::None => "no network".to_owned(),
        SandboxNetwork::All => "any network".to_owned(),
        SandboxNetwork::Ports(ports) => {
            let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
            format!("TCP to {}", list(ports))
        }
    };
    let rest = match missing {
        MissingProtection::Refuse => "",
        MissingProtection::Warn => "; as far as the system can",
    };
    format!(
        "read {}; write {}; {network}{rest}",
        list(read),
        list(write)
    )
}

impl SandboxPlace {
    /// Returns the entry as tools.yaml would have it.
    pub fn text(&self) -> String {
        match self {
            Self::Root => "root".to_owned(),
            Self::System => "system".to_owned(),
            Self::Declared(path) | Self::FromInput(path) => path.to_string(),
        }
    }
}

/// Formats the ports, or a word.
impl fmt::Display for SandboxNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::All => f.write_str("all"),
            Self::Ports(ports) => {
                let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", ports.join(", "))
            }
        }
    }
}
