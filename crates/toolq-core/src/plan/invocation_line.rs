//! Renders what a call runs as one line for people: written as you would type it into a shell, complete, and without
//! anything that a terminal would interpret. It is only for reading; toolq never passes such a line to a shell.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use crate::check::build_server_command;
use crate::json::expect_json;
use crate::text::{escape, quote_for_shell, truncate_to_columns};
use crate::types::{
    AcceptedCall, AgentBacking, AgentInvocation, Backing, CommandInvocation, HttpInvocation,
    Invocation, MaskedJson, MaskedText, MissingProtection, OutputRequest, PartialJson,
    PartialTemplate, SandboxInvocation, SandboxNetwork, SandboxPlace, Segment, StdinContent,
    Template,
};
use crate::url::encode_query_text;
use redact::Mask;

/// A line in which scripts are folded.
pub(crate) struct FoldedLine {
    pub(crate) text: String,
    /// Whether something is left out.
    pub(crate) is_folded: bool,
}

/// Renders the line; returns `None` if the tool has no backing.
pub(crate) fn render_invocation(accepted: &AcceptedCall, mask: &Mask) -> Option<String> {
    render_line(accepted, mask, &mut |text| {
        quote_for_shell(text).into_owned()
    })
}

/// Renders the line with only the first words of each script, followed by `mark`. Returns `None` if the tool has no
/// backing.
pub(crate) fn render_folded_invocation(
    accepted: &AcceptedCall,
    mask: &Mask,
    mark: &str,
) -> Option<FoldedLine> {
    let mut is_folded = false;
    let text = render_line(accepted, mask, &mut |text| match fold_text(text) {
        Some(beginning) => {
            is_folded = true;
            format!("{}{mark}", quote_for_shell(beginning))
        }
        None => quote_for_shell(text).into_owned(),
    });
    text.map(|text| FoldedLine { text, is_folded })
}

/// Renders the line; `quote` makes a word of an argument, in which secrets are masked already.
fn render_line(
    accepted: &AcceptedCall,
    mask: &Mask,
    quote: &mut dyn FnMut(&str) -> String,
) -> Option<String> {
    let line = match accepted.invocation.as_ref()? {
        Invocation::Command(command) => command_line(command, accepted, mask, quote),
        Invocation::Http(request) => request_line(http_method(accepted), request, mask),
        Invocation::Mcp(call) => {
            let arguments = render_json(&call.arguments, mask);
            let line = format!("{}: {} {arguments}", call.server, call.tool);
            escape(&line).into_owned()
        }
        Invocation::Agent(task) => agent_line(agent_backing(accepted)?, task, mask),
        Invocation::Completion(result) => {
            format!("answer {}", quote_for_shell(&mask.apply(result)))
        }
        Invocation::ReadOutput(request) => output_line(request, mask),
        Invocation::Host => {
            let input = mask.apply_to_json(accepted.input.text());
            escape(&format!("host: {} {input}", accepted.tool.name)).into_owned()
        }
    };
    Some(mask.apply(&line).into_owned())
}

/// Returns the HTTP method of a call's request.
fn http_method(accepted: &AcceptedCall) -> &'static str {
    match &accepted.tool.backing {
        Some(Backing::Http(http)) => http.method.name(),
        _ => "GET",
    }
}

/// Returns the agent that a call runs.
fn agent_backing(accepted: &AcceptedCall) -> Option<&AgentBacking> {
    match &accepted.tool.backing {
        Some(Backing::Agent(agent)) => Some(agent),
        _ => None,
    }
}

/// `output of id from byte 10: pattern`.
fn output_line(request: &OutputRequest, mask: &Mask) -> String {
    let id = quote_for_shell(&mask.apply(&request.id)).into_owned();
    let offset = match request.offset {
        0 => String::new(),
        offset => format!(" from byte {offset}"),
    };
    let pattern = request.pattern.as_ref().map_or(String::new(), |pattern| {
        format!(
            " that matches {}",
            quote_for_shell(&mask.apply(pattern.as_str()))
        )
    });
    format!("output of {id}{offset}{pattern}")
}

/// `agent model at endpoint with tool, tool <<< prompt`.
fn agent_line(agent: &AgentBacking, task: &AgentInvocation, mask: &Mask) -> String {
    let (model, endpoint) = (
        agent.model.without_values(),
        agent.endpoint.without_values(),
    );
    let tools = match agent.tools.join(", ") {
        tools if tools.is_empty() => String::new(),
        tools => format!(" with {tools}"),
    };
    let line = format!("agent {model} at {endpoint}{tools}");
    let line = escape(&line);
    match &task.prompt {
        Some(prompt) => format!("{line} <<< {}", quote_template(prompt, mask)),
        None => line.into_owned(),
    }
}

