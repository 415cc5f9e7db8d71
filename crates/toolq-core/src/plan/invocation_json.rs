//! What a call runs, as a plan in JSON has it. Environment variables appear by name.

use crate::plan::invocation_line;
use crate::plan::template_json::{MaskedBody, MaskedTemplate, TemplatePairs};
use crate::types::{AcceptedCall, AgentInvocation, HttpInvocation, Invocation, MaskedText};
use redact::Mask;

/// What a call runs.
#[derive(serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InvocationJson<'a> {
    Command(Vec<MaskedText<'a>>),
    Http(RequestJson<'a>),
    Agent(AgentJson<'a>),
    Mcp(McpJson<'a>),
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
            Invocation::Http(request) => {
                let method = invocation_line::http_method(accepted);
                Some(Self::Http(RequestJson::new(method, request, mask)))
            }
            Invocation::Mcp(call) => Some(Self::Mcp(McpJson {
                server: &call.server,
                tool: &call.tool,
                arguments: MaskedBody(&call.arguments, mask),
            })),
            Invocation::Agent(task) => AgentJson::new(accepted, task, mask).map(Self::Agent),
            Invocation::Completion(_) | Invocation::ReadOutput(_) => {
                Some(Self::Builtin(&accepted.tool.name))
            }
            Invocation::Host => Some(Self::Host(&accepted.tool.name)),
        }
    }
}

#[derive(serde::Serialize)]
pub(crate) struct McpJson<'a> {
    server: &'a str,
    tool: &'a str,
    arguments: MaskedBody<'a>,
}

#[derive(serde::Serialize)]
pub(crate) struct RequestJson<'a> {
    method: &'static str,
    url: MaskedTemplate<'a>,
    #[serde(skip_serializing_if = "TemplatePairs::is_empty")]
    query: TemplatePairs<'a>,
    #[serde(skip_serializing_if = "TemplatePairs::is_empty")]
    headers: TemplatePairs<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<MaskedBody<'a>>,
}

/// An agent's configuration. Its API key and system prompt aren't shown.
#[derive(serde::Serialize)]
pub(crate) struct AgentJson<'a> {
    model: String,
    endpoint: String,
    tools: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<MaskedTemplate<'a>>,
}

impl<'a> AgentJson<'a> {
    fn new(accepted: &'a AcceptedCall, task: &'a AgentInvocation, mask: &'a Mask) -> Option<Self> {
        let agent = invocation_line::agent_backing(accepted)?;
        let shown = |template| {
            mask.apply(&invocation_line::partial_without_values(template).to_string())
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

impl<'a> RequestJson<'a> {
    fn new(method: &'static str, request: &'a HttpInvocation, mask: &'a Mask) -> Self {
        Self {
            method,
            url: MaskedTemplate(&request.url, mask),
            query: TemplatePairs(&request.query, mask),
            headers: TemplatePairs(&request.headers, mask),
            body: request.body.as_ref().map(|body| MaskedBody(body, mask)),
        }
    }
}
