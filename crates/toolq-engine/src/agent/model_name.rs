//! Model names as reported by APIs.

use redact::Mask;
use toolq_core::text::truncate_to_columns;

/// The maximum width of a model name, in terminal columns.
const MAX_MODEL_NAME_CHARS: usize = 100;

/// Masks and truncates a model name that an API reported, since it could be anything.
pub(crate) fn mask_model_name(model: &str, mask: &Mask) -> String {
    truncate_to_columns(&mask.apply(model), MAX_MODEL_NAME_CHARS).into_owned()
}
