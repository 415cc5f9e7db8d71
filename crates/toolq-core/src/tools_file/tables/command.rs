//! `command`, and the programs that a tool has besides the one for its calls: `describe` and `probe`.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::template::parse_template;
use crate::tools_file::argv::find_stdin_code_reader;
use crate::tools_file::context::{ProgramDefaults, ToolContext};
use crate::tools_file::input_values::resolve_value_names;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::tables::arguments::{resolve_arguments, warn_about_unused_dashes};
use crate::tools_file::tables::env::{resolve_env, resolve_pass_env};
use crate::tools_file::tables::limits::{
    LimitsFile, check_resource_limits, layer_limits, resolve_resource_limits,
};
use crate::tools_file::tables::sandbox::without_values;
use crate::tools_file::tables::values::Argv;
use crate::tools_file::templates::TemplatePolicy;
use crate::types::{
    Backing, CommandBacking, DescribeCommand, Effect, Leftovers, StderrUse, StdinSource, Template,
};

/// A program and its arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "a list of the program and its arguments, such as `[cat, --, \"{path}\"]`, or a table with `argv`"
)]
#[schemars(rename = "Command", untagged)]
pub enum CommandForm {
    /// The program and its arguments.
    List(Argv),
    /// A table with `argv` and other keys.
    Table(Box<CommandFile>),
}

/// A program and how to run it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["argv"]))]
pub struct CommandFile {
    /// The program and its arguments. Each is a template; no shell is involved.
    pub argv: Field<Argv>,
    /// Standard input: `input` (the input as JSON), `none`, or a template. Default: `input` if no argument or variable
    /// contains a value from the input, otherwise `none`.
    pub stdin: Field<String>,
    /// Names of inputs that may begin with `-` as an argument of their own. All others are refused then.
    pub dashes: Field<Vec<Field<String>>>,
    /// Environment variables: names with templates for their values.
    pub env: Field<SpannedTable<String>>,
    /// Variables to pass from toolq's own environment, in addition to PATH, HOME, LANG, LC_*, TMPDIR and TZ.
    pub pass_env: Field<Vec<Field<String>>>,
    /// Working directory, inside the root. Default: the root.
    pub cwd: Field<String>,
    /// Exit codes that count as success. Default: 0.
    #[schemars(with = "Field<Vec<u8>>")]
    pub success_exit: Field<Vec<Field<i32>>>,
    /// When the model reads the end of stderr: `on_failure` (the default; also after a success without other output),
    /// `always` (behind an output that is text), or `never`.
    pub stderr: Field<StderrUse>,
    /// What to do with processes that are still running after the program exits: `kill` (the default), `report` (kill
    /// them and tell the model), or `allow`.
    pub leftovers: Field<Leftovers>,
    /// Resource limits. Default: whatever the system allows.
    pub limits: Field<LimitsFile>,
}

/// Returns the backing, or `None` if there is no usable argument list.
pub(crate) fn resolve_command(
    form: &Spanned<CommandForm>,
    (leftovers, limits): (&Field<Leftovers>, &Field<LimitsFile>),
    context: &mut ToolContext<'_>,
) -> Option<CommandBacking> {
    let empty_table = CommandFile::default();
    let (file, argv) = match &form.value {
        CommandForm::List(argv) => (&empty_table, argv),
        CommandForm::Table(file) => {
            if file.argv.is_missing() {
                context.diagnostics.error(
                    (form.key_span, "no program"),
                    "`command` has no `argv`",
                    "add the program and its arguments: `argv: [cat, --, \"{path}\"]`",
                );
            }
            (&**file, file.argv.value()?)
        }
    };
    check_resource_limits(&file.limits, context.diagnostics);
    let dashes = resolve_value_names(
        file.dashes.items(),
        "name an input that begins an argument",
        context,
    );
    let (program, arguments) = resolve_arguments(argv, form.key_span, &dashes, context)?;
    warn_about_unused_dashes(&file.dashes, &arguments, context);
    let defaults = context.programs;
    let pass_env = resolve_pass_env(&file.pass_env, context);
    let env = resolve_env(&file.env, context);
    let env = defaults.add_env(env, &pass_env);
    let uses_input = use_input(&arguments, &env);
    report_stdin_code(argv, &file.stdin, context);
    Some(CommandBacking {
        stdin: resolve_stdin(&file.stdin, uses_input, context),
        program,
        arguments,
        dashes,
        env,
        pass_env: defaults.add_pass_env(&pass_env),
        cwd: resolve_cwd(&file.cwd, context),
        success_exit: resolve_success_exit(&file.success_exit, context),
        stderr: file.stderr.copied().unwrap_or_default(),
        leftovers: file
            .leftovers
            .value()
            .or(leftovers.value())
            .copied()
            .unwrap_or_default(),
        limits: resolve_resource_limits(&file.limits.over(limits, layer_limits)),
        sandbox: context.sandbox.clone(),
        wrapper: context.wrapper.clone(),
    })
}

