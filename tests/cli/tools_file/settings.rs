//! Settings: from the tool, from the file's `defaults`, and from toolq's own defaults.

use std::path::Path;
use std::time::Duration;

use toolq_core::types::{
    Backing, Effect, OnFailure, OutputKind, RetryCondition, SafetyPolicy, SafetyRule, Template,
};

use crate::tools_file::{
    assert_no_problems, assert_refused, assert_warned, file_with_lines, file_with_tool, load_tools,
};

/// Where the file says nothing, toolq makes the careful choice.
#[test]
fn unset_keys_get_the_defaults() {
    let tools = load_tools(&file_with_tool(""));
    let tool = &tools.tools[0];
    assert_eq!(tools.concurrency.get(), 10);
    assert_eq!(tools.root, Path::new("/srv"));
    assert_eq!(tool.effect, Effect::Write);
    assert_eq!(tool.safety, SafetyPolicy::Default);
    assert_eq!(tool.timeout.after, Duration::from_secs(30));
    assert_eq!(tool.timeout.kill_grace, Duration::from_secs(2));
    assert_eq!((tool.timeout.slow_after, tool.timeout.total), (None, None));
    assert_eq!((tool.max_output, tool.max_saved), (65_536, 64 << 20));
    assert_eq!(
        (tool.retry.max_retries, tool.retry.conditions.as_slice()),
        (1, &[RetryCondition::RateLimited][..])
    );
    assert_eq!(tool.on_failure, OnFailure::Continue);
    assert_eq!(tool.output, OutputKind::Text);
    assert!(tool.coerce && tool.backing.is_none());
    assert_eq!(tools.digest.len(), 64);
}

