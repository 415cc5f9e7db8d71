use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::declare::{DeclarationFormat, render_declarations};
use crate::types::{
    ApprovalPolicy, CallTimeouts, Compare, Effect, OnDoubt, OnFailure, OutputKind, RetryPolicy,
    SafetyPolicy, StartLimits, StatusTemplates, Tool, ToolsConfig,
};

fn tool(name: &str, category: Option<&str>, effect: Effect, input_schema: Value) -> Arc<Tool> {
    Arc::new(Tool {
        name: name.to_owned(),
        description: format!("What {name} does."),
        display_name: (effect == Effect::Read).then(|| "Reading".to_owned()),
        category: category.map(str::to_owned),
        input_schema,
        describe: None,
        awaits_list: false,
        safety: SafetyPolicy::Default,
        approve: ApprovalPolicy::Never,
        locks: None,
        start_limits: StartLimits::default(),
        effect,
        destructive: None,
        open_world: None,
        timeout: CallTimeouts {
            after: Duration::ZERO,
            kill_grace: Duration::ZERO,
            slow_after: None,
            total: None,
        },
        estimate: None,
        paths: Vec::new(),
        status: StatusTemplates::default(),
        backing: None,
        probe: None,
        output: OutputKind::Text,
        raw_output: false,
        empty_output: None,
        output_schema: None,
        max_output: 0,
        max_saved: 0,
        retry: RetryPolicy {
            max_retries: 0,
            conditions: Vec::new(),
            initial_backoff: Duration::ZERO,
            max_backoff: Duration::ZERO,
        },
        on_failure: OnFailure::Continue,
        on_doubt: OnDoubt::default(),
        pause_after_failures: None,
        coerce: true,
        compare: Compare::Json,
        ignore: Vec::new(),
        normalize: Vec::new(),
        cache: None,
        once: None,
        messages: std::collections::BTreeMap::new(),
    })
}

fn tools() -> ToolsConfig {
    let schema = json!({
        "type": "object",
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "Where.\nRelative."},
            "lines": {"type": "array", "items": {"type": ["integer", "null"]}},
            "mode": {"enum": ["a", 1]},
            "any": {"anyOf": [{"type": "string"}, {}]},
        },
    });
    ToolsConfig {
        servers: Vec::new(),
        unlocked: Vec::new(),
        tools: vec![
            tool("now", None, Effect::Idempotent, json!({"type": "object"})),
            tool("read", Some("files"), Effect::Read, schema.clone()),
            tool("write", Some("files"), Effect::Write, schema),
        ],
        concurrency: NonZeroUsize::MIN,
        root: PathBuf::new(),
        dir: PathBuf::new(),
        own_files: Vec::new(),
        env_file: crate::types::EnvFile::default(),
        secrets: Vec::new(),
        messages: std::collections::BTreeMap::default(),
        prices: crate::types::PriceTable::default(),
        digest: String::new(),
    }
}

#[test]
fn the_prompt_section_groups_by_category() {
    insta::assert_snapshot!(render_declarations(&tools(), DeclarationFormat::Markdown));
}

#[test]
fn each_api_gets_its_own_keys() {
    let declared =
        |how| serde_json::from_str::<Value>(&render_declarations(&tools(), how)).unwrap();
    let schema = &tools().tools[1].input_schema;
    assert_eq!(
        &declared(DeclarationFormat::Anthropic)[1]["input_schema"],
        schema
    );
    assert_eq!(
        &declared(DeclarationFormat::OpenAiChat)[1]["function"]["parameters"],
        schema
    );
    assert_eq!(
        declared(DeclarationFormat::OpenAiResponses)[1]["strict"],
        false
    );
    let mcp = declared(DeclarationFormat::Mcp);
    let hints = |index: usize| mcp["tools"][index]["annotations"].clone();
    assert_eq!(
        hints(0),
        json!({"readOnlyHint": false, "idempotentHint": true})
    );
    assert_eq!(
        hints(1),
        json!({"readOnlyHint": true, "idempotentHint": true})
    );
    assert_eq!(
        hints(2),
        json!({"readOnlyHint": false, "idempotentHint": false})
    );
    assert_eq!(mcp["tools"][1]["title"], "Reading");
}

/// Nested fields are shown, even through a `$ref`; recursive schemas are expanded once.
#[test]
fn the_prompt_section_lists_every_field() {
    let schema = json!({
        "type": "object",
        "required": ["node"],
        "properties": {
            "node": {"$ref": "#/$defs/node"},
            "rows": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {
                "id": {"type": "integer", "description": "Whose\nrow."},
                "mode": {"const": "fast"},
            }}},
            "size": {"allOf": [{}, {"type": "number"}], "description": "How large."},
            "kind": {"anyOf": [{"$ref": "#/$defs/kind"}, {"type": "null"}]},
            "lost": {"$ref": "#/$defs/gone"},
        },
        "$defs": {
            "node": {"type": "object", "description": "A node.", "properties": {
                "child": {"$ref": "#/$defs/node"}, "name": {"type": "string"},
            }},
            "kind": {"enum": ["a", "b"]},
        },
    });
    let one = ToolsConfig {
        tools: vec![tool("t", None, Effect::Write, schema)],
        ..tools()
    };
    insta::assert_snapshot!(render_declarations(&one, DeclarationFormat::Markdown), @r#"
    # Available Tools

    1 tool

    ## t

    What t does.

    Parameters:

    - `node` (object, required): A node.
      - `child` (any, optional)
      - `name` (string, optional)
    - `rows` (array of object, optional)
      - `id` (integer, required): Whose
        row.
      - `mode` (always "fast", optional)
    - `size` (number, optional): How large.
    - `kind` (one of "a", "b" or null, optional)
    - `lost` (any, optional)
    "#);
}
