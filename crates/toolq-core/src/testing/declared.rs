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

use crate::testing::tool;
use crate::types::{Backing, Part, Retry, Template, Tool, Tools};

/// A tool without a backing that takes what `schema` accepts. A failed attempt isn't repeated.
pub fn tool_with_schema(name: &str, schema: Value) -> Tool {
    let tool = tool(name);
    Tool {
        input_schema: schema,
        retry: Retry {
            times: 0,
            ..tool.retry
        },
        ..tool
    }
}

/// A tool with a backing that takes any input.
pub fn tool_with_backing(backing: Backing) -> Tool {
    Tool {
        backing: Some(backing),
        ..tool_with_schema("t", Value::Bool(true))
    }
}

/// A tools file with these tools and this root.
pub fn tools_in(tools: Vec<Tool>, root: PathBuf) -> Arc<Tools> {
    Arc::new(Tools {
        tools: tools.into_iter().map(Arc::new).collect(),
        concurrency: NonZeroUsize::MIN,
        dir: root.clone(),
        root,
        secrets: Vec::new(),
        messages: BTreeMap::default(),
        prices: crate::types::Prices::default(),
        digest: String::new(),
    })
}

/// The template that `text` means: `{a.b}`, `{a?}`, `{a...}` and `${NAME}`, without escapes.
///
/// # Panics
/// A brace isn't closed.
pub fn template(text: &str) -> Template {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = open + rest[open..].find('}').expect("a closed brace");
        let (before, name) = (&rest[..open], &rest[open + 1..close]);
        let is_env = before.ends_with('$');
        let before = before.trim_end_matches('$');
        if !before.is_empty() {
            parts.push(Part::Text(before.to_owned()));
        }
        parts.push(if is_env {
            Part::Env {
                name: name.to_owned(),
                default: None,
            }
        } else {
            Part::Value {
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
        parts.push(Part::Text(rest.to_owned()));
    }
    Template { parts }
}
