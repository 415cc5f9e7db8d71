//! Fills in what an agent's declaration takes from the environment.

use toolq_core::os::Environment;
use toolq_core::types::{Outcome, PartialTemplate, Template, TemplatePart};

/// Fills the templates of an agent with values from the environment.
pub(crate) struct EnvTemplates<'e>(pub(crate) &'e Environment);

impl EnvTemplates<'_> {
    /// Fills in the variables of a template whose input values have already been filled in.
    ///
    /// # Errors
    /// The outcome of the call, if a variable is missing.
    pub(crate) fn resolve_partial(&self, draft: &PartialTemplate) -> Result<String, Outcome> {
        let resolved = draft.resolve(&|name| self.0.get(name));
        resolved.map_err(Outcome::MissingVariable)
    }

    /// Fills in the variables of a template that has no input values.
    ///
    /// # Errors
    /// As [`Self::resolve_partial`].
    pub(crate) fn resolve(&self, template: &Template) -> Result<String, Outcome> {
        let segments = template.parts.iter().filter_map(TemplatePart::as_segment);
        self.resolve_partial(&PartialTemplate(segments.collect()))
    }

    /// Like [`Self::resolve`], for a template that may be left out.
    ///
    /// # Errors
    /// As [`Self::resolve_partial`].
    pub(crate) fn resolve_optional(
        &self,
        template: Option<&Template>,
    ) -> Result<Option<String>, Outcome> {
        template.map(|template| self.resolve(template)).transpose()
    }
}
