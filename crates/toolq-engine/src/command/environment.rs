//! The environment of a child: a few variables of toolq's own environment, those that the tool declares, and `TOOLQ_*`.

use std::ffi::{CString, NulError, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use crate::attempt::Attempt;
use toolq_core::os::Environment;
use toolq_core::types::{Call, CommandBacking, CommandInvocation, Outcome};

/// Variables that every child inherits, in addition to those whose names begin with `LC_`.
const INHERITED_VARIABLES: [&str; 5] = ["PATH", "HOME", "LANG", "TMPDIR", "TZ"];

/// The variables of a child. If a name is set twice, the last value counts.
#[derive(Debug, Default)]
pub(crate) struct ChildEnvironment(Vec<(OsString, OsString)>);

impl ChildEnvironment {
    fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        let (name, value) = (name.as_ref(), value.as_ref().to_owned());
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Tells the resolver to look names up over TCP, in addition to any other options of the resolver.
    pub(crate) fn add_dns_over_tcp(&mut self) {
        const VARIABLE: &str = "RES_OPTIONS";
        let options = self.0.iter().find(|(known, _)| known == VARIABLE);
        let mut options = options.map_or_else(OsString::new, |(_, options)| {
            let mut options = options.clone();
            options.push(" ");
            options
        });
        options.push("use-vc");
        self.set(VARIABLE, options);
    }

    /// Returns the variables as `NAME=value`.
    pub(crate) fn into_strings(self) -> Result<Vec<CString>, NulError> {
        let join = |(mut name, value): (OsString, OsString)| {
            name.push("=");
            name.push(value);
            CString::new(name.into_vec())
        };
        self.0.into_iter().map(join).collect()
    }
}

/// Builds the environment of a program.
///
/// # Errors
/// The outcome of the call that needs it, because a variable isn't set.
pub(crate) fn build_environment(
    environment: &Environment,
    backing: Option<&CommandBacking>,
    command: &CommandInvocation,
) -> Result<ChildEnvironment, Outcome> {
    let mut variables = ChildEnvironment(inherited_variables(environment));
    for name in backing.iter().flat_map(|backing| &backing.pass_env) {
        if let Some(value) = environment.get_os(name) {
            variables.set(name, value);
        }
    }
    for (name, template) in &command.env {
        let value = template.resolve(&|name| environment.get(name));
        variables.set(name, value.map_err(Outcome::MissingVariable)?);
    }
    Ok(variables)
}

/// Adds the variables that tell a program which call it serves.
pub(crate) fn add_call_variables(variables: &mut ChildEnvironment, call: &Call, attempt: &Attempt) {
    variables.set("TOOLQ_TOOL_NAME", call.name.replace('\0', "\u{FFFD}"));
    variables.set("TOOLQ_TOOL_USE_ID", call.id.replace('\0', "\u{FFFD}"));
    variables.set("TOOLQ_IDEMPOTENCY_KEY", &*attempt.idempotency_key);
    variables.set("TOOLQ_TURN", call.turn.to_string());
    variables.set("TOOLQ_ATTEMPT", attempt.number.to_string());
    variables.set("TOOLQ_STATUS_FD", "3");
    if let Some(trace) = &attempt.trace {
        variables.set("TRACEPARENT", &trace.traceparent);
        if let Some(state) = &trace.tracestate {
            variables.set("TRACESTATE", state);
        }
    }
}

fn inherited_variables(environment: &Environment) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsStr| {
        INHERITED_VARIABLES
            .iter()
            .any(|inherited| name == *inherited)
            || name.as_bytes().starts_with(b"LC_")
    };
    let variables = environment.iter().filter(|(name, _)| passes(name));
    variables
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
