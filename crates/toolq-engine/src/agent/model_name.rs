use redact::Mask;
use toolq_core::text::cut;

/// Characters of a model's name that are kept.
const NAME: usize = 100;

/// A model as its API calls it, which may be anything.
pub(crate) fn named(model: &str, mask: &Mask) -> String {
    cut(&mask.text(model), NAME).into_owned()
}
