//! Tools and templates as tools.yaml would declare them.

#![allow(
    clippy::expect_used,
    reason = "a test with a wrong template should fail"
)]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::testing::sample_tool;
use crate::types::{Backing, RetryPolicy, Template, TemplatePart, Tool, ToolsConfig};

/// Returns a tool without a backing that accepts the inputs that `schema` accepts. Failed attempts aren't retried.
pub fn tool_with_schema(name: &str, schema: Value) -> Tool {
    let tool = sample_tool(name);
    Tool {
        input_schema: schema,
        retry: RetryPolicy {
            max_retries: 0,
            ..tool.retry
        },
        ..tool
    }
}

/// Returns a tool with this backing that accepts any input.
pub fn tool_with_backing(backing: Backing) -> Tool {
    Tool {
        backing: Some(backing),
        ..tool_with_schema("t", Value::Bool(true))
    }
}

/// Returns a tools file with these tools and this root.
pub fn tools_with_root(tools: Vec<Tool>, root: PathBuf) -> Arc<ToolsConfig> {
    Arc::new(ToolsConfig {
        tools: tools.into_iter().map(Arc::new).collect(),
        concurrency: NonZeroUsize::MIN,
        dir: root.clone(),
        root,
        servers: Vec::new(),
        unlocked: Vec::new(),
        own_files: Vec::new(),
        env_file: crate::types::EnvFile::default(),
        secrets: Vec::new(),
        messages: BTreeMap::default(),
        hosts: Vec::new(),
        prices: crate::types::PriceTable::default(),
        formats: crate::types::FormatPolicy::Annotate,
        digest: String::new(),
    })
}

/// Parses a template with `{a.b}`, `{a?}`, `{a...}`, and `${NAME}`, but without escapes.
///
/// # Panics
/// A brace isn't closed.
pub fn sample_template(text: &str) -> Template {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = open + rest[open..].find('}').expect("a closed brace");
        let (before, name) = (&rest[..open], &rest[open + 1..close]);
        let is_env = before.ends_with('$');
        let before = before.trim_end_matches('$');
        if !before.is_empty() {
            parts.push(TemplatePart::Text(before.to_owned()));
        }
        parts.push(if is_env {
            TemplatePart::Env {
                name: name.to_owned(),
                default: None,
            }
        } else {
            TemplatePart::Value {
                path: name
                    .trim_end_matches(['?', '.'])
                    .split('.')
                    .map(str::to_owned)
                    .collect(),
                optional: name.contains('?'),
                splat: name.ends_with("..."),
            }
        });
        rest = &rest[close + 1..];
    }
    if !rest.is_empty() {
        parts.push(TemplatePart::Text(rest.to_owned()));
    }
    Template { parts }
}
