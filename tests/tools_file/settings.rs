//! What a tool gets from itself, the file's defaults and toolq's.

use std::path::Path;
use std::time::Duration;

use toolq_core::types::{Effect, OnFailure, OutputKind, RetryOn, Rule, Safety, Template};

use crate::{file, quiet, refused, tool, tools, warned};

/// FAULTS 30: what isn't declared is the careful choice.
#[test]
fn a_tool_that_says_nothing_gets_the_defaults() {
    let tools = tools(&tool(""));
    let tool = &tools.tools[0];
    assert_eq!(tools.concurrency.get(), 10);
    assert_eq!(tools.root, Path::new("/srv"));
    assert_eq!(tool.effect, Effect::Write);
    assert_eq!(tool.safety, Safety::Default);
    assert_eq!(tool.timeout.after, Duration::from_secs(30));
    assert_eq!(tool.timeout.grace, Duration::from_secs(2));
    assert_eq!((tool.timeout.slow, tool.timeout.total), (None, None));
    assert_eq!((tool.max_output, tool.max_saved), (65_536, 64 << 20));
    assert_eq!(
        (tool.retry.times, tool.retry.on.as_slice()),
        (1, &[RetryOn::RateLimited][..])
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
        tool("timeout: 5s\neffect: read\nretry: {backoff: 2s}")
    );
    let tools = tools(&text);
    let tool = &tools.tools[0];
    assert_eq!(tool.timeout.after, Duration::from_secs(5));
    assert_eq!(tool.timeout.total, Some(Duration::from_secs(50)));
    assert_eq!(tool.retry.times, 4);
    assert_eq!(tool.retry.on, [RetryOn::Timeout, RetryOn::RateLimited]);
    assert_eq!(tool.retry.backoff, Duration::from_secs(2));
    assert_eq!(tool.output, OutputKind::Json);
    let rule = Rule {
        glob: "t".to_owned(),
        safe: false,
    };
    assert_eq!(tool.safety, Safety::Rule(rule));
}

/// FAULTS 30: a shared default doesn't make a `write` tool repeat what may have run.
#[test]
fn write_tools_take_of_the_defaults_what_surely_did_not_run() {
    let text = format!(
        "defaults: {{retry: {{times: 3, on: [timeout, rate_limited]}}}}\n{}",
        tool("")
    );
    assert_eq!(tools(&text).tools[0].retry.on, [RetryOn::RateLimited]);
    refused(
        tool,
        r#"
        retry: {on: [timeout]} ⇒ timeout ⇒ surely did not run
        retry: {on: [rate_limited, "exit:75"]} ⇒ "exit:75" ⇒ surely did not run
        "#,
    );
    quiet(
        tool,
        r#"
        effect: idempotent ⏎ retry: {on: [timeout, "exit:75", "http:503"], times: 2}
        "#,
    );
}

/// FAULTS 29.
#[test]
fn numbers_out_of_range_are_refused() {
    refused(
        file,
        r"
        concurrency: 0 ⇒ 0 ⇒ cannot run at once
        concurrency: 10001 ⇒ 10001 ⇒ cannot run at once
        concurrency: -1 ⇒ -1 ⇒ must be a whole number
        version: 2 ⇒ 2 ⇒ not known
        defaults: {timeout: 0s} ⇒ 0s ⇒ no time
        defaults: {max_output: 0} ⇒ 0 ⇒ nothing through
        ",
    );
    refused(
        tool,
        r"
        timeout: 0s ⇒ 0s ⇒ no time
        timeout: -5s ⇒ -5s ⇒ no duration
        timeout: 400d ⇒ 400d ⇒ longer than a year
        timeout: {after: 5s, total: 1s} ⇒ 1s ⇒ shorter than one attempt
        timeout: {total: 0ms} ⇒ 0ms ⇒ no time
        max_output: 0 ⇒ 0 ⇒ nothing through
        max_output: 64kb ⇒ 64kb ⇒ no size
        retry: {times: 101} ⇒ 101 ⇒ too many
        retry: {backoff: 60s, max_backoff: 1s} ⇒ 60s ⇒ longer than
        command: {argv: [a], success_exit: [256]} ⇒ 256 ⇒ no exit code
        ",
    );
    quiet(
        tool,
        r"
        timeout: {after: 1ms, grace: 0s}
        max_output: 1
        retry: {times: 0}
        timeout: 365d
        ",
    );
}

