//! What a run would stumble over: tools that nothing runs yet, programs that aren't there, variables that aren't set, a
//! file that everybody may write. None of it stops anything, since plans and replays work without.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::model::{
    AgentBacking, Backing, Body, BodyTemplate, CommandBacking, Environment, HttpBacking, Mask,
    Part, Problem, Span, Template, Tool, Tools,
};
use crate::parse::Node;

/// Tools that one warning names.
const NAMED: usize = 4;

/// Warnings about `tools`, which were read from `file`; `tree` tells where they stand.
pub fn warnings(
    tools: &Tools,
    tree: &Node,
    file: &Path,
    environment: &Environment,
) -> Vec<Problem> {
    let mut found = Vec::new();
    if is_writable_by_all(file) {
        found.push(
            Problem::warning(
                Span::default(),
                "everybody may change this file, and so what toolq runs",
                "",
            )
            .with_hint("take the right away: `chmod o-w`"),
        );
    }
    if !tools.root.is_dir() {
        found.push(
            Problem::warning(tree.place(&["root"], ""), "the root is no folder", "")
                .with_hint("commands run there and paths must stay inside it"),
        );
    }
    found.extend(unmasked(tree, environment));
    found.extend(without_backing(tools, tree));
    for tool in &tools.tools {
        found.extend(of_tool(tool, tools, tree, environment));
    }
    found
}

fn is_writable_by_all(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|metadata| metadata.permissions().mode() & 0o002 != 0)
}

/// Names under `secrets` that mask nothing: mistyped, not set, or with a value that would hide innocent text.
fn unmasked(tree: &Node, environment: &Environment) -> Vec<Problem> {
    let mut found = Vec::new();
    for (name, place) in tree.texts("secrets") {
        let value = environment.get(name).unwrap_or_default();
        let (message, hint) = if value.is_empty() {
            let message = format!("the variable {name} is not set or empty, so nothing is masked");
            (
                message,
                "`secrets` has names of variables of the environment; check the spelling",
            )
        } else if value.len() < Mask::SHORTEST {
            let message = format!("the value of {name} is too short to be masked");
            (
                message,
                "values under 6 bytes are never masked: they would hide innocent text",
            )
        } else {
            continue;
        };
        found.push(Problem::warning(place, message, "").with_hint(hint));
    }
    found
}

/// One warning for all tools that nothing runs: right after `init --from` that is every one.
fn without_backing(tools: &Tools, tree: &Node) -> Option<Problem> {
    let unbacked = tools.tools.iter().filter(|tool| tool.backing.is_none());
    let names: Vec<&str> = unbacked.map(|tool| tool.name.as_str()).collect();
    let first = names.first()?;
    let shown = names[..names.len().min(NAMED)].join("`, `");
    let (more, have) = match (names.len(), names.len().saturating_sub(NAMED)) {
        (1, _) => (String::new(), "has"),
        (_, 0) => (String::new(), "have"),
        (_, more) => (format!(" and {more} more"), "have"),
    };
    let message = format!("`{shown}`{more} {have} no `command`, `http` or `agent`");
    let place = tree.key_place(&["tools", first], "");
    let hint = "say what does the work; until then calls are planned, and answered with an error";
    Some(Problem::warning(place, message, "nothing runs it").with_hint(hint))
}

