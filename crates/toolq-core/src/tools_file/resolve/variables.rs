//! The environment of a command as written → variables, none of which hands a value of the input the choice of what runs.

use crate::template::is_variable_name;
use crate::tools_file::keys::CommandFile;
use crate::tools_file::resolve::command::without_nul;
use crate::tools_file::resolve::context::Scope;
use crate::tools_file::resolve::placeholders::Sink;
use crate::types::{Span, Template};

const STEERING: Sink = Sink::WITH_VARIABLES.refusing(
    "a value of the input cannot be this variable, for it decides what programs run",
    "hand the value over by a variable of another name",
);

/// Variables that decide what a program loads, runs or finds.
const STEERING_NAMES: [&str; 25] = [
    "BASHOPTS",
    "CDPATH",
    "CLASSPATH",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "GLOBIGNORE",
    "HOSTALIASES",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "LESSOPEN",
    "LOCPATH",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PAGER",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "RUBYLIB",
    "RUBYOPT",
    "SHELLOPTS",
    "VISUAL",
];
/// The same for all names that begin so.
const STEERING_PREFIXES: [&str; 6] = ["BASH_", "DYLD_", "GIT_", "LD_", "PERL", "PYTHON"];

/// `env`: names are constant, and what decides what runs takes no value of the input.
pub(crate) fn given(file: &CommandFile, scope: &mut Scope<'_, '_>) -> Vec<(String, Template)> {
    let mut variables = Vec::new();
    for (name, value) in file.env.entries() {
        variable_name(name, value.key, scope);
        without_nul(value, scope);
        let steers = STEERING_NAMES.contains(&name)
            || STEERING_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix));
        let sink = if steers {
            STEERING
        } else {
            Sink::WITH_VARIABLES
        };
        scope.home(value);
        variables.push((name.to_owned(), scope.template(value, sink)));
    }
    variables
}

/// `pass_env`: names only.
pub(crate) fn passed(file: &CommandFile, scope: &mut Scope<'_, '_>) -> Vec<String> {
    let mut names = Vec::new();
    for name in file.pass_env.items() {
        variable_name(&name.value, name.span, scope);
        names.push(name.value.clone());
    }
    names
}

/// Reports what is no name, or a reserved one.
fn variable_name(name: &str, span: Span, scope: &mut Scope<'_, '_>) {
    if !is_variable_name(name) {
        scope.findings.error(
            span,
            format!("`{name}` is no name of an environment variable"),
            "letters, digits and `_` only",
            "names are constant; only values are templates",
        );
    } else if name.starts_with("TOOLQ_") {
        scope.findings.error(
            span,
            format!("`{name}` is reserved"),
            "toolq sets its own variables of this prefix",
            "use another name",
        );
    }
}
