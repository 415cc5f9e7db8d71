//! One tool as written → the tool that calls are checked against, the file's defaults applied.

use std::sync::Arc;

use serde_json::json;

use crate::template::dotted_path;
use crate::text::nearest;
use crate::tools_file::keys::{Defaults, ToolFile};
use crate::tools_file::resolve::agent;
use crate::tools_file::resolve::command;
use crate::tools_file::resolve::context::Scope;
use crate::tools_file::resolve::diagnostics::Findings;
use crate::tools_file::resolve::http;
use crate::tools_file::resolve::limits;
use crate::tools_file::resolve::limits::{MAX_OUTPUT, MAX_SAVED};
use crate::tools_file::resolve::messages;
use crate::tools_file::resolve::placeholders::Sink;
use crate::tools_file::resolve::rules::Rules;
use crate::tools_file::resolve::schema_presence::{Declared, declared};
use crate::tools_file::resolve::tool_name::check_name;
use crate::tools_file::spanned::{Placed, Setting};
use crate::types::{
    Backing, CommandBacking, Compare, Describe, Effect, Ignored, Messages, OnFailure, OutputKind,
    Span, Status, Stdin, Template, Tool,
};

/// What all tools of a file share.
pub(crate) struct Shared<'f> {
    pub(crate) defaults: &'f Defaults,
    pub(crate) rules: &'f Rules,
    pub(crate) messages: &'f Messages,
}

/// The tool `name`. What is wrong with it is in the findings; the tool is then not to be used.
pub(crate) fn resolved(
    name: &str,
    file: &Placed<ToolFile>,
    shared: &Shared<'_>,
    scope: &mut Scope<'_, '_>,
) -> Tool {
    check_name(name, file.key, scope);
    let tool = &file.value;
    let defaults = shared.defaults;
    check_limits(tool, scope);
    let declared_effect = tool.effect.value().copied();
    let effect = declared_effect.unwrap_or(Effect::Write);
    let backing = backing(file, defaults, scope);
    let mut messages = shared.messages.clone();
    messages.extend(messages::read(&tool.messages, scope.findings));
    Tool {
        name: name.to_owned(),
        description: tool.description.value().cloned().unwrap_or_default(),
        display_name: tool.display_name.value().cloned(),
        category: tool.category.value().cloned(),
        input_schema: scope.schema.clone(),
        describe: describe(tool, backing.as_ref(), scope),
        safety: shared
            .rules
            .safety(name, tool.concurrency_safe.value(), declared_effect),
        effect,
        timeout: limits::timeout([&tool.timeout, &defaults.timeout]),
        estimate: tool.estimate.value().map(|estimate| estimate.0),
        paths: paths(&tool.paths, scope),
        status: status(tool, scope),
        probe: probe(tool, effect, backing.as_ref(), scope),
        backing,
        output: pick(&tool.output, &defaults.output, OutputKind::Text),
        max_output: first(&tool.max_output, &defaults.max_output).map_or(MAX_OUTPUT, |size| size.0),
        max_saved: first(&tool.max_saved, &defaults.max_saved).map_or(MAX_SAVED, |size| size.0),
        retry: limits::retry(
            &tool.retry,
            &defaults.retry,
            tool.agent.is_missing().then_some(effect),
            scope.findings,
        ),
        on_failure: pick(&tool.on_failure, &defaults.on_failure, OnFailure::Continue),
        pause_after_failures: first(&tool.pause_after_failures, &defaults.pause_after_failures)
            .copied(),
        coerce: pick(&tool.coerce, &defaults.coerce, true),
        compare: tool.compare.value().copied().unwrap_or(Compare::Json),
        ignore: ignored(tool, scope.findings),
        messages,
    }
}

fn first<'s, T>(own: &'s Setting<T>, default: &'s Setting<T>) -> Option<&'s T> {
    own.value().or(default.value())
}

fn pick<T: Copy>(own: &Setting<T>, default: &Setting<T>, otherwise: T) -> T {
    first(own, default).copied().unwrap_or(otherwise)
}

fn check_limits(tool: &ToolFile, scope: &mut Scope<'_, '_>) {
    limits::check_timeout(&tool.timeout, scope.findings);
    limits::check_retry(&tool.retry, scope.findings);
    limits::check_output(&tool.max_output, scope.findings);
}

