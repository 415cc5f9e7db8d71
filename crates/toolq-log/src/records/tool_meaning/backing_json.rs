//! What backings do, as JSON. Every field is named, so that a new one has to be decided on.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use toolq_core::types::{
    AgentBacking, Api, BodyTemplate, CommandBacking, CommandLimits, CommandWrapper, HttpBacking,
    Leftovers, McpBacking, MissingProtection, RequestBody, ResultParts, Sandbox, SandboxEntry,
    SandboxNetwork, ServerConfig, ServerEndpoint, ServerTransport, StdinSource, Template,
    TemplatePart,
};

pub(crate) fn command_json(command: &CommandBacking) -> Value {
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

pub(crate) fn http_json(http: &HttpBacking) -> Value {
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
pub(crate) fn agent_json(agent: &AgentBacking) -> Value {
    let AgentBacking {
        api,
        endpoint,
        model,
        fallback_model,
        system,
        prompt,
        tools,
        temperature,
        thinking,
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
    if let Some(temperature) = temperature {
        described["temperature"] = json!(temperature);
    }
    if let Some(thinking) = thinking {
        described["thinking"] = thinking.clone();
    }
    if !extra_body.is_empty() {
        described["extra_body"] = json!(extra_body);
    }
    described
}

pub(crate) fn mcp_json(mcp: &McpBacking) -> Value {
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