/// `NAME=value program argument… <<< stdin`. Secrets are masked before quoting changes their spelling.
fn command_line(
    command: &CommandInvocation,
    accepted: &AcceptedCall,
    mask: &Mask,
    quote: &mut dyn FnMut(&str) -> String,
) -> String {
    let mut masked = |text: &str| quote(&mask.apply(text));
    let env = command.env.iter();
    let env = env.map(|(name, value)| format!("{name}={}", quote_template(value, mask)));
    let argv: Vec<String> = command.argv.iter().map(&mut masked).collect();
    let stdin = match &command.stdin {
        StdinContent::Text(text) => Some(format!("<<< {}", masked(text))),
        // What a tool without inputs reads says nothing.
        StdinContent::Input if accepted.input.text() == "{}" => None,
        StdinContent::Input => Some(format!("<<< {}", masked(accepted.input.text()))),
        StdinContent::None => None,
    };
    env.chain(argv).chain(stdin).collect::<Vec<_>>().join(" ")
}

/// `METHOD url?query header: value body`.
fn request_line(method: &str, request: &HttpInvocation, mask: &Mask) -> String {
    let target = format!("{method} {}", encoded_url(request));
    let headers = request.headers.iter();
    let headers = headers.map(|(name, value)| format!("{name}: {}", quote_template(value, mask)));
    let body = request.body.as_ref();
    let body = body.map(|body| escape(&render_json(body, mask)).into_owned());
    let words = std::iter::once(escape(&target).into_owned());
    words
        .chain(headers)
        .chain(body)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the URL with its query, encoded as it will be sent.
fn encoded_url(request: &HttpInvocation) -> String {
    let mut target = request.url.to_string();
    for (name, value) in &request.query {
        target.push(if target.contains('?') { '&' } else { '?' });
        target.push_str(&encode_query_text(name));
        target.push('=');
        for piece in &value.0 {
            match piece {
                Segment::Text(text) => target.push_str(&encode_query_text(text)),
                Segment::Env { .. } => target.push_str(&piece.to_string()),
            }
        }
    }
    target
}

/// Quotes a partial template as one word. Environment variables are kept by name, in quotes that let a shell expand
/// those and nothing else.
fn quote_template(partial: &PartialTemplate, mask: &Mask) -> String {
    let is_env = |piece: &Segment| matches!(piece, Segment::Env { .. });
    if !partial.0.iter().any(is_env) {
        return quote_for_shell(&mask.apply(&partial.to_string())).into_owned();
    }
    let pieces = partial.0.iter().map(|piece| match piece {
        Segment::Text(text) => escape_double_quoted(&mask.apply(text)),
        Segment::Env { .. } => piece.to_string(),
    });
    format!("\"{}\"", escape(&pieces.collect::<String>()))
}

/// Escapes text for use between double quotes.
fn escape_double_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '"' | '$' | '`' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}

// What a call runs, as a plan in JSON has it. Environment variables appear by name.

