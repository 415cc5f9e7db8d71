//! `command` as written → a program, its arguments and what it is given.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::template::parse_template;
use crate::tools_file::argv::{Role, SCRIPT_BESIDE, base_name, roles, value_beside};
use crate::tools_file::keys::{Argv, CommandFile, CommandForm, Defaults};
use crate::tools_file::resolve::context::Scope;
use crate::tools_file::resolve::placeholders::Sink;
use crate::tools_file::resolve::resource_limits;
use crate::tools_file::resolve::schema_presence::{Declared, declared, may_begin_with_dash};
use crate::tools_file::resolve::variables;
use crate::tools_file::spanned::{Placed, Setting};
use crate::types::{Argument, CommandBacking, Leftovers, Part, Span, Stdin, Template};

const PROGRAM: Sink = Sink::ARGUMENT.refusing(
    "a value of the input cannot name a program",
    "name the program here; one tool for each program, or an `enum` that the program itself reads",
);
const SCRIPT: Sink = Sink::ARGUMENT.refusing(
    "a value of the input cannot choose the file that an interpreter runs",
    SCRIPT_BESIDE,
);

/// The backing; none where there is no usable argument list.
pub(crate) fn resolved(
    form: &Placed<CommandForm>,
    defaults: &Defaults,
    scope: &mut Scope<'_, '_>,
) -> Option<CommandBacking> {
    let nothing = CommandFile::default();
    let (file, argv) = match &form.value {
        CommandForm::List(argv) => (&nothing, argv),
        CommandForm::Table(file) => {
            if file.argv.is_missing() {
                scope.findings.error(
                    form.key,
                    "`command` has no `argv`",
                    "no program",
                    "add the program and its arguments: `argv: [cat, --, \"{path}\"]`",
                );
            }
            (&**file, file.argv.value()?)
        }
    };
    resource_limits::check(&file.limits, scope.findings);
    let (program, arguments) = arguments(argv, form.key, scope)?;
    Some(CommandBacking {
        program,
        arguments,
        stdin: stdin(&file.stdin, scope),
        env: variables::given(file, scope),
        pass_env: variables::passed(file, scope),
        cwd: folder(&file.cwd, scope),
        success_exit: success(&file.success_exit, scope),
        leftovers: file
            .leftovers
            .value()
            .or(defaults.leftovers.value())
            .copied()
            .unwrap_or_default(),
        limits: resource_limits::limits(&file.limits, &defaults.limits),
    })
}

/// `probe`: a program with the variables, folder and limits of the tool's own command, if it has one.
pub(crate) fn probe(
    argv: &Placed<Argv>,
    beside: Option<&CommandBacking>,
    scope: &mut Scope<'_, '_>,
) -> Option<CommandBacking> {
    let (program, arguments) = arguments(&argv.value, argv.key, scope)?;
    Some(CommandBacking {
        program,
        arguments,
        stdin: Stdin::Input,
        env: beside
            .map(|command| command.env.clone())
            .unwrap_or_default(),
        pass_env: beside
            .map(|command| command.pass_env.clone())
            .unwrap_or_default(),
        cwd: beside.map_or_else(|| scope.root.to_owned(), |command| command.cwd.clone()),
        success_exit: vec![0],
        leftovers: Leftovers::Kill,
        limits: beside.map(|command| command.limits).unwrap_or_default(),
    })
}

/// The program and its arguments; none where there is no program.
fn arguments(
    argv: &[Setting<String>],
    key: Span,
    scope: &mut Scope<'_, '_>,
) -> Option<(String, Vec<Argument>)> {
    if argv
        .first()
        .is_none_or(|first| first.value().is_some_and(String::is_empty))
    {
        scope.findings.error(
            key,
            "there is no program to run",
            "empty",
            "name one: `[cat, --, \"{path}\"]`",
        );
    }
    let texts: Vec<&str> = argv
        .iter()
        .map(|element| element.value().map_or("", String::as_str))
        .collect();
    let each = argv.iter().zip(roles(&texts));
    let each: Vec<(&Placed<String>, Role)> = each
        .filter_map(|(element, role)| Some((element.given()?, role)))
        .collect();
    scope.operators(&each);
    let mut after_dashes = false;
    let mut arguments = Vec::with_capacity(argv.len());
    let mut program = String::new();
    for (element, role) in each {
        if role == Role::Program {
            program = base_name(&element.value);
        }
        // The `--` of `env -- cat {x}` ends the options of `env`, not those of `cat`.
        after_dashes &= role != Role::Program;
        let sink = match role {
            Role::Program => PROGRAM,
            Role::Code => Sink::code(
                "a value of the input cannot stand in a text that is run",
                value_beside(&program),
            ),
            Role::Script => SCRIPT,
            Role::Data => Sink::ARGUMENT,
        };
        arguments.push(argument(element, role, sink, after_dashes, scope));
        after_dashes |= element.value == "--";
    }
    let mut arguments = arguments.into_iter();
    let program = arguments.next()?.template;
    Some((program.sole_text()?.to_owned(), arguments.collect()))
}

