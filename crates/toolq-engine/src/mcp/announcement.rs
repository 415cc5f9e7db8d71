//! What a server announces about itself and its tools, and who asks for that.

use std::collections::BTreeMap;

use redact::Mask;
use toolq_core::json::find_lost_digits;
use toolq_core::types::{ServerLock, ToolDefinition, ToolLock};
use toolq_mcp::client::{ServerIdentity, ToolList};
use toolq_mcp::{ProtocolEra, Tool};

/// What a server announces.
#[derive(Debug, Clone)]
pub struct ServerAnnouncement {
    /// The server's own name and version, if it says them.
    pub name: Option<String>,
    /// The server's own version.
    pub version: Option<String>,
    /// The revision of the protocol.
    pub protocol: String,
    /// Whether the revision is one without a handshake.
    pub is_modern: bool,
    /// The tools by name.
    pub tools: BTreeMap<String, ToolDefinition>,
    /// Why other tools can't be used, one sentence each.
    pub problems: Vec<String>,
}

impl ServerAnnouncement {
    /// The era of the protocol's revision: `legacy` or `modern`.
    pub fn era(&self) -> &'static str {
        if self.is_modern { "modern" } else { "legacy" }
    }

    /// Returns the announcement in the form of tools.lock. Tools that are as they were in `old` keep the effects that a person
    /// gave them.
    pub fn to_lock(&self, old: Option<&ServerLock>, date: String) -> ServerLock {
        let tools = self.tools.iter().map(|(name, definition)| {
            let old = old.and_then(|old| old.tools.get(name));
            let mut tool = ToolLock::new(definition.clone());
            if let Some(old) = old.filter(|old| old.sha256 == tool.sha256) {
                tool.effect = old.effect;
            }
            (name.clone(), tool)
        });
        ServerLock {
            name: self.name.clone(),
            version: self.version.clone(),
            protocol: self.protocol.clone(),
            date,
            tools: tools.collect(),
        }
    }

    /// Returns the SHA-256 in hex of what it says.
    pub(crate) fn digest(&self) -> String {
        self.to_lock(None, String::new()).digest()
    }

    /// Masks the secrets in what a server said.
    pub(crate) fn new(identity: Option<&ServerIdentity>, list: ToolList, mask: &Mask) -> Self {
        let masked = |text: &str| mask.apply(text).into_owned();
        let implementation = identity.and_then(|identity| identity.implementation.as_ref());
        let mut problems = list.problems;
        let mut tools = BTreeMap::new();
        for tool in list.tools {
            match define_tool(&tool, mask) {
                Ok(definition) => {
                    tools.insert(masked(&tool.name), definition);
                }
                Err(why) => problems.push(format!("the tool {} is left out: {why}", tool.name)),
            }
        }
        Self {
            name: implementation.map(|server| masked(&server.name)),
            version: implementation.map(|server| masked(&server.version)),
            protocol: identity
                .map_or("", |identity| identity.version.as_str())
                .to_owned(),
            is_modern: identity
                .is_some_and(|identity| identity.version.era() == ProtocolEra::Modern),
            tools,
            problems: problems.iter().map(|problem| masked(problem)).collect(),
        }
    }
}

fn define_tool(tool: &Tool, mask: &Mask) -> Result<ToolDefinition, String> {
    let text = serde_json::to_string(tool).map_err(|error| error.to_string())?;
    let text = mask.apply(&text);
    match find_lost_digits(&text) {
        Some(integer) => Err(format!("its definition has {integer}")),
        None => serde_json::from_str(&text).map_err(|error| error.to_string()),
    }
}