fn paths(setting: &Setting<Vec<Setting<String>>>, scope: &mut Scope<'_, '_>) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for dotted in setting.items() {
        let Some(path) = dotted_path(&dotted.value) else {
            scope.findings.error(
                dotted.span,
                format!("`{}` is no name of an input", dotted.value),
                "",
                "write `path`, or `file.path` for a value inside another",
            );
            continue;
        };
        if let Declared::Never { depth, known } = declared(scope.schema, &path) {
            let hint = match nearest(&path[depth], known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "only inputs that the schema has can be kept inside the root".to_owned(),
            };
            scope.findings.error(
                dotted.span,
                format!("the input has no `{}`", dotted.value),
                "not in `input_schema`",
                hint,
            );
        }
        paths.push(path);
    }
    paths
}

/// The parts that `replay` leaves out; only JSON has parts.
fn ignored(tool: &ToolFile, findings: &mut Findings<'_>) -> Vec<Ignored> {
    let whole = matches!(tool.compare.value(), Some(Compare::Exact | Compare::None));
    let mut parts = Vec::new();
    for part in tool.ignore.items() {
        match Ignored::parse(&part.value) {
            Ok(ignored) => parts.push(ignored),
            Err(message) => findings.error(
                part.span,
                message,
                "",
                "`/meta/took_ms` is a place from the top, `//took_ms` one at any depth",
            ),
        }
        if whole {
            findings.warning(
                part.span,
                "nothing is left out of results that are compared as a whole, or not at all",
                "ignored",
                "write `compare: json`, or take it away",
            );
        }
    }
    parts
}

fn status(tool: &ToolFile, scope: &mut Scope<'_, '_>) -> Status {
    let Some(file) = tool.status.value() else {
        return Status::default();
    };
    let mut read =
        |text: &Setting<String>| text.given().map(|text| scope.template(text, Sink::WORDS));
    Status {
        wait: read(&file.wait),
        doing: read(&file.doing),
    }
}

/// Who knows the tool's schema, where the file leaves it to the tool.
fn describe(
    tool: &ToolFile,
    backing: Option<&Backing>,
    scope: &mut Scope<'_, '_>,
) -> Option<Box<Describe>> {
    let argv = tool.describe.given()?;
    let beside = match backing {
        Some(Backing::Command(command)) => Some(command),
        _ => None,
    };
    // There is no input yet, so that no argument can hold one.
    let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let mut scope = Scope {
        schema: &nothing,
        root: scope.root,
        findings: scope.findings,
    };
    let mut command = command::probe(argv, beside, &mut scope)?;
    command.stdin = Stdin::None;
    // Variables with a value of the input come with a call.
    let fixed = |template: &Template| template.parts.iter().all(|part| part.as_piece().is_some());
    command.env.retain(|(_, template)| fixed(template));
    Some(Box::new(Describe {
        command,
        said: Arc::default(),
    }))
}

/// What is asked on resume; a tool that may simply run again has no use for it.
fn probe(
    tool: &ToolFile,
    effect: Effect,
    backing: Option<&Backing>,
    scope: &mut Scope<'_, '_>,
) -> Option<CommandBacking> {
    let argv = tool.probe.given()?;
    if effect != Effect::Write {
        scope.findings.warning(
            argv.key,
            format!(
                "this `probe` is never asked: the tool's effect is `{}`",
                effect.name()
            ),
            "",
            "such a call just runs again on resume; leave the probe out",
        );
    }
    let beside = match backing {
        Some(Backing::Command(command)) => Some(command),
        _ => None,
    };
    command::probe(argv, beside, scope)
}

fn backing(
    file: &Placed<ToolFile>,
    defaults: &Defaults,
    scope: &mut Scope<'_, '_>,
) -> Option<Backing> {
    let tool = &file.value;
    let mut given: Vec<Span> = [
        tool.command.given().map(|command| command.key),
        tool.http.given().map(|http| http.key),
        tool.agent.given().map(|agent| agent.key),
    ]
    .into_iter()
    .flatten()
    .collect();
    given.sort_unstable();
    for second in given.into_iter().skip(1) {
        scope.findings.error(
            second,
            "a tool has one backing",
            "the second one",
            "keep `command`, `http` or `agent`, or make two tools",
        );
    }
    let command = tool
        .command
        .given()
        .and_then(|form| command::resolved(form, defaults, scope));
    let http = tool
        .http
        .given()
        .and_then(|file| http::resolved(file, scope));
    let agent = tool
        .agent
        .given()
        .and_then(|file| agent::resolved(file, scope));
    command
        .map(Backing::Command)
        .or(http.map(Backing::Http))
        .or(agent.map(|agent| Backing::Agent(Box::new(agent))))
}