fn of_tool(tool: &Tool, tools: &Tools, tree: &Node, environment: &Environment) -> Vec<Problem> {
    let place = |pointer: &str| tree.place(&["tools", &tool.name], pointer);
    let mut found = beside(tool, tools, tree, environment);
    let (key, templates) = match &tool.backing {
        None | Some(Backing::Builtin(_)) => return found,
        Some(Backing::Command(command)) => {
            if let Some(why) = program_fault(command, tools, environment) {
                let named = place("/command/argv/0");
                let listed = place("/command/0");
                found.push(
                    Problem::warning(
                        named.max(listed),
                        format!("`{}` {why}", command.program),
                        "",
                    )
                    .with_hint(
                        cure(&command.program, &tools.dir).unwrap_or_else(|| {
                            "calls of this tool will fail until it is there".to_owned()
                        }),
                    ),
                );
            }
            found.extend(cwd_fault(command, tools, place("/command/cwd")));
            (
                "/command",
                command.env.iter().map(|(_, template)| template).collect(),
            )
        }
        Some(Backing::Http(http)) => ("/http", request_templates(http)),
        Some(Backing::Agent(agent)) => ("/agent", agent_templates(agent)),
    };
    for name in missing_variables(&templates, environment) {
        found.push(
            Problem::warning(
                place(key),
                format!("the variable {name} is not set or empty"),
                "needs it",
            )
            .with_hint(format!("set it, or give a default: `${{{name}:-…}}`")),
        );
    }
    found
}

/// What keeps the programs from being started that a tool has beside its backing.
fn beside(tool: &Tool, tools: &Tools, tree: &Node, environment: &Environment) -> Vec<Problem> {
    let describe = tool.describe.as_ref();
    let describe = describe.map(|describe| {
        let hint = "calls of this tool can't be checked, and don't run, until it is there";
        ("/describe/0", &describe.command, hint)
    });
    let probe = tool.probe.as_ref().map(|probe| {
        let hint = "a call that was interrupted stays in doubt on resume until it is there";
        ("/probe/0", probe, hint)
    });
    let missing = |(key, command, hint): (&str, &CommandBacking, &str)| {
        let why = program_fault(command, tools, environment)?;
        let place = tree.place(&["tools", &tool.name], key);
        let message = format!("`{}` {why}", command.program);
        let hint = cure(&command.program, &tools.dir).unwrap_or_else(|| hint.to_owned());
        Some(Problem::warning(place, message, "").with_hint(hint))
    };
    [describe, probe]
        .into_iter()
        .flatten()
        .filter_map(missing)
        .collect()
}

/// Why the program of a command can't be started, if so.
fn program_fault(
    command: &CommandBacking,
    tools: &Tools,
    environment: &Environment,
) -> Option<&'static str> {
    let program = Path::new(&command.program);
    let candidates: Vec<PathBuf> = if command.program.contains('/') {
        vec![tools.dir.join(program)]
    } else {
        let path = environment
            .raw("PATH")
            .unwrap_or(OsStr::new("/usr/bin:/bin"));
        std::env::split_paths(path)
            .map(|folder| folder.join(program))
            .collect()
    };
    let files = || candidates.iter().filter(|path| path.is_file());
    let is_executable = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
    };
    match (files().any(is_executable), files().next().is_some()) {
        (true, _) => None,
        (false, true) => Some("is not executable"),
        (false, false) => Some("is not there"),
    }
}

/// What makes a program be found that is there.
fn cure(program: &str, dir: &Path) -> Option<String> {
    let is_beside = !program.contains('/') && dir.join(program).is_file();
    is_beside.then(|| {
        format!(
            "write `./{program}`: without a slash it is looked for in PATH, not beside tools.yaml"
        )
    })
}

/// What is wrong with the folder that a command runs in; of the root it is said elsewhere.
fn cwd_fault(command: &CommandBacking, tools: &Tools, place: Span) -> Option<Problem> {
    if command.cwd == tools.root || command.cwd.is_dir() {
        return None;
    }
    let cwd = command.cwd.strip_prefix(&tools.root);
    let message = format!(
        "there is no folder `{}` in the root",
        cwd.unwrap_or(&command.cwd).display()
    );
    let hint = "`cwd` is seen from the root; calls of this tool will fail until it is there";
    Some(Problem::warning(place, message, "").with_hint(hint))
}

fn agent_templates(agent: &AgentBacking) -> Vec<&Template> {
    let optional = [
        &agent.api_key,
        &agent.fallback_model,
        &agent.system,
        &agent.prompt,
    ];
    let needed = [&agent.endpoint, &agent.model];
    needed
        .into_iter()
        .chain(optional.into_iter().flatten())
        .collect()
}

