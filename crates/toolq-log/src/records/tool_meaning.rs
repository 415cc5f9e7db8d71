//! What a tool means: digests that stay the same as long as its calls do the same.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use serde_json::Value;

use crate::records::blob::sha256_hex;
use toolq_core::json::{JsonText, meaning_digest};
use toolq_core::types::{
    AgentBacking, AgentBudget, Backing, CommandBacking, HttpBacking, McpBacking, ServerTransport,
    StartLimits, StderrUse, Template, Tool,
};

/// Returns digests of everything in a tool's definition that decides what a call does and how it runs, by aspect. The names of the
/// aspects are keys of tools.yaml. The digests aren't shortened, so that no other definition can be forged to match them. They
/// are the same for the same definition, in one version of toolq: comments, order and formatting of tools.yaml change nothing.
///
/// What only people, models or clients read is left out (descriptions, names, `status`, `messages`, `destructive`,
/// `open_world`), as is how responses arrive (an agent's `cache`, a server's `protocol` and `cache`), and what `plan` and
/// `replay` do (`estimate`, `compare`, `ignore`, `normalize`). Every field of a tool is named below, so that a new one has to be
/// decided on.
pub fn definition_digests(tool: &Tool) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    add_aspects(tool, &mut |aspect, setting| {
        let digest = sha256_hex(format!("{setting:?}").as_bytes());
        digests.insert(aspect.to_owned(), digest);
    });
    digests
}

/// Adds an aspect.
type Add<'a> = dyn FnMut(&str, &dyn Debug) + 'a;

fn add_aspects(tool: &Tool, add: &mut Add<'_>) {
    let Tool {
        effect,
        paths,
        backing,
        probe,
        coerce,
        output,
        raw_output,
        empty_output,
        output_schema,
        describe,
        safety,
        timeout,
        max_output,
        max_saved,
        retry,
        on_failure,
        on_doubt,
        pause_after_failures,
        approve,
        locks,
        start_limits,
        cache,
        // What counts of these is the schema that they result in.
        input_schema: _,
        awaits_list: _,
        once: _,
        name: _,
        description: _,
        display_name: _,
        category: _,
        destructive: _,
        open_world: _,
        estimate: _,
        status: _,
        compare: _,
        ignore: _,
        normalize: _,
        messages: _,
    } = tool;
    if !tool.needs_describe() {
        add("input_schema", &schema_meaning(tool.input_schema()));
    }
    add("effect", effect);
    add("paths", &paths.iter().collect::<BTreeSet<_>>());
    add("coerce", coerce);
    add("probe", &probe.as_ref().map(command_meaning));
    add("output", output);
    add("raw", raw_output);
    add("empty", empty_output);
    let output_schema = output_schema.as_ref();
    let output_schema = output_schema.map(|schema| schema_meaning(schema.source()));
    add("output_schema", &output_schema);
    add("approve", approve);
    add("concurrency_safe", safety);
    add("timeout", timeout);
    add("retry", retry);
    add("on_failure", &(on_failure, on_doubt));
    add("pause_after_failures", pause_after_failures);
    add("max_output", &(max_output, max_saved));
    add("locks", locks);
    add("cache", cache);
    add("describe", &describe.is_some());
    add_start_limits(*start_limits, backing.as_ref(), add);
    if let Some(backing) = backing {
        add_backing(backing, add);
    }
}

fn add_start_limits(limits: StartLimits, backing: Option<&Backing>, add: &mut Add<'_>) {
    let server_limits = match backing {
        Some(Backing::Mcp(mcp)) => mcp.server.start_limits,
        _ => StartLimits::default(),
    };
    let limits = [limits, server_limits];
    add("max_parallel", &limits.map(|limits| limits.max_parallel));
    add("rate", &limits.map(|limits| limits.rate));
}

/// What a backing does is what its declaration says, except for the fields that are left out here or are aspects of their own.
fn add_backing(backing: &Backing, add: &mut Add<'_>) {
    match backing {
        Backing::Command(command) => add("command", &command_meaning(command)),
        Backing::Http(http) => add("http", &http_meaning(http)),
        Backing::Agent(agent) => {
            let headers: BTreeMap<_, _> = agent.headers.iter().cloned().collect();
            add("api_key", &agent.api_key);
            add("headers", &headers);
            add("budget", &(agent.budget, agent.max_turns, agent.max_depth));
            add("max_tokens", &agent.max_tokens);
            let rest = AgentBacking {
                api_key: None,
                headers: Vec::new(),
                max_turns: 0,
                max_tokens: 0,
                cache: false,
                budget: AgentBudget::default(),
                max_depth: 0,
                ..(**agent).clone()
            };
            add("agent", &rest);
        }
        Backing::Mcp(mcp) => {
            let McpBacking {
                server,
                tool,
                arguments,
                result,
                lock: _,
            } = mcp;
            let server: &dyn Debug = match &server.transport {
                ServerTransport::Program(program) => &command_meaning(program),
                ServerTransport::Endpoint(endpoint) => endpoint,
            };
            add("mcp", &(server, tool, arguments, result));
        }
        Backing::Host => add("host", &()),
        // It means the same in every file. A tool without a backing has no such aspect either: it never runs.
        Backing::Builtin(_) => {}
    }
}

fn schema_meaning(schema: &Value) -> [u8; 32] {
    meaning_digest(JsonText::new(&schema.to_string()))
}

fn command_meaning(command: &CommandBacking) -> CommandBacking {
    let mut command = CommandBacking {
        stderr: StderrUse::default(),
        ..command.clone()
    };
    command.env.sort_by(by_name);
    command.pass_env.sort();
    command
}

fn http_meaning(http: &HttpBacking) -> HttpBacking {
    let mut http = http.clone();
    http.query.sort_by(by_name);
    http.headers.sort_by(by_name);
    http
}

/// The order of keys in tools.yaml means nothing.
fn by_name(one: &(String, Template), other: &(String, Template)) -> Ordering {
    one.0.cmp(&other.0)
}
