//! What is at hand while a file, or one of its tools, is resolved.

use std::path::Path;

use serde_json::Value;

use crate::json_schema::{schema_faults, strays};
use crate::tools_file::resolve::diagnostics::Findings;
use crate::tools_file::yaml::Node;
use crate::types::Problem;

/// What checking a file needs everywhere.
pub(crate) struct Checks<'c, 't> {
    pub(crate) tree: &'c Node,
    pub(crate) dir: &'c Path,
    pub(crate) findings: &'c mut Findings<'t>,
}

impl Checks<'_, '_> {
    /// Reports every fault of the schema that stands behind `keys` in the file; whether it has none.
    pub(crate) fn schema(&mut self, schema: &Value, keys: &[&str]) -> bool {
        let faults = schema_faults(schema, self.dir);
        let holds = faults.is_empty();
        for fault in faults {
            let span = self.tree.place(keys, &fault.pointer);
            let problem = Problem::error(span, fault.message, "in this schema");
            self.findings.push(match fault.hint {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            });
        }
        holds
    }

    /// Warns of keys in the same schema that are almost keywords. Others are notes, as JSON Schema has it: vendors write
    /// many.
    pub(crate) fn misspelled(&mut self, schema: &Value, keys: &[&str]) {
        for stray in strays(schema, self.dir) {
            if let Some(meant) = stray.meant {
                self.findings.warning(
                    self.tree.key_place(keys, &stray.pointer),
                    format!(
                        "`{}` is no keyword of JSON Schema, so it checks nothing",
                        stray.key
                    ),
                    "ignored",
                    format!("did you mean `{meant}`?"),
                );
            }
        }
    }
}

/// What resolving one tool needs everywhere.
pub(crate) struct Scope<'c, 't> {
    pub(crate) schema: &'c Value,
    pub(crate) root: &'c Path,
    pub(crate) findings: &'c mut Findings<'t>,
}
