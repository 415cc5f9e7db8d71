//! Writes the body of a request as its content type wants it: as JSON, as a form, or as the text that it is.

use reqwest::header::HeaderMap;
use toolq_core::json::JsonText;
use toolq_core::os::Environment;
use toolq_core::types::{FORM_MEDIA_TYPE, Outcome, PartialJson};
use url::form_urlencoded;

use crate::http::response_headers::media_type;
use crate::partial_values::resolve_json;

/// Returns the body. Where the content type isn't one of JSON, a string is sent without its quotes; where it is that of
/// forms, an object is sent as one.
///
/// # Errors
/// The outcome of the call, because a variable isn't set.
pub(crate) fn resolve_body(
    body: &PartialJson,
    headers: &HeaderMap,
    environment: &Environment,
) -> Result<String, Outcome> {
    let json = resolve_json(body, environment)?;
    let media_type = media_type(headers).unwrap_or_default();
    let is_json =
        matches!(&*media_type, "application/json" | "text/json") || media_type.ends_with("+json");
    let value = JsonText::new(&json);
    Ok(match (value.to_text(), value.object()) {
        (Some(text), _) if !is_json => text.into_owned(),
        (_, Some(object)) if media_type == FORM_MEDIA_TYPE => {
            let mut form = form_urlencoded::Serializer::new(String::new());
            for (name, value) in object.members() {
                if !value.is_null() {
                    let text = value.to_text();
                    form.append_pair(name, &text.unwrap_or_else(|| value.get().into()));
                }
            }
            form.finish()
        }
        _ => json,
    })
}
