//! A JSON body: values are put into the tree, never into its text.

use serde_json::value::{RawValue, to_raw_value};

use crate::check::fill::values::{draft, found};
use crate::json::Input;
use crate::template::Sink;
use crate::types::{BodyTemplate, Detail, Draft, JsonDraft, Part, Template};

/// The body; none where it is left out.
pub(crate) fn filled(template: &BodyTemplate, input: &Input) -> Result<Option<JsonDraft>, Detail> {
    Ok(Some(match template {
        BodyTemplate::Literal(value) => match to_raw_value(value) {
            Ok(raw) => JsonDraft::Raw(raw),
            Err(_) => return Ok(None),
        },
        BodyTemplate::Template(template) => return string(template, input),
        BodyTemplate::Array(items) => {
            let items = items
                .iter()
                .filter_map(|item| filled(item, input).transpose());
            JsonDraft::Array(items.collect::<Result<_, _>>()?)
        }
        BodyTemplate::Object(pairs) => {
            let pairs = pairs.iter().filter_map(|(key, value)| {
                let value = filled(value, input).transpose()?;
                Some(value.map(|value| (key.clone(), value)))
            });
            JsonDraft::Object(pairs.collect::<Result<_, _>>()?)
        }
    }))
}

/// A template that is one placeholder keeps its value, digits and all; any other is a string.
fn string(template: &Template, input: &Input) -> Result<Option<JsonDraft>, Detail> {
    if let [Part::Value { path, optional, .. }] = template.parts.as_slice() {
        let value = match input.at(path) {
            Some(null) if null.get() == "null" => Some(null),
            _ => found(input, path, *optional)?,
        };
        return Ok(value.map(|raw| JsonDraft::Raw(RawValue::to_owned(raw))));
    }
    let text: Option<Draft> = draft(template, input, Sink::Text)?;
    Ok(text.map(JsonDraft::Text))
}
