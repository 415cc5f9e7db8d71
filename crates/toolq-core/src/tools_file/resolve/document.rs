//! What was read of a tools.yaml. It may be resolved again once more is known of its servers, without being read again.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::tools_file::keys::ToolsFile;
use crate::tools_file::resolve::config::resolve_tools_file;
use crate::tools_file::resolve::context::CheckContext;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::source_map::SourceMap;
use crate::tools_file::spanned::Field;
use crate::tools_file::yaml::YamlNode;
use crate::tools_lock::LockUse;
use crate::types::{FileProblem, ToolsConfig};

/// The keys of a tools.yaml and of the files that it includes.
#[derive(Debug)]
pub(crate) struct ToolsDocument {
    pub(crate) file: Field<ToolsFile>,
    pub(crate) tree: YamlNode,
    pub(crate) sources: SourceMap,
    /// The directory of tools.yaml.
    pub(crate) dir: PathBuf,
    pub(crate) current_dir: PathBuf,
}

/// The tools of a document, and its problems in the order of the file.
pub(crate) struct ResolvedDocument {
    /// `None` if the structure of the file is wrong. If a problem is an error, they can't be used.
    pub(crate) tools: Option<ToolsConfig>,
    pub(crate) has_errors: bool,
    pub(crate) problems: Vec<FileProblem>,
}

impl ToolsDocument {
    /// Resolves the document. `problems` are those that are known already.
    pub(crate) fn resolve(
        self: &Arc<Self>,
        lock: LockUse<'_>,
        problems: Vec<FileProblem>,
    ) -> ResolvedDocument {
        let mut diagnostics = Diagnostics::new(&self.sources, problems);
        let tools = self.file.value().map(|file| {
            let mut context = CheckContext {
                tree: &self.tree,
                dir: &self.dir,
                schema_files: BTreeSet::new(),
                diagnostics: &mut diagnostics,
            };
            resolve_tools_file(file, lock, self, &mut context)
        });
        ResolvedDocument {
            tools,
            has_errors: diagnostics.has_errors(),
            problems: diagnostics.into_sorted(),
        }
    }
}