/// What a call runs.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InvocationJson<'a> {
    Command(Vec<MaskedText<'a>>),
    Http {
        method: &'static str,
        url: MaskedTemplate<'a>,
        #[serde(skip_serializing_if = "TemplatePairs::is_empty")]
        query: TemplatePairs<'a>,
        #[serde(skip_serializing_if = "TemplatePairs::is_empty")]
        headers: TemplatePairs<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        body: Option<MaskedBody<'a>>,
    },
    Agent(AgentJson<'a>),
    Mcp {
        server: &'a str,
        tool: &'a str,
        arguments: MaskedBody<'a>,
    },
    Builtin(&'a str),
    Host(&'a str),
}

impl<'a> InvocationJson<'a> {
    /// Returns `None` if the tool has no backing.
    pub(crate) fn new(accepted: &'a AcceptedCall, mask: &'a Mask) -> Option<Self> {
        match accepted.invocation.as_ref()? {
            Invocation::Command(command) => {
                let argv = command.argv.iter();
                let argv = argv.map(|argument| MaskedText(argument, mask));
                Some(Self::Command(argv.collect()))
            }
            Invocation::Http(request) => Some(Self::Http {
                method: http_method(accepted),
                url: MaskedTemplate(&request.url, mask),
                query: TemplatePairs(&request.query, mask),
                headers: TemplatePairs(&request.headers, mask),
                body: request.body.as_ref().map(|body| MaskedBody(body, mask)),
            }),
            Invocation::Mcp(call) => Some(Self::Mcp {
                server: &call.server,
                tool: &call.tool,
                arguments: MaskedBody(&call.arguments, mask),
            }),
            Invocation::Agent(task) => AgentJson::new(accepted, task, mask).map(Self::Agent),
            Invocation::Completion(_) | Invocation::ReadOutput(_) => {
                Some(Self::Builtin(&accepted.tool.name))
            }
            Invocation::Host => Some(Self::Host(&accepted.tool.name)),
        }
    }
}

/// An agent's configuration. Its API key and system prompt aren't shown.
#[derive(Serialize)]
pub(crate) struct AgentJson<'a> {
    model: String,
    endpoint: String,
    tools: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<MaskedTemplate<'a>>,
}

impl<'a> AgentJson<'a> {
    fn new(accepted: &'a AcceptedCall, task: &'a AgentInvocation, mask: &'a Mask) -> Option<Self> {
        let agent = agent_backing(accepted)?;
        let shown = |template: &Template| {
            mask.apply(&template.without_values().to_string())
                .into_owned()
        };
        Some(Self {
            model: shown(&agent.model),
            endpoint: shown(&agent.endpoint),
            tools: &agent.tools,
            prompt: task
                .prompt
                .as_ref()
                .map(|prompt| MaskedTemplate(prompt, mask)),
        })
    }
}

// Renders what a call's program can reach, for people and for programs.

/// What a program can reach.
#[derive(Serialize)]
pub(crate) struct SandboxJson {
    read: Vec<String>,
    write: Vec<String>,
    /// `none`, `all`, or TCP ports.
    network: Value,
    /// Whether it also runs where the system can't confine all of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'static str>,
}

impl SandboxJson {
    /// Returns `None` if the call's program isn't confined.
    pub(crate) fn new(accepted: &AcceptedCall, mask: &Mask) -> Option<Self> {
        let sandbox = find_sandbox(accepted)?;
        let texts = |places: &[SandboxPlace]| {
            let texts = places.iter().map(SandboxPlace::to_string);
            texts.map(|text| mask.apply(&text).into_owned()).collect()
        };
        Some(Self {
            read: texts(&sandbox.read),
            write: texts(&sandbox.write),
            network: match &sandbox.network {
                SandboxNetwork::Ports(ports) => json!(ports),
                word => json!(word.to_string()),
            },
            missing: (sandbox.missing == MissingProtection::Warn).then_some("warn"),
        })
    }
}

/// Renders `sandbox: read root, system; write a.txt; no network` on one line, with control characters escaped. Returns
/// `None` if the call's program isn't confined.
pub(crate) fn render_sandbox(accepted: &AcceptedCall, mask: &Mask) -> Option<String> {
    let line = format!("sandbox: {}", find_sandbox(accepted)?.describe());
    Some(escape(&mask.apply(&line)).into_owned())
}

/// Returns the sandbox of the program that a call starts, or of the server that it calls.
fn find_sandbox(accepted: &AcceptedCall) -> Option<Cow<'_, SandboxInvocation>> {
    if let Some(Invocation::Command(command)) = &accepted.invocation {
        return command.sandbox.as_deref().map(Cow::Borrowed);
    }
    let Some(Backing::Mcp(mcp)) = &accepted.tool.backing else {
        return None;
    };
    let command = build_server_command(mcp.server.program()?);
    command.sandbox.map(|sandbox| Cow::Owned(*sandbox))
}

/// Renders JSON in which only environment variables are left to fill in.
fn render_json(json: &PartialJson, mask: &Mask) -> String {
    expect_json(serde_json::to_string(&MaskedBody(json, mask)))
}

/// A template whose environment variables are kept by name.
pub(crate) struct MaskedTemplate<'a>(pub(crate) &'a PartialTemplate, pub(crate) &'a Mask);

impl Serialize for MaskedTemplate<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        MaskedText(&self.0.to_string(), self.1).serialize(serializer)
    }
}

/// Names and templates, as an object.
pub(crate) struct TemplatePairs<'a>(
    pub(crate) &'a [(String, PartialTemplate)],
    pub(crate) &'a Mask,
);

impl TemplatePairs<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for TemplatePairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pairs = self.0.iter();
        serializer.collect_map(pairs.map(|(name, value)| (name, MaskedTemplate(value, self.1))))
    }
}

/// A request body, as a JSON tree.
pub(crate) struct MaskedBody<'a>(pub(crate) &'a PartialJson, pub(crate) &'a Mask);

impl Serialize for MaskedBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(body, mask) = *self;
        match body {
            PartialJson::Raw(raw) => MaskedJson(raw, mask).serialize(serializer),
            PartialJson::Text(text) => MaskedTemplate(text, mask).serialize(serializer),
            PartialJson::Array(items) => {
                serializer.collect_seq(items.iter().map(|item| MaskedBody(item, mask)))
            }
            PartialJson::Object(members) => serializer.collect_map(
                members
                    .iter()
                    .map(|(name, value)| (name, MaskedBody(value, mask))),
            ),
        }
    }
}