fn argument(
    element: &Placed<String>,
    role: Role,
    sink: Sink,
    after_dashes: bool,
    scope: &mut Scope<'_, '_>,
) -> Argument {
    without_nul(element, scope);
    scope.home(element);
    let template = scope.template(element, sink);
    if role == Role::Data && !after_dashes {
        may_be_option(element, &template, scope);
    }
    Argument {
        template,
        after_dashes,
    }
}

pub(crate) fn without_nul(text: &Placed<String>, scope: &mut Scope<'_, '_>) {
    if text.value.contains('\0') {
        scope.findings.error(
            text.span,
            "a NUL character cannot be given to a program",
            "",
            "leave it out",
        );
    }
}

/// A string at the start of an argument could be read as an option; such a call is refused unless `--` comes first.
fn may_be_option(element: &Placed<String>, template: &Template, scope: &mut Scope<'_, '_>) {
    let Some(Part::Value { path, splat, .. }) = template.parts.first() else {
        return;
    };
    let begins = |schema: &Value| match schema.get("items") {
        Some(items) if *splat => may_begin_with_dash(items),
        _ => *splat || may_begin_with_dash(schema),
    };
    if let Declared::Always(schema) | Declared::Optional(schema) = declared(scope.schema, path)
        && begins(schema)
    {
        let name = path.join(".");
        scope.findings.warning(
            element.span,
            format!("`{name}` is refused here where it begins with `-`, since the program could take it for an option"),
            "no `--` before it",
            format!("put `--` before it where the program knows that, or write `--option={{{name}}}`"),
        );
    }
}

fn stdin(setting: &Setting<String>, scope: &mut Scope<'_, '_>) -> Stdin {
    match setting.given() {
        None => Stdin::Input,
        Some(word) if word.value == "input" => Stdin::Input,
        Some(word) if word.value == "none" => Stdin::None,
        Some(text) => Stdin::Template(scope.template(text, Sink::TEXT)),
    }
}

/// Where it runs: inside the root.
fn folder(setting: &Setting<String>, scope: &mut Scope<'_, '_>) -> PathBuf {
    let Some(cwd) = setting.given() else {
        return scope.root.to_owned();
    };
    scope.home(cwd);
    let inside = stays_inside(Path::new(&cwd.value), scope.root);
    let is_constant = parse_template(&cwd.value).sole_text().is_some();
    if !is_constant {
        scope.findings.error(
            cwd.span,
            "`cwd` is no template",
            "constant",
            "write the folder out, or hand the value over as an argument",
        );
    } else if !inside {
        scope.findings.error(
            cwd.span,
            "`cwd` leads out of the root",
            "outside",
            "write a folder below `root`",
        );
    }
    scope.root.join(&cwd.value).components().collect()
}

fn stays_inside(cwd: &Path, root: &Path) -> bool {
    let relative = if cwd.is_absolute() {
        match cwd.strip_prefix(root) {
            Ok(relative) => relative,
            Err(_) => return false,
        }
    } else {
        cwd
    };
    let mut depth = 0_usize;
    relative.components().all(|component| match component {
        Component::ParentDir => depth.checked_sub(1).map(|less| depth = less).is_some(),
        Component::Normal(_) => {
            depth += 1;
            true
        }
        _ => true,
    })
}

fn success(setting: &Setting<Vec<Setting<i32>>>, scope: &mut Scope<'_, '_>) -> Vec<i32> {
    if setting.is_missing() {
        return vec![0];
    }
    for code in setting
        .items()
        .filter(|code| !(0..=255).contains(&code.value))
    {
        scope.findings.error(
            code.span,
            format!("{} is no exit code", code.value),
            "",
            "exit codes are 0 to 255",
        );
    }
    setting.items().map(|code| code.value).collect()
}
