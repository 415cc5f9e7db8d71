//! How the row of a call looks, according to its state.

/// The look of a row.
pub(super) struct RowLook {
    /// The class of the row, which decides about its color.
    pub(super) class: &'static str,
    /// A mark that doesn't need a color.
    pub(super) mark: &'static str,
}

impl RowLook {
    pub(super) fn new(class: &'static str, mark: &'static str) -> Self {
        Self { class, mark }
    }
}
