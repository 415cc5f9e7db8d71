//! Something that is missing, who needs it, and what is said about it: for people, and at its place in tools.yaml.

use serde::Serialize;

use toolq_core::text::{escape, format_count, paint};
use toolq_core::tools_file::YamlNode;
use toolq_core::types::{FileProblem, Span};

/// What kind of thing is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequirementKind {
    /// A program that is started.
    Program,
    /// A file that an interpreter runs.
    Script,
    /// What the first line of a script names.
    Interpreter,
    /// An environment variable.
    Variable,
    /// A working directory, or the one of session logs.
    Directory,
    /// A file or directory in a `sandbox`.
    Path,
    /// A feature that only some kernels have.
    Kernel,
    /// An address that a server, an agent's API or a request needs.
    Address,
}

/// Something that this machine lacks.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MissingRequirement {
    pub(super) kind: RequirementKind,
    /// A program, path, variable or address. Never the value of a variable.
    pub(super) name: String,
    /// What is wrong, without a final period.
    pub(super) message: String,
    /// What to do about it.
    pub(super) hint: String,
    /// Whether calls run without it.
    pub(super) optional: bool,
    /// The key that asks for it in the tool or server, as a JSON pointer.
    #[serde(skip)]
    pub(super) part: &'static str,
}

impl MissingRequirement {
    pub(super) fn new(
        kind: RequirementKind,
        name: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            name: name.into(),
            message: message.into(),
            hint: hint.into(),
            optional: false,
            part: "",
        }
    }

    /// Calls run without it, too.
    pub(super) fn into_optional(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }

    /// Whether the same is to be said about both, wherever they are needed.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        (&self.message, &self.hint) == (&other.message, &other.hint)
    }
}

/// A tool or server, and what it lacks.
#[derive(Debug, Serialize)]
pub(crate) struct NeedsReport {
    pub(super) name: String,
    pub(super) missing: Vec<MissingRequirement>,
}

/// What was found on this machine.
#[derive(Debug)]
pub(crate) struct NeedsSurvey {
    /// What every call needs.
    pub(crate) machine: Vec<MissingRequirement>,
    pub(crate) tools: Vec<NeedsReport>,
    pub(crate) servers: Vec<NeedsReport>,
}

impl NeedsSurvey {
    /// Returns everything that is missing.
    pub(super) fn missing(&self) -> impl Iterator<Item = &MissingRequirement> {
        let named = self.tools.iter().chain(&self.servers);
        self.machine
            .iter()
            .chain(named.flat_map(|report| &report.missing))
    }

    /// Whether everything that calls can't run without is there.
    pub(crate) fn has_all(&self) -> bool {
        self.missing().all(|missing| missing.optional)
    }
}

// The report for people.

/// SGR codes of a line's first word.
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
/// The state of what lacks nothing.
const READY: &str = "ready";

/// Renders a line per tool and server, with what it lacks below it, then the notes unless `quiet`.
pub(crate) fn render_text(survey: &NeedsSurvey, color: bool, quiet: bool) -> String {
    let mut lines = Vec::new();
    if !survey.machine.is_empty() {
        lines.extend(render_needs("this machine", &survey.machine, READY, color));
    }
    let ready = if is_ready(&survey.machine) {
        READY
    } else {
        "ready once this machine is"
    };
    let render = |subject: &str, report: &NeedsReport| {
        let name = format!("{subject} {}", escape(&report.name));
        render_needs(&name, &report.missing, ready, color)
    };
    lines.extend(survey.tools.iter().flat_map(|tool| render("tool", tool)));
    let servers = survey.servers.iter();
    lines.extend(servers.flat_map(|server| render("server", server)));
    if lines.is_empty() {
        lines.push("no tools".to_owned());
    }
    if !quiet {
        lines.extend(render_notes(survey, color));
    }
    lines.join("\n")
}

fn is_ready(missing: &[MissingRequirement]) -> bool {
    missing.iter().all(|missing| missing.optional)
}

/// `ready` is the state of what lacks nothing.
fn render_needs(
    name: &str,
    missing: &[MissingRequirement],
    ready: &str,
    color: bool,
) -> Vec<String> {
    let painted = |code: &str, text: &str| paint(text, code, color);
    let state = if is_ready(missing) {
        painted(if ready == READY { GREEN } else { YELLOW }, ready)
    } else {
        painted(RED, "not ready")
    };
    let mut lines = vec![format!("{name}: {state}")];
    for missing in missing.iter().filter(|missing| !missing.optional) {
        let mark = painted(RED, "missing");
        lines.push(format!("  {mark}: {}", escape(&missing.message)));
        lines.push(format!("    {}", escape(&missing.hint)));
    }
    lines
}

/// Renders what is missing without stopping a call, each thing once, with all tools and servers that ask for it. Paths that the
/// same ones ask for share a note.
fn render_notes(survey: &NeedsSurvey, color: bool) -> Vec<String> {
    let mut found: Vec<(&MissingRequirement, Vec<&str>)> = Vec::new();
    for report in survey.tools.iter().chain(&survey.servers) {
        for missing in report.missing.iter().filter(|missing| missing.optional) {
            match found
                .iter_mut()
                .find(|(known, _)| known.is_same_as(missing))
            {
                Some((_, owners)) => owners.push(&report.name),
                None => found.push((missing, vec![&report.name])),
            }
        }
    }
    let shares = |one: &(&MissingRequirement, Vec<&str>),
                  other: &(&MissingRequirement, Vec<&str>)| {
        let is_path = one.0.kind == RequirementKind::Path && one.0.hint == other.0.hint;
        is_path && one.1 == other.1
    };
    let notes = found.chunk_by(shares).flat_map(|notes| {
        let (first, owners) = &notes[0];
        let more = notes[1..]
            .iter()
            .map(|(other, _)| format!(", {}", other.name));
        let message = format!("{}{}", first.message, more.collect::<String>());
        let owners = owners.join(", ");
        [
            format!(
                "{}: {} ({})",
                paint("note", YELLOW, color),
                escape(&message),
                escape(&owners)
            ),
            format!("  {}", escape(&first.hint)),
        ]
    });
    notes.collect()
}

/// Says how much is missing.
pub(crate) fn summarize(survey: &NeedsSurvey) -> String {
    match survey.missing().filter(|missing| !missing.optional).count() {
        0 => "nothing is missing".to_owned(),
        1 => "1 thing is missing".to_owned(),
        missing => format!("{} are missing", format_count(missing as u64, "thing")),
    }
}

// Turns what the machine lacks into warnings at the places in tools.yaml that need it.

/// The keys of a tool or server, such as `tools` and `search`.
type Owner<'a> = [&'a str; 2];

/// Returns warnings about what calls can't run without, as far as tools.yaml asks for it. `tree` provides the positions.
pub(crate) fn find_machine_warnings(survey: &NeedsSurvey, tree: &YamlNode) -> Vec<FileProblem> {
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
