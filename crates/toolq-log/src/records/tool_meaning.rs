//! What a tool means: digests that stay the same as long as its calls do the same.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::records::record::sha256_hex;
use toolq_core::types::{
    AgentBacking, Api, Backing, BodyTemplate, CommandBacking, CommandLimits, CommandWrapper,
    HttpBacking, Leftovers, McpBacking, MissingProtection, OutputKind, RequestBody, ResultParts,
    Sandbox, SandboxEntry, SandboxNetwork, ServerConfig, ServerEndpoint, ServerTransport,
    StdinSource, Template, TemplatePart, Tool,
};

/// Returns whether calls of both tools do the same.
pub fn do_the_same(one: &Tool, other: &Tool) -> bool {
    Aspects::new(one) == Aspects::new(other)
}

/// Returns digests of everything in a tool's definition that decides what a call does and how it runs, by aspect: what
/// [`do_the_same`] compares, and the keys about time, order, failures, and approvals. The digests aren't shortened, so
/// that no other definition can be forged to match them. Comments, order and formatting of tools.yaml change nothing.
pub fn definition_digests(tool: &Tool) -> BTreeMap<String, String> {
    let mut aspects = Aspects::new(tool);
    let mut add = |aspect, setting: &dyn std::fmt::Debug| {
        aspects.add(aspect, json!(format!("{setting:?}")));
    };
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
            output,
            raw_output,
            empty_output,
            output_schema,
            coerce,
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
            meaning.add("probe", command_json(probe));
        }
        match output {
            OutputKind::Text => {}
            OutputKind::Json => meaning.add("output", json!("json")),
            OutputKind::Content => meaning.add("output", json!("content")),
        }
        if *raw_output {
            meaning.add("raw", json!(true));
        }
        if let Some(empty) = empty_output {
            meaning.add("empty", json!(empty));
        }
        if let Some(schema) = output_schema {
            meaning.add("output_schema", schema.source().clone());
        }
        meaning
    }

    fn add_backing(&mut self, backing: &Backing) {
        match backing {
            Backing::Command(command) => self.add("command", command_json(command)),
            Backing::Http(http) => self.add("http", http_json(http)),
            Backing::Agent(agent) => self.add("agent", agent_json(agent)),
            Backing::Mcp(mcp) => self.add("mcp", mcp_json(mcp)),
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

// What backings do, as JSON. Every field is named, so that a new one has to be decided on.

fn command_json(command: &CommandBacking) -> Value {
    let CommandBacking {
        program,
        arguments,
        dashes,
        stdin,
        env,
        pass_env,
        cwd,
        success_exit,
        stderr: _,
        leftovers,
        limits,
        sandbox,
        wrapper,
    } = command;
    let CommandLimits {
        cpu,
        memory,
        files,
        processes,
        file_size,
    } = limits;
    let mut described = json!({
        "program": program,
        "arguments": arguments.iter().map(template_json).collect::<Vec<_>>(),
        "stdin": match stdin {
            StdinSource::Input => json!("input"),
            StdinSource::None => json!("none"),
            StdinSource::Template(template) => json!({"template": template_json(template)}),
        },
        "dashes": dashes.iter().collect::<BTreeSet<_>>(),
        "env": pairs_json(env),
        "pass_env": pass_env.iter().collect::<BTreeSet<_>>(),
        "cwd": cwd.to_string_lossy(),
        "success_exit": success_exit.iter().collect::<BTreeSet<_>>(),
        "leftovers": match leftovers {
            Leftovers::Kill | Leftovers::Report => "kill",
            Leftovers::Allow => "allow",
        },
        "limits": [json!(cpu.map(|limit| limit.as_secs())), json!(memory), json!(files), json!(processes), json!(file_size)],
    });
    // Listed only where there is one, so that logs from before it existed still match.
    if let Some(sandbox) = sandbox {
        described["sandbox"] = sandbox_json(sandbox);
    }
    if let Some(CommandWrapper {
        argv,
        hands_over_to: _,
    }) = wrapper
    {
        described["wrapper"] = json!(argv);
    }
    described
}

/// The order of paths doesn't matter.
fn sandbox_json(sandbox: &Sandbox) -> Value {
    let Sandbox {
        read,
        write,
        network,
        missing,
        changes_only_root: _,
    } = sandbox;
    let entries = |entries: &[SandboxEntry]| {
        let entries = entries.iter().map(|entry| match entry {
            SandboxEntry::Root => json!("root"),
            SandboxEntry::System => json!("system"),
            SandboxEntry::Path(template) => template_json(template),
        });
        let texts: BTreeSet<String> = entries.map(|entry| entry.to_string()).collect();
        json!(texts)
    };
    json!({
        "read": entries(read),
        "write": entries(write),
        "network": match network {
            SandboxNetwork::Ports(ports) => json!(ports.iter().collect::<BTreeSet<_>>()),
            word => json!(word.to_string()),
        },
        "missing": match missing {
            MissingProtection::Refuse => "refuse",
            MissingProtection::Warn => "warn",
        },
    })
}

fn http_json(http: &HttpBacking) -> Value {
    let HttpBacking {
        method,
        url,
        allowed_hosts,
        query,
        headers,
        body,
        success_status,
        select,
        max_redirects,
        proxy,
    } = http;
    let hosts = allowed_hosts.as_ref();
    let hosts: Option<BTreeSet<String>> =
        hosts.map(|hosts| hosts.iter().map(ToString::to_string).collect());
    let statuses = success_status.iter();
    let statuses: BTreeSet<_> = statuses.map(|range| (range.start(), range.end())).collect();
    json!({
        "method": method.name(),
        "url": template_json(url),
        "hosts": hosts,
        "query": pairs_json(query),
        "headers": pairs_json(headers),
        "body": match body {
            RequestBody::Input => json!("input"),
            RequestBody::None => json!("none"),
            RequestBody::Json(body) => json!({"json": body_json(body)}),
        },
        "success_status": statuses,
        "select": select,
        "redirects": max_redirects,
        "proxy": proxy.as_ref().map(template_json),
    })
}

/// The optional keys of a request are listed only if they are set, like aspects.
fn agent_json(agent: &AgentBacking) -> Value {
    let AgentBacking {
        api,
        endpoint,
        model,
        fallback_model,
        system,
        prompt,
        tools,
        extra_body,
        api_key: _,
        headers: _,
        max_turns: _,
        max_tokens: _,
        cache: _,
        budget: _,
        max_depth: _,
    } = agent;
    let optional = |template: &Option<Template>| template.as_ref().map(template_json);
    let mut described = json!({
        "api": match api {
            Api::Anthropic => "anthropic",
            Api::OpenAiChat => "openai-chat",
        },
        "endpoint": template_json(endpoint),
        "model": template_json(model),
        "fallback_model": optional(fallback_model),
        "system": optional(system),
        "prompt": optional(prompt),
        "tools": tools.iter().collect::<BTreeSet<_>>(),
    });
    if !extra_body.is_empty() {
        described["extra_body"] = json!(extra_body);
    }
    described
}

fn mcp_json(mcp: &McpBacking) -> Value {
    let McpBacking {
        server,
        tool,
        arguments,
        result,
        lock: _,
    } = mcp;
    let ServerConfig {
        name: _,
        transport,
        startup: _,
        idle: _,
        restarts: _,
        protocol: _,
        was_legacy: _,
        result: _,
        start_limits: _,
        compares_tools: _,
        lock_digest: _,
    } = &**server;
    let mut described = json!({
        "server": match transport {
            ServerTransport::Program(program) => command_json(program),
            ServerTransport::Endpoint(ServerEndpoint { url, headers }) => json!({
                "url": template_json(url),
                "headers": pairs_json(headers),
            }),
        },
        "tool": **tool,
        "arguments": arguments.as_ref().map(body_json),
    });
    // Listed only where it isn't the default, so that logs from before it existed still match.
    if *result != ResultParts::Content {
        described["result"] = json!(result.name());
    }
    described
}

/// The order of environment variables, headers and query parameters is that of keys in tools.yaml.
fn pairs_json(pairs: &[(String, Template)]) -> Value {
    let pairs = pairs.iter();
    let members = pairs.map(|(name, template)| (name.clone(), template_json(template)));
    Value::Object(members.collect::<Map<_, _>>())
}

fn body_json(body: &BodyTemplate) -> Value {
    match body {
        BodyTemplate::Literal(value) => json!({"literal": value}),
        BodyTemplate::Template(template) => template_json(template),
        BodyTemplate::Array(elements) => {
            json!({"array": elements.iter().map(body_json).collect::<Vec<_>>()})
        }
        BodyTemplate::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| (name.clone(), body_json(value)));
            json!({"object": members.collect::<Map<_, _>>()})
        }
    }
}

/// Text and placeholders stay apart: `{{a}` is a text, and `{a}` a value.
fn template_json(template: &Template) -> Value {
    let parts = template.parts.iter().map(|part| match part {
        TemplatePart::Text(text) => json!(text),
        TemplatePart::Value {
            path,
            optional,
            splat,
        } => json!({"value": path, "optional": optional, "splat": splat}),
        TemplatePart::Env { name, default } => json!({"env": name, "default": default}),
    });
    Value::Array(parts.collect())
}
