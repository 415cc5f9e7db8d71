//! Resolves what `defaults` says about every program: those of commands, servers, `describe` and `probe`.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::tools_file::keys::Defaults;
use crate::tools_file::resolve::command::resolve_cwd;
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::env_variables;
use crate::tools_file::resolve::wrapper::resolve_wrapper;
use crate::types::{CommandWrapper, Template};

/// What a program gets if its own keys don't say otherwise.
#[derive(Debug, Default)]
pub(crate) struct CommandDefaults {
    pub(crate) env: Vec<(String, Template)>,
    pub(crate) pass_env: Vec<String>,
    /// Absolute.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) wrapper: Option<CommandWrapper>,
}

impl CommandDefaults {
    /// Resolves the keys. Nothing in them can depend on the input of a call.
    pub(crate) fn resolve(
        defaults: &Defaults,
        root: &Path,
        diagnostics: &mut Diagnostics<'_>,
    ) -> Self {
        // Accepts any name, so that a placeholder is reported for what it is.
        let any_input = json!({"type": "object"});
        let no_defaults = Self::default();
        let mut context = ToolContext {
            schema: &any_input,
            why_no_input: None,
            root,
            paths: Vec::new(),
            has_no_paths: false,
            sandbox: None,
            command_defaults: &no_defaults,
            wrapper: None,
            diagnostics,
        };
        Self {
            env: env_variables::resolve_default_env(&defaults.env, &mut context),
            pass_env: env_variables::resolve_pass_env(&defaults.pass_env, &mut context),
            cwd: resolve_cwd(&defaults.cwd, &mut context),
            wrapper: resolve_wrapper(&defaults.wrapper, None, &mut context),
        }
    }

    /// Adds the variables that a program doesn't set or pass itself.
    pub(crate) fn add_env(
        &self,
        own: Vec<(String, Template)>,
        own_pass_env: &[String],
    ) -> Vec<(String, Template)> {
        let is_own = |name: &String| {
            own.iter().any(|(known, _)| known == name) || own_pass_env.contains(name)
        };
        let added = self.env.iter().filter(|(name, _)| !is_own(name)).cloned();
        let mut env: Vec<_> = added.collect();
        env.extend(own);
        env
    }

    /// Adds the names of the variables that are passed to every program.
    pub(crate) fn add_pass_env(&self, own: &[String]) -> Vec<String> {
        let added = self.pass_env.iter().filter(|name| !own.contains(name));
        added.chain(own).cloned().collect()
    }
}