impl ProgramDefaults {
    /// Adds the variables that a program doesn't set or pass itself.
    fn add_env(
        &self,
        own: Vec<(String, Template)>,
        own_pass_env: &[String],
    ) -> Vec<(String, Template)> {
        let is_own = |name: &String| {
            own.iter().any(|(known, _)| known == name) || own_pass_env.contains(name)
        };
        let mut env = self.env.clone();
        env.retain(|(name, _)| !is_own(name));
        env.extend(own);
        env
    }

    /// Adds the names of the variables that are passed to every program.
    fn add_pass_env(&self, own: &[String]) -> Vec<String> {
        self.pass_env
            .iter()
            .filter(|name| !own.contains(name))
            .chain(own)
            .cloned()
            .collect()
    }
}

/// Resolves `describe` or `probe`: a program that gets the variables, directory and limits of the tool's own command, if
/// there is one, and the tool's sandbox.
fn resolve_auxiliary_command(
    argv: &Spanned<Argv>,
    backing: Option<&Backing>,
    context: &mut ToolContext<'_>,
) -> Option<CommandBacking> {
    let base = match backing {
        Some(Backing::Command(command)) => command.clone(),
        _ => CommandBacking {
            env: context.programs.env.clone(),
            pass_env: context.programs.pass_env.clone(),
            cwd: context.programs.cwd.clone(),
            ..CommandBacking::default()
        },
    };
    let (program, arguments) =
        resolve_arguments(&argv.value, argv.key_span, &base.dashes, context)?;
    Some(CommandBacking {
        stdin: default_stdin(use_input(&arguments, &[])),
        program,
        arguments,
        success_exit: vec![0],
        stderr: StderrUse::default(),
        leftovers: Leftovers::Kill,
        sandbox: context.sandbox.clone(),
        wrapper: context.wrapper.clone(),
        ..base
    })
}

fn use_input(arguments: &[Template], env: &[(String, Template)]) -> bool {
    let variables = env.iter().map(|(_, template)| template);
    arguments.iter().chain(variables).any(Template::uses_input)
}

/// Resolves the working directory, which must be inside the root.
pub(crate) fn resolve_cwd(field: &Field<String>, context: &mut ToolContext<'_>) -> PathBuf {
    let root = &context.programs.root;
    let Some(cwd) = field.spanned() else {
        return context.programs.cwd.clone();
    };
    context.warn_about_tilde(cwd);
    let inside = is_inside(Path::new(&cwd.value), root);
    let is_constant = parse_template(&cwd.value).sole_text().is_some();
    if !is_constant {
        context.diagnostics.error(
            (cwd.span, "must be constant"),
            "`cwd` can't be a template",
            "write the directory out, or pass the value as an argument",
        );
    } else if !inside {
        context.diagnostics.error(
            (cwd.span, "outside"),
            "`cwd` leads out of the root",
            "write a directory inside `root`",
        );
    }
    root.join(&cwd.value).components().collect()
}

