//! `sandbox`: what a program can reach.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::template::{VariableMode, parse_with_marks};
use crate::tools_file::context::{Diagnostics, ToolContext};
use crate::tools_file::spanned::{Field, Spanned};
use crate::tools_file::templates::TemplatePolicy;
use crate::types::{MissingProtection, Sandbox, SandboxEntry, SandboxNetwork, Template};

/// What a program can reach, or `false`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "a table such as `{read: [root, system], network: none}`, or `false`"
)]
#[schemars(rename = "Sandbox", untagged)]
pub enum SandboxForm {
    /// `false`: the program isn't confined.
    Boolean(bool),
    /// What the program can reach.
    Table(Box<SandboxTable>),
}

/// What a program, and all that it starts, can reach.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct SandboxTable {
    /// Files, and directories with everything in them, that it may read and execute: paths, `root`, or `system`, which is
    /// what programs need to start. Default: `[root, system]`.
    pub read: Field<Vec<Field<String>>>,
    /// Files, and directories with everything in them, that it may also change: paths, or `root`. Default: none, besides
    /// a private temporary directory.
    pub write: Field<Vec<Field<String>>>,
    /// What it may reach over the network: `none` (the default), `all`, or a list of TCP ports.
    pub network: Field<NetworkForm>,
    /// What happens if the system can't do all of this: `refuse` (the default) or `warn`.
    pub missing: Field<MissingProtection>,
}

/// What a program may reach over the network.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "`none`, `all`, or a list of TCP ports such as `[443]`"
)]
#[schemars(rename = "Network", untagged)]
pub enum NetworkForm {
    /// Nothing or everything.
    Text(NetworkWord),
    /// TCP ports that it may connect to.
    List(Vec<Field<u16>>),
}

/// Nothing or everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkWord {
    /// Nothing.
    None,
    /// Everything.
    All,
}

/// Returns a sandbox, and what it leaves out from that below it.
pub(crate) fn layer_sandboxes(
    upper: &Spanned<SandboxForm>,
    lower: &Spanned<SandboxForm>,
) -> SandboxForm {
    let (SandboxForm::Table(above), SandboxForm::Table(below)) = (&upper.value, &lower.value)
    else {
        return upper.value.clone();
    };
    SandboxForm::Table(Box::new(SandboxTable {
        read: above.read.or(&below.read),
        write: above.write.or(&below.write),
        network: above.network.or(&below.network),
        missing: above.missing.or(&below.missing),
    }))
}

/// Checks the sandbox of a tool, whose paths may have values.
pub(crate) fn check_sandbox(field: &Field<SandboxForm>, context: &mut ToolContext<'_>) {
    let Some(table) = check_form(field, context.diagnostics) else {
        return;
    };
    for entry in table.read.items().chain(table.write.items()) {
        context.warn_about_tilde(entry);
        let template = context.resolve_template(entry, TemplatePolicy::SANDBOX_PATH);
        check_values(entry, &template, context);
    }
}

/// Checks a sandbox that isn't about one tool, so that its paths can't have values.
pub(crate) fn check_shared_sandbox(field: &Field<SandboxForm>, diagnostics: &mut Diagnostics) {
    let Some(table) = check_form(field, diagnostics) else {
        return;
    };
    for entry in table.read.items().chain(table.write.items()) {
        if parse_entry(&entry.value).uses_input() {
            diagnostics.error(
                entry.span,
                "only the `sandbox` of a tool can have values from its input",
                "write the path out here, or declare the sandbox with the tool",
            );
        }
    }
}

fn check_form<'f>(
    field: &'f Field<SandboxForm>,
    diagnostics: &mut Diagnostics,
) -> Option<&'f SandboxTable> {
    let form = field.spanned()?;
    match &form.value {
        SandboxForm::Boolean(false) => None,
        SandboxForm::Boolean(true) => {
            diagnostics.error(
                form.span,
                "`sandbox: true` doesn't say what the program can reach",
                "write `sandbox: {}` to let it read the root and what programs need, change nothing, and reach no network",
            );
            None
        }
        SandboxForm::Table(table) => {
            check_entries(table, diagnostics);
            Some(table)
        }
    }
}

