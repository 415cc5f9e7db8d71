//! What a tool means: digests that stay the same as long as its calls do the same.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::records::line::sha256_hex;
use toolq_core::types::{
    AgentBacking, Api, Backing, BodyTemplate, CommandBacking, CommandLimits, HttpBacking,
    Leftovers, OutputKind, RequestBody, StdinSource, Template, TemplatePart, Tool,
};

/// Number of hexadecimal digits of a digest. They tell versions of one tool apart, and protect against nothing.
const DIGEST_DIGITS: usize = 16;

/// Digests of a tool by aspect. The names of the aspects are keys of tools.yaml.
///
/// A field belongs to the meaning if it decides which inputs are accepted, what a call does, or how its output is
/// read: the schema, `paths`, `coerce`, the effect, the backing with its program, arguments, environment, URL and body,
/// or the agent's model, prompts and tools, `probe`, and `output`. It doesn't if it only decides what people or models
/// read (descriptions, names, `status`, `messages`), when a call runs (`concurrency_safe`, `rules`), how patiently or
/// how often (timeouts, retries, budgets, limits of sizes), with which credentials (`api_key`), or what `plan` and
/// `replay` do (`estimate`, `compare`, `ignore`).
///
/// Each digest is over JSON with sorted keys, so comments, order and formatting of tools.yaml change nothing. An aspect
/// at its default isn't listed, so that a release can add aspects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolMeaning(pub(crate) BTreeMap<Cow<'static, str>, String>);

impl ToolMeaning {
    pub(crate) fn new(tool: &Tool) -> Self {
        let mut meaning = Self::default();
        if !tool.needs_describe() {
            meaning.add("input_schema", tool.input_schema().clone());
        }
        meaning.add("effect", json!(tool.effect.name()));
        if !tool.paths.is_empty() {
            let paths: BTreeSet<_> = tool.paths.iter().collect();
            meaning.add("paths", json!(paths));
        }
        if !tool.coerce {
            meaning.add("coerce", json!(false));
        }
        match &tool.backing {
            Some(Backing::Command(command)) => meaning.add("command", command_json(command)),
            Some(Backing::Http(http)) => meaning.add("http", http_json(http)),
            Some(Backing::Agent(agent)) => meaning.add("agent", agent_json(agent)),
            // A built-in tool means the same in every file; a tool without a backing never runs.
            Some(Backing::Builtin(_)) | None => {}
        }
        if let Some(probe) = &tool.probe {
            meaning.add("probe", command_json(probe));
        }
        match tool.output {
            OutputKind::Text => {}
            OutputKind::Json => meaning.add("output", json!("json")),
            OutputKind::Content => meaning.add("output", json!("content")),
        }
        meaning
    }

    /// Returns the digests that a `tool_call` has.
    pub(crate) fn from_record(digests: &BTreeMap<Cow<'_, str>, Cow<'_, str>>) -> Self {
        let owned = digests.iter();
        let owned =
            owned.map(|(aspect, digest)| (Cow::Owned(aspect.to_string()), digest.to_string()));
        Self(owned.collect())
    }

    fn add(&mut self, aspect: &'static str, value: Value) {
        let mut digest = sha256_hex(sort_keys(value).to_string().as_bytes());
        digest.truncate(DIGEST_DIGITS);
        self.0.insert(aspect.into(), digest);
    }