/// A text with spaces that is wider than this is shown by its first words.
pub(crate) const MAX_ARGUMENT_COLUMNS: usize = 48;

/// Maximum width of these words.
pub(crate) const MAX_FOLDED_COLUMNS: usize = 32;

/// Returns the first words of a text that has several lines, or is too long for a line and has spaces. `None` for others,
/// such as paths.
pub(crate) fn fold_text(text: &str) -> Option<&str> {
    let lines = text.trim_end();
    let line = lines.trim_start().lines().next().unwrap_or_default();
    let has_lines = lines.trim_start().len() > line.len();
    let is_long = text.contains(' ') && line.width() > MAX_ARGUMENT_COLUMNS;
    if !has_lines && !is_long {
        return None;
    }
    if line.width() <= MAX_FOLDED_COLUMNS {
        return Some(line);
    }
    let cut = truncate_to_columns(line, MAX_FOLDED_COLUMNS);
    // It ends with an ellipsis, which isn't part of the text.
    let beginning = &line[..cut.trim_end_matches('…').len()];
    let end = beginning.rfind(' ').filter(|end| *end > 0);
    Some(end.map_or(beginning, |end| beginning[..end].trim_end()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;

    use crate::check::CallChecker;
    use crate::testing::sample_call;
    use crate::tools_file::parse_tools_file;
    use crate::types::Verdict;

    #[test]
    fn an_agent_is_shown_with_its_model_its_endpoint_and_its_tools() {
        let yaml = r#"
builtins: [attempt_completion]
tools:
  look:
    description: Look.
    input_schema: {type: object}
    command: {argv: [look]}
  expert:
    description: Ask a model.
    input_schema: {type: object, properties: {q: {type: string}}, required: [q]}
    agent: {endpoint: "https://${HOST:-api.example}", model: m, max_turns: 3, prompt: "Answer {q}", tools: [TOOLS]}
"#;
        let shown = |tools: &str, name: &str, input: &str| {
            let yaml = yaml.replace("TOOLS", tools);
            let work = Path::new("/work");
            let parsed = parse_tools_file(&yaml, work, work);
            let checker = CallChecker::new(Arc::new(parsed.tools.unwrap()));
            let checked = checker.check_call(sample_call(0, name, input));
            let Verdict::Accepted(accepted) = checked.verdict else {
                panic!("{:?}", checked.verdict)
            };
            render_invocation(&accepted, &Mask::new(["s3cr3t-value"])).unwrap()
        };
        let q = r#"{"q": "it: s3cr3t-value"}"#;
        assert_eq!(
            shown("look, attempt_completion", "expert", q),
            "agent m at https://${HOST:-api.example} with look, attempt_completion <<< 'Answer it: [masked]'"
        );
        assert_eq!(
            shown("", "expert", r#"{"q": "x"}"#),
            "agent m at https://${HOST:-api.example} <<< 'Answer x'"
        );
        let done = r#"{"result": "all done"}"#;
        assert_eq!(shown("", "attempt_completion", done), "answer 'all done'");
    }

    /// Variables appear as they do in the file; a shell would expand nothing else.
    #[test]
    fn only_variables_are_left_for_a_shell_to_expand() {
        let variable = |default: Option<&str>| Segment::Env {
            name: "REGION".to_owned(),
            default: default.map(str::to_owned),
        };
        let text = |text: &str| Segment::Text(text.to_owned());
        let partial = PartialTemplate(vec![
            text("$(id) `\"\\"),
            variable(Some("eu")),
            variable(None),
        ]);
        assert_eq!(
            quote_template(&partial, &Mask::default()),
            r#""\$(id) \`\"\\${REGION:-eu}${REGION}""#
        );
        let literal = PartialTemplate(vec![text("$(id)")]);
        assert_eq!(quote_template(&literal, &Mask::default()), "'$(id)'");
    }
}

#[cfg(test)]
mod folding_tests {
    use super::*;

    #[test]
    fn scripts_are_folded_and_arguments_are_not() {
        let path = "/a/very/long/path".repeat(10);
        for (text, folded) in [
            ("README.md", None),
            (path.as_str(), None),
            ("a b\n", None),
            ("  set -e\n", None),
            ("set -e\nmake\n", Some("set -e")),
            ("\n\nset -e\nmake\n", Some("set -e")),
            (
                "test \"$ICASE\" = true && set -- -i \"$@\"; exec grep -nH \"$@\"",
                Some("test \"$ICASE\" = true && set --"),
            ),
            (
                "読む 読む 読む 読む 読む 読む 読む 読む 読む 読む 読む",
                Some("読む 読む 読む 読む 読む 読む"),
            ),
        ] {
            assert_eq!(fold_text(text), folded, "{text}");
        }
    }
}
