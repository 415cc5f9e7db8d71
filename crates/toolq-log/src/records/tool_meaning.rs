//! What a tool means: digests that stay the same as long as its calls do the same.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use serde_json::{Value, json};

use crate::records::blob::sha256_hex;
use toolq_core::types::{
    AgentBacking, AgentBudget, Backing, CommandBacking, HttpBacking, McpBacking, OutputKind,
    ServerTransport, StderrUse, Template, Tool,
};

/// Returns digests of everything in a tool's definition that decides what a call does and how it runs, by aspect: its
/// `Aspects`, and the keys about time, order, failures, and approvals. The digests aren't shortened, so
/// that no other definition can be forged to match them. Comments, order and formatting of tools.yaml change nothing.
pub fn definition_digests(tool: &Tool) -> BTreeMap<String, String> {
    let mut aspects = Aspects::new(tool);
    let mut add = |aspect, setting: &dyn Debug| aspects.add(aspect, declared(&setting));
    add("approve", &tool.approve);
    add("concurrency_safe", &tool.safety);
    add("timeout", &tool.timeout);
    add("retry", &tool.retry);
    add("on_failure", &(tool.on_failure, tool.on_doubt));
    add("pause_after_failures", &tool.pause_after_failures);
    add("max_output", &(tool.max_output, tool.max_saved));
    if let Some(locks) = &tool.locks {
        add("locks", locks);
    }
    add("cache", &tool.cache);
    let server_limits = match &tool.backing {
        Some(Backing::Mcp(mcp)) => Some(mcp.server.start_limits),
        _ => None,
    };
    let limits = [Some(tool.start_limits), server_limits].map(Option::unwrap_or_default);
    add("max_parallel", &limits.map(|limits| limits.max_parallel));
    add("rate", &limits.map(|limits| limits.rate));
    if tool.describe.is_some() {
        add("describe", &());
    }
    if let Some(Backing::Agent(agent)) = &tool.backing {
        let headers: BTreeMap<_, _> = agent.headers.iter().cloned().collect();
        add("api_key", &agent.api_key);
        add("headers", &headers);
        add("budget", &(agent.budget, agent.max_turns, agent.max_depth));
        add("max_tokens", &agent.max_tokens);
    }
    let digested = aspects.0.into_iter();
    digested
        .map(|(aspect, value)| (aspect.to_owned(), digest(value)))
        .collect()
}