    /// Returns the aspects in which two meanings differ.
    pub(crate) fn difference(&self, other: &Self) -> Vec<String> {
        let aspects: BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let differing = aspects
            .into_iter()
            .filter(|aspect| self.0.get(*aspect) != other.0.get(*aspect));
        differing.map(ToString::to_string).collect()
    }
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

fn command_json(command: &CommandBacking) -> Value {
    let CommandLimits {
        cpu,
        memory,
        files,
        processes,
        file_size,
    } = command.limits;
    let arguments = command.arguments.iter();
    let arguments: Vec<Value> = arguments.map(|it| template_json(&it.template)).collect();
    json!({
        "program": command.program,
        "arguments": arguments,
        "stdin": match &command.stdin {
            StdinSource::Input => json!("input"),
            StdinSource::None => json!("none"),
            StdinSource::Template(template) => json!({"template": template_json(template)}),
        },
        "dashes": command.dashes.iter().collect::<BTreeSet<_>>(),
        "env": pairs_json(&command.env),
        "pass_env": command.pass_env.iter().collect::<BTreeSet<_>>(),
        "cwd": command.cwd,
        "success_exit": command.success_exit.iter().collect::<BTreeSet<_>>(),
        "leftovers": match command.leftovers {
            Leftovers::Kill | Leftovers::Report => "kill",
            Leftovers::Allow => "allow",
        },
        "limits": [json!(cpu.map(|limit| limit.as_secs())), json!(memory), json!(files), json!(processes), json!(file_size)],
    })
}

fn http_json(http: &HttpBacking) -> Value {
    let hosts = http.allowed_hosts.as_ref();
    let hosts: Option<BTreeSet<String>> =
        hosts.map(|hosts| hosts.iter().map(ToString::to_string).collect());
    let statuses = http.success_status.iter();
    let statuses: BTreeSet<_> = statuses.map(|range| (range.start(), range.end())).collect();
    json!({
        "method": http.method.name(),
        "url": template_json(&http.url),
        "hosts": hosts,
        "query": pairs_json(&http.query),
        "headers": pairs_json(&http.headers),
        "body": match &http.body {
            RequestBody::Input => json!("input"),
            RequestBody::None => json!("none"),
            RequestBody::Json(body) => json!({"json": body_json(body)}),
        },
        "success_status": statuses,
        "select": http.select,
        "redirects": http.max_redirects,
        "proxy": http.proxy.as_ref().map(template_json),
    })
}

fn agent_json(agent: &AgentBacking) -> Value {
    let optional = |template: &Option<Template>| template.as_ref().map(template_json);
    json!({
        "api": match agent.api {
            Api::Anthropic => "anthropic",
            Api::OpenAiChat => "openai-chat",
        },
        "endpoint": template_json(&agent.endpoint),
        "model": template_json(&agent.model),
        "fallback_model": optional(&agent.fallback_model),
        "system": optional(&agent.system),
        "prompt": optional(&agent.prompt),
        "tools": agent.tools.iter().collect::<BTreeSet<_>>(),
    })
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolq_core::tools_file::parse_tools_file;

    use super::*;

    fn meaning_of(yaml: &str) -> ToolMeaning {
        let loaded = parse_tools_file(yaml, Path::new("/work"), Path::new("/work"));
        let tools = loaded.tools.unwrap();
        ToolMeaning::new(&tools.tools[0])
    }

    const DEPLOY: &str = r#"
tools:
  deploy:
    description: Deploy a service.
    input_schema: {type: object, properties: {target: {type: string, pattern: "^[a-z]+$"}}, required: [target]}
    timeout: 5s
    command: {argv: [deploy, "--to={target}"], env: {A: "1", B: "${HOME}"}}
"#;

    #[test]
    fn comments_order_and_texts_change_no_meaning() {
        let rewritten = r#"
# Who may deploy: everyone.
tools:
  deploy:
    command:
      env:
        B: "${HOME}"   # for its cache
        A: "1"
      argv:
        - deploy
        - "--to={target}"
    description: Deploy a service, carefully.
    display_name: Deploying
    estimate: 2s
    timeout: 60s
    input_schema:
      required: [target]
      properties: {target: {pattern: "^[a-z]+$", type: string}}
      type: object
"#;
        assert_eq!(meaning_of(DEPLOY), meaning_of(rewritten));
    }

    #[test]
    fn a_change_is_named_by_its_keys() {
        let difference = |from: &str, to: &str| {
            let changed = DEPLOY.replace(from, to);
            assert_ne!(changed, DEPLOY);
            meaning_of(DEPLOY).difference(&meaning_of(&changed))
        };
        assert_eq!(difference("--to=", "--at="), ["command"]);
        assert_eq!(difference("A: \"1\"", "A: \"2\""), ["command"]);
        assert_eq!(difference("[a-z]+", "[a-y]+"), ["input_schema"]);
        assert_eq!(difference("timeout: 5s", "effect: read"), ["effect"]);
        assert_eq!(difference("timeout: 5s", "output: json"), ["output"]);
        assert_eq!(
            difference("\"--to={target}\"", "\"{{target}\""),
            ["command"]
        );
    }
}
