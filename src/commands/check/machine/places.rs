//! Turns what the machine lacks into warnings at the places in tools.yaml that need it.

use crate::commands::check::machine::report::{MissingRequirement, NeedsSurvey, RequirementKind};
use toolq_core::tools_file::YamlNode;
use toolq_core::types::{FileProblem, Span};

/// The keys of a tool or server, such as `tools` and `search`.
type Owner<'a> = [&'a str; 2];

/// Returns warnings about what calls can't run without, as far as tools.yaml asks for it. `tree` provides the positions.
pub(in crate::commands::check) fn find_machine_warnings(
    survey: &NeedsSurvey,
    tree: &YamlNode,
) -> Vec<FileProblem> {
    let root = survey
        .machine
        .iter()
        .find(|missing| missing.part == "/root");
    let root = root.map(|missing| warning(missing, tree.span_at(&["root"], "")));
    let mut found = Vec::from_iter(root);
    let mut variables: Vec<(&MissingRequirement, Vec<Owner<'_>>)> = Vec::new();
    for (owner, missing) in owned_requirements(survey) {
        if missing.kind == RequirementKind::Variable {
            match variables
                .iter_mut()
                .find(|(known, _)| known.is_same_as(missing))
            {
                Some((_, owners)) => owners.push(owner),
                None => variables.push((missing, vec![owner])),
            }
        } else if let Some(span) = find_place(missing, owner, tree) {
            let warning = warning(missing, span);
            // What `defaults` ask for may be missing from many tools.
            if !found.contains(&warning) {
                found.push(warning);
            }
        }
    }
    let variables = variables.into_iter();
    found.extend(variables.map(|(missing, owners)| variable_warning(missing, &owners, tree)));
    found
}

/// Returns what each tool and server can't run without.
fn owned_requirements(
    survey: &NeedsSurvey,
) -> impl Iterator<Item = (Owner<'_>, &MissingRequirement)> {
    let tools = survey.tools.iter().map(|tool| ("tools", tool));
    let servers = survey.servers.iter().map(|server| ("servers", server));
    tools.chain(servers).flat_map(|(section, report)| {
        let needed = report.missing.iter().filter(|missing| !missing.optional);
        needed.map(move |missing| ([section, report.name.as_str()], missing))
    })
}

fn warning(missing: &MissingRequirement, span: Span) -> FileProblem {
    FileProblem::warning(span, &missing.message, "").with_hint(&missing.hint)
}

/// Warns about a variable at its first owner.
fn variable_warning(
    missing: &MissingRequirement,
    owners: &[Owner<'_>],
    tree: &YamlNode,
) -> FileProblem {
    let message = match owners.len() - 1 {
        0 => missing.message.clone(),
        more => format!("{} (needed by {more} more)", missing.message),
    };
    FileProblem {
        message,
        label: "needs it".to_owned(),
        ..warning(missing, tree.span_at(&owners[0], missing.part))
    }
}

/// Returns the place that asks for something other than a variable. Nothing says that an address has to answer now.
fn find_place(missing: &MissingRequirement, owner: Owner<'_>, tree: &YamlNode) -> Option<Span> {
    let part = missing.part;
    let setting = |name: &str| find_setting(name, part, owner, tree);
    match missing.kind {
        RequirementKind::Program | RequirementKind::Script | RequirementKind::Interpreter => {
            let at = |element: &str| tree.span_at(&owner, &format!("{part}{element}"));
            Some(at("/argv/0").max(at("/0")))
        }
        RequirementKind::Directory => Some(setting("cwd")),
        RequirementKind::Kernel | RequirementKind::Path => Some(setting("sandbox")),
        RequirementKind::Variable | RequirementKind::Address => None,
    }
}

/// Returns the place of a setting of a program: beside it, in its tool or server, or in `defaults`. If it is nowhere there,
/// returns that of the tool or server.
fn find_setting(name: &str, part: &str, owner: Owner<'_>, tree: &YamlNode) -> Span {
    let candidates: [(&[&str], &str); 3] = [(&owner, part), (&owner, ""), (&["defaults"], "")];
    let mut written = candidates.into_iter().filter_map(|(keys, above)| {
        let span = tree.span_at(keys, &format!("{above}/{name}"));
        (span != tree.span_at(keys, above)).then_some(span)
    });
    written
        .next()
        .unwrap_or_else(|| tree.key_span_at(&owner, ""))
}
