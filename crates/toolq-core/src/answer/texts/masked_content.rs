//! Masks the secrets in a result.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::types::ResultContent;
use redact::Mask;

/// Returns the content without secrets. A block that isn't JSON any more without them is left out.
pub(crate) fn mask_content(content: ResultContent, mask: &Mask) -> ResultContent {
    match content {
        ResultContent::Text(text) => ResultContent::Text(match mask.apply(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(masked) => masked,
        }),
        ResultContent::Blocks(blocks) => ResultContent::Blocks(
            blocks
                .into_iter()
                .filter_map(|block| mask_block(block, mask))
                .collect(),
        ),
    }
}

/// Masks a block; drops it if the masked text is no longer JSON.
fn mask_block(block: Box<RawValue>, mask: &Mask) -> Option<Box<RawValue>> {
    match mask.apply(block.get()) {
        Cow::Borrowed(_) => Some(block),
        Cow::Owned(masked) => RawValue::from_string(masked).ok(),
    }
}