fn is_inside(cwd: &Path, root: &Path) -> bool {
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

fn resolve_success_exit(field: &Field<Vec<Field<i32>>>, context: &mut ToolContext<'_>) -> Vec<i32> {
    if field.is_missing() {
        return vec![0];
    }
    for code in field
        .items()
        .filter(|code| !(0..=255).contains(&code.value))
    {
        context.diagnostics.error(
            code.span,
            format!("{} isn't an exit code", code.value),
            "exit codes are 0 to 255",
        );
    }
    field.items().map(|code| code.value).collect()
}

// Resolves what a program reads from stdin, and checks that it can't be more than the file says.

/// Resolves what the program reads. Without a `stdin`, that is the input, unless a template already hands over some of
/// it: a program that doesn't expect the input on stdin could take it for something else.
fn resolve_stdin(
    field: &Field<String>,
    templates_use_input: bool,
    context: &mut ToolContext<'_>,
) -> StdinSource {
    match field.spanned() {
        None => default_stdin(templates_use_input),
        Some(word) if word.value == "input" => StdinSource::Input,
        Some(word) if word.value == "none" => StdinSource::None,
        Some(text) => StdinSource::Template(context.resolve_template(text, TemplatePolicy::TEXT)),
    }
}

/// Reports a program that runs what it reads from stdin: an error if the file doesn't say what that is.
fn report_stdin_code(argv: &Argv, stdin: &Field<String>, context: &mut ToolContext<'_>) {
    let texts: Vec<&str> = argv
        .iter()
        .map(|element| element.value().map_or("", String::as_str))
        .collect();
    let Some(program) = find_stdin_code_reader(&texts) else {
        return;
    };
    match stdin.spanned() {
        None => {
            let element = argv.iter().filter_map(Field::spanned);
            let element = element.into_iter().find(|element| element.value == program);
            if let Some(element) = element {
                context.diagnostics.error(
                    (element.span, "runs its stdin"),
                    format!("`{program}` runs what it reads from stdin, and the file doesn't say what that is"),
                    "name a script or write the code here; `stdin: \"{script}\"` hands over a value to be run, `stdin: none` nothing",
                );
            }
        }
        // Whatever the code is, a sandbox limits what it can do.
        Some(_) if context.sandbox.is_some() => {}
        Some(text) if text.value == "input" || parse_template(&text.value).uses_input() => {
            context.diagnostics.warning(
                (text.span, "an input value"),
                format!("`{program}` runs what it reads from stdin"),
                "this lets the model run any code; if that is meant, limit what the code can reach with a `sandbox`; if not, name a script and pass the value to it",
            );
        }
        Some(_) => {}
    }
}

/// Returns what a program reads if the file doesn't say.
fn default_stdin(templates_use_input: bool) -> StdinSource {
    if templates_use_input {
        StdinSource::None
    } else {
        StdinSource::Input
    }
}

/// Returns the command that prints the tool's schema, if the tool describes itself.
pub(crate) fn resolve_describe(
    field: &Field<Argv>,
    backing: Option<&Backing>,
    context: &mut ToolContext<'_>,
) -> Option<Box<DescribeCommand>> {
    let argv = field.spanned()?;
    // The command runs before any call, so its arguments can't contain values from an input.
    let empty_schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let sandbox = context.sandbox.as_ref().map(without_values);
    let mut context = ToolContext {
        why_no_input: Some("`describe` runs before any call, so there is no input yet"),
        sandbox,
        wrapper: context.wrapper.clone(),
        ..ToolContext::new(&empty_schema, context.programs, context.diagnostics)
    };
    let mut command = resolve_auxiliary_command(argv, backing, &mut context)?;
    command.stdin = StdinSource::None;
    // The same goes for variables, so those with a value from the input are left out.
    command.env.retain(|(_, template)| !template.uses_input());
    Some(Box::new(DescribeCommand {
        command,
        result: Arc::default(),
    }))
}

/// Returns the command that tells whether an interrupted call did its work. Only `write` tools need one: calls
/// of other tools simply run again.
pub(crate) fn resolve_probe(
    field: &Field<Argv>,
    effect: Effect,
    backing: Option<&Backing>,
    context: &mut ToolContext<'_>,
) -> Option<CommandBacking> {
    let argv = field.spanned()?;
    if effect != Effect::Write {
        context.diagnostics.warning(
            argv.key_span,
            format!(
                "this `probe` never runs: the tool's effect is `{}`",
                effect.name()
            ),
            "such a call simply runs again; remove the probe",
        );
    }
    resolve_auxiliary_command(argv, backing, context)
}
