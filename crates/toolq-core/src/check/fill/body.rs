//! Fills a JSON body. Values are inserted into the tree, never into its text.

use serde_json::value::{RawValue, to_raw_value};

use crate::check::fill::template_values::{fill_template, find_value};
use crate::json::Input;
use crate::template::TemplateTarget;
use crate::types::{
    BodyTemplate, PartialJson, PartialTemplate, ProblemDetail, Template, TemplatePart,
};

/// Returns the filled body; `None` if it is omitted.
pub(crate) fn fill_body(
    template: &BodyTemplate,
    input: &Input,
) -> Result<Option<PartialJson>, ProblemDetail> {
    Ok(Some(match template {
        BodyTemplate::Literal(value) => match to_raw_value(value) {
            Ok(raw) => PartialJson::Raw(raw.into()),
            Err(_) => return Ok(None),
        },
        BodyTemplate::Template(template) => return fill_string(template, input),
        BodyTemplate::Array(items) => {
            let items = items
                .iter()
                .filter_map(|item| fill_body(item, input).transpose());
            PartialJson::Array(items.collect::<Result<_, _>>()?)
        }
        BodyTemplate::Object(pairs) => {
            let pairs = pairs.iter().filter_map(|(key, value)| {
                let value = fill_body(value, input).transpose()?;
                Some(value.map(|value| (key.clone(), value)))
            });
            PartialJson::Object(pairs.collect::<Result<_, _>>()?)
        }
    }))
}

/// Fills a string. A template that is a single placeholder keeps the value's type and digits; any other becomes a
/// string.
fn fill_string(template: &Template, input: &Input) -> Result<Option<PartialJson>, ProblemDetail> {
    if let [TemplatePart::Value { path, optional, .. }] = template.parts.as_slice() {
        let value = match input.value_at(path) {
            Some(null) if null.get() == "null" => Some(null),
            _ => find_value(input, path, *optional)?,
        };
        return Ok(value.map(|raw| PartialJson::Raw(RawValue::to_owned(raw).into())));
    }
    let text: Option<PartialTemplate> = fill_template(template, input, TemplateTarget::Text)?;
    Ok(text.map(PartialJson::Text))
}
