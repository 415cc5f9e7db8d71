//! References from a schema to others, and the addresses that they resolve to.

use std::rc::Rc;

use url::Url;

use crate::json_schema::schema_error::SchemaError;
use crate::json_schema::subschemas::Subschema;

/// Keywords whose value is a reference.
pub(crate) const REFERENCE_KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// A reference and the schema that contains it.
#[derive(Clone, Copy)]
pub(crate) struct SchemaReference<'p, 'a> {
    pub(crate) subschema: &'p Subschema<'a>,
    pub(crate) keyword: &'static str,
    pub(crate) text: &'a str,
}

impl SchemaReference<'_, '_> {
    /// JSON pointer to the reference itself.
    pub(crate) fn pointer(&self) -> String {
        format!("{}/{}", self.subschema.pointer, self.keyword)
    }
}

/// Returns the references in `subschemas`.
pub(crate) fn find_references<'p, 'a>(
    subschemas: &'p [Subschema<'a>],
) -> impl Iterator<Item = SchemaReference<'p, 'a>> {
    subschemas.iter().flat_map(|subschema| {
        REFERENCE_KEYWORDS.into_iter().filter_map(move |keyword| {
            let text = subschema.schema.get(keyword)?.as_str()?;
            Some(SchemaReference {
                subschema,
                keyword,
                text,
            })
        })
    })
}

/// Returns the address of the document that `reference` points to.
pub(crate) fn resolve_target(base: &Rc<Url>, reference: &str) -> Result<Url, SchemaError> {
    let mut target = base.join(reference).map_err(|error| {
        SchemaError::new(
            "",
            format!("`{reference}` isn't a valid reference: {error}"),
        )
    })?;
    target.set_fragment(None);
    Ok(target)
}