#[test]
fn messages_know_four_placeholders() {
    refused(
        file,
        r#"
        messages: {timeout: "{too} late"} ⇒ {too} ⇒ messages have no `{too}`
        messages: {timeout: "{tool?}"} ⇒ {tool?} ⇒ messages have no
        messages: {timout: late} ⇒ timout ⇒ unknown key
        "#,
    );
    let text = format!(
        "messages: {{timeout: \"{{tool}} 超时\", failed: f}}\n{}",
        tool("messages: {failed: \"own {error}\"}")
    );
    let tool = &tools(&text).tools[0];
    let texts: Vec<String> = tool.messages.values().map(Template::to_string).collect();
    assert_eq!(texts, ["{tool} 超时", "own {error}"]);
}

#[test]
fn a_rule_names_tools_and_says_something() {
    let rule = |rule: &str| file(&format!("rules: [{rule}]"));
    warned(
        rule,
        r#"{tools: "x*", concurrency_safe: true} ⇒ "x*" ⇒ no tool is named like"#,
    );
    refused(
        rule,
        r#"
        {tools: "[", concurrency_safe: true} ⇒ "[" ⇒ no glob
        {tools: t} ⇒ { ⇒ no `concurrency_safe`
        {concurrency_safe: true} ⇒ { ⇒ no `tools`
        {tools: t, concurrency_safe: yes} ⇒ yes ⇒ must be `true` or `false`
        "#,
    );
}

/// FAULTS 8: names that no API or terminal takes are not offered to a model.
#[test]
fn names_are_names() {
    let named = |name: &str| format!("tools:\n  {name}: {{input_schema: {{type: object}}}}\n");
    refused(
        named,
        r#"
        "" ⇒ "" ⇒ 1 to 128 characters
        a b ⇒ a b ⇒ no spaces
        "a\tb" ⇒ "a\tb" ⇒ no spaces or control characters
        "#,
    );
    refused(
        |_| named(&"x".repeat(129)),
        &format!("x ⇒ {} ⇒ 1 to 128", "x".repeat(129)),
    );
    warned(named, "ns.tool ⇒ ns.tool ⇒ some APIs refuse");
    let (most, more) = ("x".repeat(64), "x".repeat(65));
    warned(
        named,
        &format!("{more} ⇒ {more} ⇒ some APIs refuse a name of 65"),
    );
    quiet(named, &most);
    quiet(named, "Read-file_2");
}

#[test]
fn names_of_secrets_are_gathered() {
    let text = format!(
        "secrets: [ONE]\n{}  u:\n    input_schema: {{type: object}}\n    http: {{url: \"${{BASE}}/x\", headers: {{x-key: \"${{TWO}}\"}}, query: {{k: \"${{THREE:-d}}\"}}}}\n",
        tool("command: {argv: [a], env: {X: \"${FOUR}\"}}")
    );
    assert_eq!(tools(&text).secrets, ["FOUR", "ONE", "THREE", "TWO"]);
    refused(
        file,
        "secrets: [a-b] ⇒ a-b ⇒ no name of an environment variable",
    );
}

/// What a replay compares is said by words and places that there are.
#[test]
fn parts_of_results_are_places() {
    refused(
        tool,
        r"
        compare: jsn ⇒ jsn ⇒ cannot be `jsn`
        ignore: [took_ms] ⇒ took_ms ⇒ is no part of a result
        ignore: [/] ⇒ / ⇒ is no part of a result
        ignore: [//] ⇒ // ⇒ is no part of a result
        ignore: /took_ms ⇒ /took_ms ⇒ must be a list
        ",
    );
    warned(
        tool,
        r"
        compare: exact ⏎ ignore: [/took_ms] ⇒ /took_ms ⇒ compared as a whole
        ",
    );
    quiet(
        tool,
        r"
        compare: schema
        ignore: [/took_ms, //id, //rows/0, /a~1b]
        ",
    );
}