/// What a tool means, by aspect. The names of the aspects are keys of tools.yaml.
///
/// A field belongs to the meaning if it decides which inputs are accepted, what a call does, or how its output is
/// read: the schema, `paths`, `coerce`, the effect, the backing with its program, arguments, environment, URL and body,
/// or the agent's model, prompts, tools and `extra_body`, `probe`, `output`,
/// `empty` and `output_schema`. It doesn't if it only decides what people, models or clients read (descriptions, names,
/// `status`, `messages`, `destructive`, `open_world`), when
/// a call runs (`concurrency_safe`, `rules`, `locks`), how patiently or how often (timeouts, retries, rates, budgets, limits of sizes),
/// with which credentials (`api_key`, and an agent's `headers`, which mostly hold some), how responses arrive (`cache`,
/// `stream`, a server's `protocol`, `cache`), or what `plan` and `replay` do (`estimate`, `compare`, `ignore`, `normalize`).
///
/// Every field of a tool is named below, so that a new one has to be decided on.
#[derive(Debug, Default, PartialEq)]
struct Aspects(BTreeMap<&'static str, Value>);

impl Aspects {
    fn new(tool: &Tool) -> Self {
        let Tool {
            effect,
            paths,
            backing,
            probe,
            coerce,
            // `add_output` reads these.
            output: _,
            raw_output: _,
            empty_output: _,
            output_schema: _,
            // What counts of these is the schema that they result in.
            input_schema: _,
            describe: _,
            awaits_list: _,
            name: _,
            description: _,
            display_name: _,
            category: _,
            destructive: _,
            open_world: _,
            safety: _,
            rule_settings: _,
            timeout: _,
            estimate: _,
            status: _,
            max_output: _,
            max_saved: _,
            retry: _,
            on_failure: _,
            on_doubt: _,
            pause_after_failures: _,
            compare: _,
            ignore: _,
            normalize: _,
            messages: _,
            approve: _,
            locks: _,
            start_limits: _,
            cache: _,
            once: _,
        } = tool;
        let mut meaning = Aspects::default();
        if !tool.needs_describe() {
            meaning.add("input_schema", tool.input_schema().clone());
        }
        meaning.add("effect", json!(effect.name()));
        if !paths.is_empty() {
            let paths: BTreeSet<_> = paths.iter().collect();
            meaning.add("paths", json!(paths));
        }
        if !coerce {
            meaning.add("coerce", json!(false));
        }
        if let Some(backing) = backing {
            meaning.add_backing(backing);
        }
        if let Some(probe) = probe {
            meaning.add("probe", command_meaning(probe));
        }
        meaning.add_output(tool);
        meaning
    }

    fn add_output(&mut self, tool: &Tool) {
        match tool.output {
            OutputKind::Text => {}
            OutputKind::Json => self.add("output", json!("json")),
            OutputKind::Content => self.add("output", json!("content")),
        }
        if tool.raw_output {
            self.add("raw", json!(true));
        }
        if let Some(empty) = &tool.empty_output {
            self.add("empty", json!(empty));
        }
        if let Some(schema) = &tool.output_schema {
            self.add("output_schema", schema.source().clone());
        }
    }

    /// What a backing does is what its declaration says, except for the fields that are left out here.
    fn add_backing(&mut self, backing: &Backing) {
        match backing {
            Backing::Command(command) => self.add("command", command_meaning(command)),
            Backing::Http(http) => self.add("http", http_meaning(http)),
            Backing::Agent(agent) => self.add(
                "agent",
                declared(&AgentBacking {
                    api_key: None,
                    headers: Vec::new(),
                    max_turns: 0,
                    max_tokens: 0,
                    cache: false,
                    budget: AgentBudget::default(),
                    max_depth: 0,
                    ..(**agent).clone()
                }),
            ),
            Backing::Mcp(mcp) => {
                let McpBacking {
                    server,
                    tool,
                    arguments,
                    result,
                    lock: _,
                } = mcp;
                let server = match &server.transport {
                    ServerTransport::Program(program) => command_meaning(program),
                    ServerTransport::Endpoint(endpoint) => declared(endpoint),
                };
                self.add(
                    "mcp",
                    json!([server, &**tool, declared(&arguments), result.name()]),
                );
            }
            Backing::Host => self.add("host", json!(true)),
            // It means the same in every file. A tool without a backing has no such aspect either: it never runs.
            Backing::Builtin(_) => {}
        }
    }

    fn add(&mut self, aspect: &'static str, value: Value) {
        self.0.insert(aspect, value);
    }
}

fn digest(value: Value) -> String {
    sha256_hex(sort_keys(value).to_string().as_bytes())
}

/// Sorts the keys of all objects in `value`.
fn sort_keys(value: Value) -> Value {
    match value {
        Value::Array(elements) => elements.into_iter().map(sort_keys).collect(),
        Value::Object(members) => {
            let sorted: BTreeMap<String, Value> = members.into_iter().collect();
            let sorted = sorted.into_iter();
            Value::Object(sorted.map(|(key, value)| (key, sort_keys(value))).collect())
        }
        scalar => scalar,
    }
}

fn command_meaning(command: &CommandBacking) -> Value {
    let mut command = CommandBacking {
        stderr: StderrUse::default(),
        ..command.clone()
    };
    command.env.sort_by(by_name);
    command.pass_env.sort();
    declared(&command)
}

fn http_meaning(http: &HttpBacking) -> Value {
    let mut http = http.clone();
    http.query.sort_by(by_name);
    http.headers.sort_by(by_name);
    declared(&http)
}

/// The order of keys in tools.yaml means nothing.
fn by_name(one: &(String, Template), other: &(String, Template)) -> Ordering {
    one.0.cmp(&other.0)
}

/// Returns a declaration as text: the same for the same declaration, in one version of toolq.
fn declared(declaration: &impl Debug) -> Value {
    json!(format!("{declaration:?}"))
}
