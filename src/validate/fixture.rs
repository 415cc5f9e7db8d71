//! Tools for tests, as tools.yaml would give them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::model::{
    Backing, Compare, Effect, OnFailure, OutputKind, Part, Retry, Safety, Status, Template,
    Timeout, Tool, Tools,
};

/// A tool without backing that takes what `schema` does.
pub(crate) fn tool(name: &str, schema: Value) -> Tool {
    Tool {
        name: name.to_owned(),
        description: String::new(),
        display_name: None,
        category: None,
        input_schema: schema,
        describe: None,
        safety: Safety::Default,
        effect: Effect::Write,
        timeout: Timeout {
            after: Duration::from_secs(30),
            grace: Duration::from_secs(2),
            slow: None,
            total: None,
        },
        estimate: None,
        paths: Vec::new(),
        status: Status::default(),
        backing: None,
        probe: None,
        output: OutputKind::Text,
        max_output: 65_536,
        max_saved: 64 << 20,
        retry: Retry {
            times: 0,
            on: Vec::new(),
            backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(30),
        },
        on_failure: OnFailure::Continue,
        pause_after_failures: None,
        coerce: true,
        compare: Compare::Json,
        ignore: Vec::new(),
        messages: BTreeMap::new(),
    }
}

/// The same with what does its work.
pub(crate) fn backed(backing: Backing) -> Tool {
    Tool {
        backing: Some(backing),
        ..tool("t", Value::Bool(true))
    }
}

/// A file with these tools, its root at `root`.
pub(crate) fn tools(tools: Vec<Tool>, root: PathBuf) -> Arc<Tools> {
    Arc::new(Tools {
        tools: tools.into_iter().map(Arc::new).collect(),
        concurrency: NonZeroUsize::MIN,
        dir: root.clone(),
        root,
        secrets: Vec::new(),
        messages: BTreeMap::default(),
        prices: crate::model::Prices::default(),
        digest: String::new(),
    })
}

/// A template out of `text`, `{a.b}`, `{a?}`, `{a...}` and `${NAME}`; no escapes.
pub(crate) fn template(text: &str) -> Template {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = open + rest[open..].find('}').unwrap();
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
