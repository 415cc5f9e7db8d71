//! Fills a sandbox: the paths that a call may reach.

use crate::check::fill::template_values::{
    ProblemCollector, fill_template, find_value, problem_at, value_text,
};
use crate::json::{Input, JsonText};
use crate::template::TemplateTarget;
use crate::types::{
    PartialTemplate, ProblemDetail, Sandbox, SandboxEntry, SandboxInvocation, SandboxPlace, Segment,
};

/// Fills the paths of `sandbox`. A path whose optional value is missing is left out.
pub(crate) fn fill_sandbox(
    sandbox: &Sandbox,
    input: &Input,
    problems: &mut ProblemCollector,
) -> SandboxInvocation {
    let mut fill = |entries: &[SandboxEntry]| {
        let places = entries
            .iter()
            .filter_map(|entry| problems.record(fill_entry(entry, input)));
        places.flatten().collect()
    };
    SandboxInvocation {
        read: fill(&sandbox.read),
        write: fill(&sandbox.write),
        network: sandbox.network.clone(),
        missing: sandbox.missing,
        changes_only_root: sandbox.changes_only_root,
    }
}

fn fill_entry(
    entry: &SandboxEntry,
    input: &Input,
) -> Result<Option<Vec<SandboxPlace>>, ProblemDetail> {
    let template = match entry {
        SandboxEntry::Root => return Ok(Some(vec![SandboxPlace::Root])),
        SandboxEntry::System => return Ok(Some(vec![SandboxPlace::System])),
        SandboxEntry::Path(template) => template,
    };
    if let Some((path, optional)) = template.sole_splat() {
        return fill_spread(path, optional, input);
    }
    let filled = fill_template(template, input, TemplateTarget::Argument)?;
    let place = if template.uses_input() {
        SandboxPlace::FromInput
    } else {
        SandboxPlace::Declared
    };
    Ok(filled.map(|filled| vec![place(filled)]))
}

fn fill_spread(
    path: &[String],
    optional: bool,
    input: &Input,
) -> Result<Option<Vec<SandboxPlace>>, ProblemDetail> {
    let Some(array) = find_value(input, path, optional)? else {
        return Ok(None);
    };
    let items = JsonText::from(array).elements();
    let items = items.ok_or_else(|| problem_at(path, "must be an array"))?;
    let place = |item| {
        let text = TemplateTarget::Argument
            .encode(value_text(item))
            .map_err(|cause| problem_at(path, cause))?;
        let path = PartialTemplate(vec![Segment::Text(text)]);
        Ok(SandboxPlace::FromInput(path))
    };
    items
        .into_iter()
        .map(place)
        .collect::<Result<_, _>>()
        .map(Some)
}
