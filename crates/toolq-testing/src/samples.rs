//! Tools and calls, built without a file. The unit tests of toolq-core compile this file as a module of theirs, since their types
//! are those of another build.

#![allow(
    clippy::expect_used,
    reason = "a test with a wrong template should fail"
)]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolq_core::json::Input;
use toolq_core::types::{
    AcceptedCall, ApprovalPolicy, Backing, Call, CallKind, CallTimeouts, CheckedCall,
    CommandInvocation, Compare, Effect, EnvFile, Invocation, OnDoubt, OnFailure, OutputKind,
    PriceTable, ProblemDetail, Rejection, RejectionReason, RetryPolicy, SafetyPolicy, SafetySource,
    StartLimits, StatusTemplates, StdinContent, Template, TemplatePart, Tool, ToolsConfig, Verdict,
};

/// Returns a tool that declares nothing but its name.
pub fn sample_tool(name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        description: String::new(),
        display_name: None,
        category: None,
        input_schema: json!({"type": "object"}),
        describe: None,
        awaits_list: false,
        safety: SafetyPolicy::Default,
        approve: ApprovalPolicy::Never,
        locks: None,
        start_limits: StartLimits::default(),
        effect: Effect::Write,
        destructive: None,
        open_world: None,
        timeout: CallTimeouts {
            after: Duration::from_secs(30),
            kill_grace: Duration::from_secs(2),
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
        max_output: 64 << 10,
        max_saved: 64 << 20,
        retry: RetryPolicy {
            max_retries: 1,
            conditions: Vec::new(),
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(30),
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
        messages: BTreeMap::new(),
    }
}

/// Returns a tools file with these tools.
pub fn sample_tools(tools: Vec<Tool>) -> ToolsConfig {
    ToolsConfig {
        tools: tools.into_iter().map(Arc::new).collect(),
        concurrency: NonZeroUsize::MIN,
        root: PathBuf::from("/root"),
        dir: PathBuf::from("/root"),
        servers: Vec::new(),
        unlocked: Vec::new(),
        own_files: Vec::new(),
        env_file: EnvFile::default(),
        secrets: Vec::new(),
        messages: BTreeMap::default(),
        prices: PriceTable::default(),
        digest: "00".repeat(32),
    }
}

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
        env_file: EnvFile::default(),
        secrets: Vec::new(),
        messages: BTreeMap::default(),
        prices: PriceTable::default(),
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

/// Returns a call in turn 0 with the id `toolu_POSITION`.
pub fn sample_call(position: usize, name: &str, input: &str) -> Call {
    Call {
        turn: 0,
        position,
        id: format!("toolu_{position}"),
        name: name.into(),
        input: Input::parse(input).map_err(Box::new),
        parent: None,
        has_number_id: false,
        kind: CallKind::Function,
    }
}

/// Returns a call of `tool` that may run. Its safety is decided by a rule.
pub fn accepted_call(position: usize, tool: Tool, safe: bool, input: &str) -> CheckedCall {
    let call = sample_call(position, &tool.name, input);
    let verdict = Verdict::Accepted(Box::new(AcceptedCall {
        tool: Arc::new(tool),
        input: Input::parse(input).unwrap_or_else(|_| Input::empty()),
        before_coercion: None,
        is_coerced: false,
        safe,
        safety_source: SafetySource::Rule(if safe { "get_*" } else { "save_*" }.into()),
        locks: None,
        needs_approval: false,
        invocation: None,
        probe: None,
    }));
    CheckedCall {
        call,
        verdict,
        known: None,
        approval: None,
        unsettled: None,
        is_renewed: false,
        repeats: None,
    }
}

/// Returns a call of a tool with this name and estimate.
pub fn call_with_estimate(position: usize, name: &str, seconds: u64, safe: bool) -> CheckedCall {
    let estimate = Some(Duration::from_secs(seconds));
    let tool = Tool {
        estimate,
        ..sample_tool(name)
    };
    accepted_call(position, tool, safe, "{}")
}

/// Returns a call of an unknown tool.
pub fn rejected_call(position: usize, name: &str) -> CheckedCall {
    CheckedCall {
        call: sample_call(position, name, "{}"),
        verdict: Verdict::rejected(Rejection {
            reason: RejectionReason::UnknownTool,
            details: vec![ProblemDetail::new(
                "",
                "no tool has this name; did you mean `read_file`?",
            )],
        }),
        known: None,
        approval: None,
        unsettled: None,
        is_renewed: false,
        repeats: None,
    }
}

/// Returns the same call, running this program.
pub fn with_program(mut checked: CheckedCall, argv: &[&str]) -> CheckedCall {
    if let Verdict::Accepted(accepted) = &mut checked.verdict {
        accepted.invocation = Some(Invocation::Command(CommandInvocation {
            argv: argv.iter().collect(),
            stdin: StdinContent::None,
            env: Box::default(),
            sandbox: None,
        }));
    }
    checked
}