fn check_entries(table: &SandboxTable, diagnostics: &mut Diagnostics) {
    for entry in table.read.items().chain(table.write.items()) {
        if entry.value.is_empty() {
            diagnostics.error(
                (entry.span, "empty"),
                "there is no path",
                "`root` is the working root",
            );
        }
        if entry.value.contains('\0') {
            diagnostics.error(
                entry.span,
                "a path can't contain a NUL character",
                "remove it",
            );
        }
    }
    for entry in table.write.items() {
        if entry.value == "system" || entry.value == "/" {
            diagnostics.warning(
                entry.span,
                "the program can change what other programs run",
                "list what it has to change",
            );
        }
    }
    if let Some(NetworkForm::List(ports)) = table.network.value() {
        for port in ports.iter().filter_map(Field::spanned) {
            if port.value == 0 {
                diagnostics.error(
                    (port.span, "1 to 65535"),
                    "0 isn't a port",
                    "`none` allows no port",
                );
            }
        }
    }
}

/// Reports values that `paths` doesn't keep in the root.
fn check_values(entry: &Spanned<String>, template: &Template, context: &mut ToolContext<'_>) {
    let is_unjudged = |path: &&[String]| !context.paths.iter().any(|declared| declared == path);
    let Some(unjudged) = template.value_paths().find(is_unjudged) else {
        return;
    };
    let name = unjudged.join(".");
    context.diagnostics.error(
        (entry.span, "not in `paths`"),
        format!("`{name}` could be any path: only inputs named in `paths` can be in a sandbox"),
        format!("add `paths: [{name}]` to the tool"),
    );
}

/// Returns the sandbox, with the defaults of keys that it leaves out.
pub(crate) fn resolve_sandbox(field: &Field<SandboxForm>) -> Option<Sandbox> {
    let SandboxForm::Table(table) = field.value()? else {
        return None;
    };
    let entries = |field: &Field<Vec<Field<String>>>| {
        field
            .items()
            .map(|entry| resolve_entry(&entry.value))
            .collect::<Vec<_>>()
    };
    Some(Sandbox {
        read: if table.read.is_missing() {
            vec![SandboxEntry::Root, SandboxEntry::System]
        } else {
            entries(&table.read)
        },
        write: entries(&table.write),
        network: match table.network.value() {
            None | Some(NetworkForm::Text(NetworkWord::None)) => SandboxNetwork::None,
            Some(NetworkForm::Text(NetworkWord::All)) => SandboxNetwork::All,
            Some(NetworkForm::List(ports)) => {
                let ports = ports.iter().filter_map(Field::value);
                SandboxNetwork::Ports(ports.copied().collect())
            }
        },
        missing: table.missing.copied().unwrap_or_default(),
        changes_only_root: false,
    })
}

/// Returns what of a sandbox holds for a program that runs before there is an input.
pub(crate) fn without_values(sandbox: &Sandbox) -> Sandbox {
    let has_no_values = |entry: &SandboxEntry| match entry {
        SandboxEntry::Path(template) => !template.uses_input(),
        SandboxEntry::Root | SandboxEntry::System => true,
    };
    let mut sandbox = sandbox.clone();
    sandbox.read.retain(has_no_values);
    sandbox.write.retain(has_no_values);
    sandbox
}

fn resolve_entry(text: &str) -> SandboxEntry {
    match text {
        "root" => SandboxEntry::Root,
        "system" => SandboxEntry::System,
        path => SandboxEntry::Path(parse_entry(path)),
    }
}

fn parse_entry(text: &str) -> Template {
    parse_with_marks(text, VariableMode::Expand).template
}
