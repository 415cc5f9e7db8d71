//! What a call runs, as one line for people: written as one would type it into a shell, complete, and with nothing in
//! it that a terminal would obey. It is for reading; toolq itself never gives a line to a shell.

use std::borrow::Cow;

use url::form_urlencoded::byte_serialize;

use crate::plan::json::body;
use crate::text::escape;
use crate::types::{
    Accepted, AgentBacking, AgentInvocation, Backing, CommandInvocation, Draft, HttpInvocation,
    Invocation, Part, Piece, StdinDraft, Template,
};
use redact::Mask;

/// The line; none where the tool has no backing.
pub(crate) fn line(accepted: &Accepted, mask: &Mask) -> Option<String> {
    let line = match accepted.invocation.as_ref()? {
        Invocation::Command(command) => command_line(command, mask),
        Invocation::Http(request) => request_line(method(accepted), request, mask),
        Invocation::Agent(task) => agent_line(agent(accepted)?, task, mask),
        Invocation::Completion(result) => format!("answer {}", word(&mask.text(result))),
    };
    Some(mask.text(&line).into_owned())
}

/// The method of a call's request.
pub(crate) fn method(accepted: &Accepted) -> &'static str {
    match &accepted.tool.backing {
        Some(Backing::Http(http)) => http.method.name(),
        _ => "GET",
    }
}

/// The agent of a call.
pub(crate) fn agent(accepted: &Accepted) -> Option<&AgentBacking> {
    match &accepted.tool.backing {
        Some(Backing::Agent(agent)) => Some(agent),
        _ => None,
    }
}

/// A template that holds no value of an input, variables as names.
pub(crate) fn fixed(template: &Template) -> Draft {
    Draft(template.parts.iter().filter_map(Part::as_piece).collect())
}

/// `agent model at endpoint with tool, tool: prompt`.
fn agent_line(agent: &AgentBacking, task: &AgentInvocation, mask: &Mask) -> String {
    let (model, endpoint) = (fixed(&agent.model), fixed(&agent.endpoint));
    let tools = match agent.tools.join(", ") {
        tools if tools.is_empty() => String::new(),
        tools => format!(" with {tools}"),
    };
    let line = format!("agent {model} at {endpoint}{tools}");
    let line = escape(&line);
    match &task.prompt {
        Some(prompt) => format!("{line} <<< {}", draft_word(prompt, mask)),
        None => line.into_owned(),
    }
}

/// `NAME=value program argument… <<< text`. Secrets are masked before quotes change their spelling.
fn command_line(command: &CommandInvocation, mask: &Mask) -> String {
    let masked = |text: &str| word(&mask.text(text)).into_owned();
    let env = command.env.iter();
    let env = env.map(|(name, value)| format!("{name}={}", draft_word(value, mask)));
    let argv = command.argv.iter().map(|argument| masked(argument));
    let stdin = match &command.stdin {
        StdinDraft::Text(text) => Some(format!("<<< {}", masked(text))),
        StdinDraft::Input | StdinDraft::None => None,
    };
    env.chain(argv).chain(stdin).collect::<Vec<_>>().join(" ")
}

/// `METHOD url?query header: value body`.
fn request_line(method: &str, request: &HttpInvocation, mask: &Mask) -> String {
    let target = format!("{method} {}", target(request));
    let headers = request.headers.iter();
    let headers = headers.map(|(name, value)| format!("{name}: {}", draft_word(value, mask)));
    let body = body(request, mask).map(|body| escape(&body).into_owned());
    let words = std::iter::once(escape(&target).into_owned());
    words
        .chain(headers)
        .chain(body)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The URL with its query, encoded as it is sent.
fn target(request: &HttpInvocation) -> String {
    let mut target = request.url.to_string();
    for (name, value) in &request.query {
        target.push(if target.contains('?') { '&' } else { '?' });
        target.extend(byte_serialize(name.as_bytes()));
        target.push('=');
        for piece in &value.0 {
            match piece {
                Piece::Text(text) => target.extend(byte_serialize(text.as_bytes())),
                Piece::Env { .. } => target.push_str(&piece.to_string()),
            }
        }
    }
    target
}

/// A draft as a word. Variables of the environment stay names, in quotes that let a shell read them and nothing else.
fn draft_word(draft: &Draft, mask: &Mask) -> String {
    let is_env = |piece: &Piece| matches!(piece, Piece::Env { .. });
    if !draft.0.iter().any(is_env) {
        return word(&mask.text(&draft.to_string())).into_owned();
    }
    let pieces = draft.0.iter().map(|piece| match piece {
        Piece::Text(text) => quoted(&mask.text(text)),
        Piece::Env { .. } => piece.to_string(),
    });
    format!("\"{}\"", escape(&pieces.collect::<String>()))
}

/// A text between double quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '"' | '$' | '`' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}

/// One word of a shell that stands for exactly this text.
fn word(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    match escape(text) {
        Cow::Owned(_) => {
            let text = text.replace('\\', "\\\\").replace('\'', "\\'");
            Cow::Owned(format!("$'{}'", escape(&text)))
        }
        Cow::Borrowed(text) if !text.is_empty() && text.chars().all(plain) => Cow::Borrowed(text),
        Cow::Borrowed(text) => Cow::Owned(format!("'{}'", text.replace('\'', r"'\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FAULTS 45, 78, 137: people see the real arguments, all of them, and nothing that moves their cursor.
    #[test]
    fn words_are_quoted_and_escaped() {
        for (text, seen) in [
            ("README.md", "README.md"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$(rm -rf /)", "'$(rm -rf /)'"),
            ("中文", "中文"),
            ("a\n\x1b[2J\\'", r"$'a\n\x1b[2J\\\''"),
            ("\u{202e}gpj.exe", r"$'\u202egpj.exe'"),
        ] {
            assert_eq!(word(text), seen);
        }
        let long = "x".repeat(100_000);
        assert_eq!(word(&long), long);
    }
    /// The variables stand in it as the file has them; a shell would expand nothing else.
    #[test]
    fn only_variables_are_left_to_a_shell() {
        let variable = |default: Option<&str>| Piece::Env {
            name: "REGION".to_owned(),
            default: default.map(str::to_owned),
        };
        let text = |text: &str| Piece::Text(text.to_owned());
        let draft = Draft(vec![
            text("$(id) `\"\\"),
            variable(Some("eu")),
            variable(None),
        ]);
        assert_eq!(
            draft_word(&draft, &Mask::default()),
            r#""\$(id) \`\"\\${REGION:-eu}${REGION}""#
        );
        let literal = Draft(vec![text("$(id)")]);
        assert_eq!(draft_word(&literal, &Mask::default()), "'$(id)'");
    }
}
