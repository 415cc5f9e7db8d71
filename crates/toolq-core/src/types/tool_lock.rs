//! What servers announced about their tools when a person locked them.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::json::expect_json;
use crate::types::safety::Effect;

/// What a server announced when it was locked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerLock {
    /// The name that it gave itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version that it gave itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The revision of the protocol that it spoke.
    pub protocol: String,
    /// When.
    pub date: String,
    /// Its tools by name.
    pub tools: BTreeMap<String, ToolLock>,
}

/// A tool of a server when it was locked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolLock {
    /// What a person says that it does to the world.
    pub effect: Effect,
    /// What the server says, which counts for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Effect>,
    /// The digest of the definition.
    pub sha256: String,
    /// What the server announced.
    pub definition: ToolDefinition,
}

/// A tool as its server announces it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What the server claims about its effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

/// How a tool differs from what was locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolDrift {
    /// The server has no such tool any more.
    Gone,
    /// These parts of its definition differ.
    Changed(Vec<DefinitionPart>),
}

/// A part of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionPart {
    /// The name for people.
    Title,
    /// What the model reads about the tool.
    Description,
    /// The schema of its arguments.
    InputSchema,
    /// The schema of its structured content.
    OutputSchema,
    /// What the server claims about its effects.
    Annotations,
}

impl ServerLock {
    /// Returns the SHA-256 of the lock in hex.
    pub fn digest(&self) -> String {
        let json = expect_json(serde_json::to_string(self));
        HEXLOWER.encode(&Sha256::digest(json))
    }
}

impl ToolDefinition {
    /// Returns the SHA-256 of the definition in hex. The order of keys doesn't count.
    pub fn digest(&self) -> String {
        let mut value = expect_json(serde_json::to_value(self));
        value.sort_all_objects();
        HEXLOWER.encode(&Sha256::digest(value.to_string()))
    }

    /// Returns the effect that the annotations claim, if they claim one. Both hints are false by default.
    pub fn hint(&self) -> Option<Effect> {
        let annotations = self.annotations.as_ref()?;
        let claims = |hint| annotations.get(hint) == Some(&Value::Bool(true));
        if claims("readOnlyHint") {
            Some(Effect::Read)
        } else if claims("idempotentHint") {
            Some(Effect::Idempotent)
        } else {
            let is_annotated = annotations.get("readOnlyHint").is_some();
            is_annotated.then_some(Effect::Write)
        }
    }

    /// Returns which parts differ in `other`. The order of keys doesn't count.
    pub fn find_changes(&self, other: &Self) -> Vec<DefinitionPart> {
        let parts = [
            (DefinitionPart::Title, self.title != other.title),
            (
                DefinitionPart::Description,
                self.description != other.description,
            ),
            (
                DefinitionPart::InputSchema,
                self.input_schema != other.input_schema,
            ),
            (
                DefinitionPart::OutputSchema,
                self.output_schema != other.output_schema,
            ),
            (
                DefinitionPart::Annotations,
                self.annotations != other.annotations,
            ),
        ];
        let changed = parts.into_iter().filter(|(_, is_changed)| *is_changed);
        changed.map(|(part, _)| part).collect()
    }
}

impl ToolLock {
    /// Locks a definition. A tool has the effect `write` until a person says otherwise.
    pub fn new(definition: ToolDefinition) -> Self {
        Self {
            effect: Effect::Write,
            hint: definition.hint(),
            sha256: definition.digest(),
            definition,
        }
    }

    /// Returns how a tool differs that its server now announces like this, or not at all.
    pub fn find_drift(&self, now: Option<&ToolDefinition>) -> Option<ToolDrift> {
        let Some(now) = now else {
            return Some(ToolDrift::Gone);
        };
        if now.digest() == self.sha256 {
            return None;
        }
        Some(ToolDrift::Changed(self.definition.find_changes(now)))
    }
}

impl DefinitionPart {
    /// Returns the name of the part.
    pub fn name(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Description => "description",
            Self::InputSchema => "input schema",
            Self::OutputSchema => "output schema",
            Self::Annotations => "annotations",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(value: Value) -> ToolDefinition {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_order_of_keys_is_no_change() {
        let one = definition(
            json!({"description": "d", "inputSchema": {"type": "object", "a": {"x": 1, "y": 2}}}),
        );
        let other = definition(
            json!({"inputSchema": {"a": {"y": 2, "x": 1}, "type": "object"}, "description": "d"}),
        );
        assert_eq!(ToolLock::new(one).find_drift(Some(&other)), None);
    }

    #[test]
    fn each_part_that_differs_is_named() {
        let one = definition(json!({"description": "d", "inputSchema": {"type": "object"}}));
        let other = definition(json!({
            "title": "t", "description": "e", "inputSchema": {"type": "object", "properties": {}},
            "outputSchema": {}, "annotations": {"readOnlyHint": true},
        }));
        let lock = ToolLock::new(one);
        let Some(ToolDrift::Changed(parts)) = lock.find_drift(Some(&other)) else {
            panic!("no drift");
        };
        let names: Vec<&str> = parts.into_iter().map(DefinitionPart::name).collect();
        assert_eq!(
            names,
            [
                "title",
                "description",
                "input schema",
                "output schema",
                "annotations"
            ]
        );
        assert_eq!(lock.find_drift(None), Some(ToolDrift::Gone));
    }

    #[test]
    fn a_hint_is_only_noted() {
        for (annotations, hint) in [
            (json!({"readOnlyHint": true}), Some(Effect::Read)),
            (
                json!({"idempotentHint": true, "readOnlyHint": false}),
                Some(Effect::Idempotent),
            ),
            (json!({"readOnlyHint": false}), Some(Effect::Write)),
            (json!({"title": "t"}), None),
            (json!(true), None),
        ] {
            let lock = ToolLock::new(definition(
                json!({"inputSchema": {}, "annotations": annotations}),
            ));
            assert_eq!((lock.effect, lock.hint), (Effect::Write, hint));
        }
    }
}