fn request_templates(http: &HttpBacking) -> Vec<&Template> {
    let mut templates = vec![&http.url];
    templates.extend(http.query.iter().map(|(_, template)| template));
    templates.extend(http.headers.iter().map(|(_, template)| template));
    templates.extend(&http.proxy);
    if let Body::Json(body) = &http.body {
        body_templates(body, &mut templates);
    }
    templates
}

fn body_templates<'b>(body: &'b BodyTemplate, templates: &mut Vec<&'b Template>) {
    match body {
        BodyTemplate::Literal(_) => {}
        BodyTemplate::Template(template) => templates.push(template),
        BodyTemplate::Array(items) => items
            .iter()
            .for_each(|item| body_templates(item, templates)),
        BodyTemplate::Object(pairs) => pairs
            .iter()
            .for_each(|(_, value)| body_templates(value, templates)),
    }
}

/// Variables without a default that are not set or empty, each once.
fn missing_variables<'t>(templates: &[&'t Template], environment: &Environment) -> Vec<&'t str> {
    let mut missing: Vec<&str> = templates
        .iter()
        .flat_map(|template| &template.parts)
        .filter_map(|part| match part {
            Part::Env {
                name,
                default: None,
            } => Some(name.as_str()),
            _ => None,
        })
        .filter(|name| environment.get(name).is_none_or(|value| value.is_empty()))
        .collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;

    use super::*;
    use crate::validate::load;

    /// FAULTS 32, 33: what is not there is said before a model calls it.
    #[test]
    fn what_only_the_machine_can_tell() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tools.yaml");
        let text = r#"root: missing
secrets: [NONE, SET, LONG]
tools:
  a: {input_schema: {type: object}, command: [no-such-program]}
  b: {input_schema: {type: object}, command: {argv: [./plain], env: {X: "${UNSET} ${SET} ${D:-d}"}}}
  c: {input_schema: {type: object}, command: [./folder]}
  d: {input_schema: {type: object}, http: {url: "${BASE}/", body: ["${UNSET}"]}}
  e: {input_schema: {type: object}, command: {argv: [sh], cwd: sub}}
  f: {describe: [no-describe], probe: [no-probe], command: [sh]}
  g: {describe: [./plain]}
"#;
        fs::write(&file, text).unwrap();
        fs::write(dir.path().join("plain"), "no program").unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        let variables = [("PATH", "/usr/bin:/bin"), ("SET", "1"), ("LONG", "123456")];
        let environment = variables
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .into_iter()
            .collect();
        let loaded = load(text, dir.path(), dir.path());
        let (tools, tree) = (loaded.tools.unwrap(), loaded.tree.unwrap());
        let found: Vec<(String, &str)> = warnings(&tools, &tree, &file, &environment)
            .into_iter()
            .map(|problem| {
                let Span { start, len } = problem.span;
                (problem.message, &text[start..start + len])
            })
            .collect();
        let expected = [
            ("everybody may change this file, and so what toolq runs", ""),
            ("the root is no folder", "missing"),
            (
                "the variable NONE is not set or empty, so nothing is masked",
                "NONE",
            ),
            ("the value of SET is too short to be masked", "SET"),
            ("`g` has no `command`, `http` or `agent`", "g"),
            ("`no-such-program` is not there", "no-such-program"),
            ("`./plain` is not executable", "./plain"),
            ("the variable UNSET is not set or empty", "command"),
            ("`./folder` is not there", "./folder"),
            ("the variable BASE is not set or empty", "http"),
            ("the variable UNSET is not set or empty", "http"),
            ("there is no folder `sub` in the root", "sub"),
            ("`no-describe` is not there", "no-describe"),
            ("`no-probe` is not there", "no-probe"),
            ("`./plain` is not executable", "./plain"),
        ];
        assert_eq!(
            found,
            expected.map(|(message, at)| (message.to_owned(), at))
        );
    }
}