#[test]
fn settings_come_from_the_tool_then_the_defaults() {
    let text = format!(
        "defaults: {{timeout: {{after: 20s, total: 50s}}, retry: {{times: 4, on: [timeout, rate_limited]}}, output: json}}
rules:
  - {{tools: \"{{get,list}}_*\", concurrency_safe: true}}
  - {{tools: \"t\", concurrency_safe: false}}
{}",
        file_with_tool("timeout: 5s\neffect: read\nretry: {backoff: 2s}")
    );
    let tools = load_tools(&text);
    let tool = &tools.tools[0];
    assert_eq!(tool.timeout.after, Duration::from_secs(5));
    assert_eq!(tool.timeout.total, Some(Duration::from_secs(50)));
    assert_eq!(tool.retry.max_retries, 4);
    assert_eq!(
        tool.retry.conditions,
        [RetryCondition::Timeout, RetryCondition::RateLimited]
    );
    assert_eq!(tool.retry.initial_backoff, Duration::from_secs(2));
    assert_eq!(tool.output, OutputKind::Json);
    let rule = SafetyRule {
        glob: "t".into(),
        safe: false,
    };
    assert_eq!(tool.safety, SafetyPolicy::Rule(rule));
}

/// A shared default doesn't make a `write` tool retry what may have run.
#[test]
fn write_tools_inherit_only_safe_retries() {
    let text = format!(
        "defaults: {{retry: {{times: 3, on: [timeout, rate_limited]}}}}\n{}",
        file_with_tool("")
    );
    assert_eq!(
        load_tools(&text).tools[0].retry.conditions,
        [RetryCondition::RateLimited]
    );
    assert_refused(
        file_with_tool,
        r#"
        retry: {on: [timeout]} ⇒ timeout ⇒ surely did not run
        retry: {on: [rate_limited, "exit:75"]} ⇒ "exit:75" ⇒ surely did not run
        "#,
    );
    assert_no_problems(
        file_with_tool,
        r#"
        effect: idempotent ⏎ retry: {on: [timeout, "exit:75", "http:503"], times: 2}
        "#,
    );
}

/// A timeout or a concurrency of 0, a negative duration.
#[test]
fn numbers_out_of_range_are_refused() {
    assert_refused(
        file_with_lines,
        r"
        concurrency: 0 ⇒ 0 ⇒ can't run at once
        concurrency: 10001 ⇒ 10001 ⇒ can't run at once
        concurrency: -1 ⇒ -1 ⇒ must be a whole number
        version: 2 ⇒ 2 ⇒ isn't supported
        defaults: {timeout: 0s} ⇒ 0s ⇒ finish within this time
        defaults: {max_output: 0} ⇒ 0 ⇒ nothing through
        defaults: {max_parallel: 0} ⇒ 0 ⇒ would let no call start
        ",
    );
    assert_refused(
        file_with_tool,
        r"
        timeout: 0s ⇒ 0s ⇒ finish within this time
        timeout: -5s ⇒ -5s ⇒ isn't a duration
        timeout: 400d ⇒ 400d ⇒ longer than a year
        timeout: {after: 5s, total: 1s} ⇒ 1s ⇒ shorter than one attempt
        timeout: {total: 0ms} ⇒ 0ms ⇒ finish within this time
        max_output: 0 ⇒ 0 ⇒ nothing through
        max_parallel: 0 ⇒ 0 ⇒ would let no call start
        rate: 10 ⇒ 10 ⇒ a rate needs a period
        rate: 0/s ⇒ 0/s ⇒ isn't a rate
        rate: 1.5/s ⇒ 1.5/s ⇒ isn't a rate
        rate: 10/d ⇒ 10/d ⇒ isn't a rate
        max_output: 64kb ⇒ 64kb ⇒ isn't a size
        retry: {times: 101} ⇒ 101 ⇒ too many
        retry: {backoff: 60s, max_backoff: 1s} ⇒ 60s ⇒ longer than
        command: {argv: [a], success_exit: [256]} ⇒ 256 ⇒ isn't an exit code
        ",
    );
    assert_no_problems(
        file_with_tool,
        r"
        timeout: {after: 1ms, grace: 0s}
        max_output: 1
        max_parallel: 1 ⏎ rate: 600/m
        rate: 10 / s
        retry: {times: 0}
        timeout: 365d
        ",
    );
}

#[test]
fn unknown_message_placeholders_are_refused() {
    assert_refused(
        file_with_lines,
        r#"
        messages: {timeout: "{too} late"} ⇒ {too} ⇒ messages have no placeholder `{too}`
        messages: {timeout: "{tool?}"} ⇒ {tool?} ⇒ messages have no
        messages: {timout: late} ⇒ timout ⇒ unknown key
        "#,
    );
    let text = format!(
        "messages: {{timeout: \"{{tool}} 超时\", failed: f}}\n{}",
        file_with_tool("messages: {failed: \"own {error}\"}")
    );
    let tool = &load_tools(&text).tools[0];
    let texts: Vec<String> = tool.messages.values().map(Template::to_string).collect();
    assert_eq!(texts, ["{tool} 超时", "own {error}"]);
}

#[test]
fn a_rule_needs_tools_and_a_setting() {
    let rule = |rule: &str| file_with_lines(&format!("rules: [{rule}]"));
    assert_warned(
        rule,
        r#"{tools: "x*", concurrency_safe: true} ⇒ "x*" ⇒ no tool name matches"#,
    );
    assert_refused(
        rule,
        r#"
        {tools: "[", concurrency_safe: true} ⇒ "[" ⇒ isn't a valid glob
        {tools: t} ⇒ { ⇒ sets nothing
        {concurrency_safe: true} ⇒ { ⇒ no `tools`
        {tools: t, concurrency_safe: yes} ⇒ yes ⇒ must be `true` or `false`
        "#,
    );
}

/// Names that APIs reject or that would garble a terminal are refused.
#[test]
fn tool_names_are_checked() {
    let named = |name: &str| format!("tools:\n  {name}: {{input_schema: {{type: object}}}}\n");
    assert_refused(
        named,
        r#"
        "" ⇒ "" ⇒ 1 to 128 characters
        a b ⇒ a b ⇒ can't contain spaces
        "a\tb" ⇒ "a\tb" ⇒ can't contain spaces or control characters
        "#,
    );
    assert_refused(
        |_| named(&"x".repeat(129)),
        &format!("x ⇒ {} ⇒ 1 to 128", "x".repeat(129)),
    );
    assert_warned(named, "ns.tool ⇒ ns.tool ⇒ some APIs reject");
    let (longest_allowed, too_long) = ("x".repeat(64), "x".repeat(65));
    assert_warned(
        named,
        &format!("{too_long} ⇒ {too_long} ⇒ some APIs reject a name of 65"),
    );
    assert_no_problems(named, &longest_allowed);
    assert_no_problems(named, "Read-file_2");
}

#[test]
fn names_of_secrets_are_collected() {
    let text = format!(
        "secrets: [ONE]\n{}  u:\n    input_schema: {{type: object}}\n    http: {{url: \"${{BASE}}/x\", headers: {{x-key: \"${{TWO}}\"}}, query: {{k: \"${{THREE:-d}}\"}}}}\n",
        file_with_tool("command: {argv: [a], env: {X: \"${FOUR}\"}}")
    );
    assert_eq!(load_tools(&text).secrets, ["FOUR", "ONE", "THREE", "TWO"]);
    assert_refused(
        file_with_lines,
        "secrets: [a-b] ⇒ a-b ⇒ isn't a valid name for an environment variable",
    );
}

/// `compare` and `ignore` accept only known kinds and valid JSON pointers.
#[test]
fn compare_and_ignore_are_checked() {
    assert_refused(
        file_with_tool,
        r"
        compare: jsn ⇒ jsn ⇒ cannot be `jsn`
        ignore: [took_ms] ⇒ took_ms ⇒ isn't part of a result
        ignore: [/] ⇒ / ⇒ isn't part of a result
        ignore: [//] ⇒ // ⇒ isn't part of a result
        ignore: /took_ms ⇒ /took_ms ⇒ must be a list
        ",
    );
    assert_warned(
        file_with_tool,
        r"
        compare: exact ⏎ ignore: [/took_ms] ⇒ /took_ms ⇒ compared as a whole
        ",
    );
    assert_no_problems(
        file_with_tool,
        r"
        compare: schema
        ignore: [/took_ms, //id, //rows/0, /a~1b]
        ",
    );
}

#[test]
fn hints_for_clients_must_not_contradict_the_effect() {
    assert_refused(
        file_with_tool,
        r"
        effect: read ⏎ destructive: true ⇒ true ⇒ can't be destructive
        open_world: maybe ⇒ maybe ⇒ must be `true` or `false`
        ",
    );
    assert_no_problems(
        file_with_tool,
        r"
        effect: read ⏎ destructive: false ⏎ open_world: true
        effect: idempotent ⏎ destructive: true
        ",
    );
}

#[test]
fn an_output_schema_is_a_schema_of_json() {
    assert_refused(
        file_with_tool,
        r"
        output_schema: {type: object} ⇒ output_schema ⇒ only for `output: json`
        output: json ⏎ output_schema: {type: objekt} ⇒ objekt ⇒
        output: json ⏎ output_schema: text ⇒ text ⇒
        ",
    );
    assert_no_problems(
        file_with_tool,
        r"
        output: json ⏎ output_schema: {type: array, items: {$ref: '#/$defs/n'}, $defs: {n: {type: integer}}}
        ",
    );
}

#[test]
fn empty_is_the_json_of_a_json_tool() {
    assert_refused(
        file_with_tool,
        r"
        empty: '[]' ⇒ empty ⇒ `empty` is only for `output: json`
        output: json ⏎ empty: '[' ⇒ '[' ⇒ `empty` isn't JSON
        output: json ⏎ empty: [] ⇒ empty ⇒ must be text
        ",
    );
    let text = file_with_tool("output: json\nempty: '[]'");
    let tools = load_tools(&text);
    assert_eq!(tools.tools[0].empty_output.as_deref(), Some("[]"));
}

#[test]
fn settings_of_an_agents_requests_are_checked() {
    let frame = |key: &str| {
        file_with_tool(&format!(
            "agent: {{endpoint: \"http://127.0.0.1:1\", model: m, {key}}}"
        ))
    };
    assert_refused(
        frame,
        r"
        extra_body: [1] ⇒ [ ⇒ must be an object
        extra_body: {model: n} ⇒ { ⇒ `model` has a key of its own
        extra_body: {messages: []} ⇒ { ⇒ `messages` has a key of its own
        headers: {a b: c} ⇒ a b ⇒ isn't a valid header name
        ",
    );
    assert_no_problems(
        frame,
        r"
        extra_body: {temperature: 1.5, thinking: {type: enabled, budget_tokens: 1024}}
        headers: {anthropic-beta: x, authorization: y}
        cache: false
        ",
    );
}

#[test]
fn rules_set_any_default_by_name() {
    let text = format!(
        "defaults: {{timeout: {{after: 20s, total: 50s}}, output: json, coerce: false}}
rules:
  - {{tools: t, timeout: 5s, effect: read}}
  - {{tools: \"u\", timeout: 7s, effect: write}}
  - {{tools: \"*\", timeout: {{after: 9s, grace: 1s}}, on_failure: stop, output: text, concurrency_safe: false, limits: {{files: 9}}}}
{}  u:
    input_schema: {{type: object}}
    effect: idempotent
    timeout: 1s
    output: content
    command: {{argv: [a], limits: {{cpu: 3s}}}}
",
        file_with_tool("command: [a]")
    );
    let tools = load_tools(&text);
    let (t, u) = (&tools.tools[0], &tools.tools[1]);
    let seconds = Duration::from_secs;
    assert_eq!(t.effect, Effect::Read);
    assert_eq!(
        (t.timeout.after, t.timeout.kill_grace),
        (seconds(5), seconds(1))
    );
    assert_eq!(t.timeout.total, Some(seconds(50)));
    assert_eq!(
        (t.output, t.on_failure, t.coerce),
        (OutputKind::Text, OnFailure::Stop, false)
    );
    assert_eq!(u.effect, Effect::Idempotent);
    assert_eq!(
        (u.timeout.after, u.timeout.kill_grace),
        (seconds(1), seconds(1))
    );
    assert_eq!(
        (u.output, u.on_failure),
        (OutputKind::Content, OnFailure::Stop)
    );
    let Some(Backing::Command(command)) = &u.backing else {
        panic!()
    };
    assert_eq!(command.limits.files, Some(9));
    assert_eq!(command.limits.cpu, Some(seconds(3)));
    let rule = SafetyRule {
        glob: "*".into(),
        safe: false,
    };
    assert_eq!(t.safety, SafetyPolicy::Rule(rule));
}

#[test]
fn the_effect_of_a_rule_decides_the_safety_last() {
    let safety = |rule: &str, keys: &str| {
        let text = format!("rules: [{rule}]\n{}", file_with_tool(keys));
        load_tools(&text).tools[0].safety.clone()
    };
    let by_rule = |safe| {
        SafetyPolicy::Rule(SafetyRule {
            glob: "t".into(),
            safe,
        })
    };
    let keys = "command: [a]";
    assert_eq!(safety("{tools: t, effect: read}", keys), by_rule(true));
    assert_eq!(safety("{tools: t, effect: write}", keys), by_rule(false));
    assert_eq!(
        safety("{tools: t, timeout: 1s}", keys),
        SafetyPolicy::Default
    );
    assert_eq!(
        safety("{tools: t, effect: read}", "command: [a]\neffect: write"),
        SafetyPolicy::Effect(false)
    );
}

#[test]
fn rules_are_checked() {
    assert_refused(
        |rule: &str| format!("rules: [{rule}]\n{}", file_with_tool("command: [a]")),
        r"
        {tools: t, timeout: 0s}       ⇒ 0s     ⇒ no call can finish within this time
        {tools: t, limits: {files: 1}} ⇒ 1     ⇒ fewer than a program starts with
        {tools: t, max_output: 0}     ⇒ 0      ⇒ would let nothing through
        {tools: t, effect: red}       ⇒ red    ⇒ cannot be `red`
        {tools: t, coerce: true, description: x} ⇒ description ⇒ unknown key
        ",
    );
}

#[test]
fn locks_are_checked() {
    assert_refused(
        file_with_tool,
        r"
        locks: {} ⇒ locks ⇒ names nothing
        locks: {write: []} ⇒ locks ⇒ names nothing
        locks: {write: [x], other: []} ⇒ other ⇒ unknown key
        locks: {write: [x]} ⏎ concurrency_safe: true ⇒ concurrency_safe ⇒ has no effect
        ",
    );
    assert_no_problems(
        file_with_tool,
        r"
        locks: {write: [x]} ⏎ concurrency_safe: false
        locks: {read: [x]} ⏎ concurrency_safe: true
        ",
    );
}
