//! Runs calls on a copy that isn't at the original's path. Only calls whose paths toolq knows can do that.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use toolq_core::check::CallChecker;
use toolq_core::types::{
    AcceptedCall, Backing, CheckedCall, CommandInvocation, Invocation, PartialTemplate, Segment,
    StdinContent, Template, TemplatePart, Tool, ToolsConfig, Turn, Verdict,
};

/// The tools as they work on the copy.
pub struct Relocation {
    original: PathBuf,
    tools: Arc<ToolsConfig>,
    checker: CallChecker,
}

impl Relocation {
    /// Moves the root and the working directories of `tools` into `copy`, and their temporary files into `scratch`.
    pub fn new(tools: &ToolsConfig, copy: &Path, scratch: &Path) -> Self {
        let original = tools.root.clone();
        let moved = |tool: &Arc<Tool>| {
            let mut tool = Tool::clone(tool);
            if let Some(Backing::Command(command)) = &mut tool.backing
                && let Ok(below) = command.cwd.strip_prefix(&original)
            {
                command.cwd = copy.join(below);
            }
            if let Some(Backing::Command(command)) = &mut tool.backing
                && command.env.iter().all(|(name, _)| name != "TMPDIR")
            {
                let text = TemplatePart::Text(scratch.to_string_lossy().into_owned());
                let template = Template { parts: vec![text] };
                command.env.push(("TMPDIR".to_owned(), template));
            }
            Arc::new(tool)
        };
        let tools = Arc::new(ToolsConfig {
            tools: tools.tools.iter().map(moved).collect(),
            root: copy.to_owned(),
            ..tools.clone()
        });
        Self {
            original,
            checker: CallChecker::new(Arc::clone(&tools)),
            tools,
        }
    }

    /// Returns the moved tools.
    pub fn tools(&self) -> &Arc<ToolsConfig> {
        &self.tools
    }

    /// Returns the calls of a turn that can run on the copy. Their paths are checked against the copy.
    pub(crate) fn relocate(&self, turn: Turn) -> Vec<CheckedCall> {
        let checked = self.checker.check_turn(turn);
        let is_confined = |checked: &CheckedCall| match &checked.verdict {
            Verdict::Accepted(accepted) => self.stays_in_copy(accepted),
            Verdict::Rejected(_) => false,
        };
        checked.into_iter().filter(is_confined).collect()
    }

    /// Returns whether all paths of a call are among its tool's `paths`, as far as its input and its command show.
    fn stays_in_copy(&self, accepted: &AcceptedCall) -> bool {
        let Some(Invocation::Command(command)) = &accepted.invocation else {
            return false;
        };
        let paths = &accepted.tool.paths;
        let mut input = accepted.input.to_value();
        for path in paths {
            take_value(&mut input, path);
        }
        !paths.is_empty()
            && !has_path(&input)
            && !self.may_name_original(command, accepted.input.text())
            && !passes_variables(&accepted.tool)
    }

    /// Returns whether the original's path is in what a program gets, or may be in a part that only the environment knows.
    fn may_name_original(&self, command: &CommandInvocation, input: &str) -> bool {
        let original = self.original.to_string_lossy();
        let stdin = match &command.stdin {
            StdinContent::Text(text) => text,
            StdinContent::Input | StdinContent::None => "",
        };
        let is_named = command
            .argv
            .iter()
            .chain([stdin, input])
            .any(|text| text.contains(&*original));
        let mut variables = command.env.iter().map(|(_, value)| literal_text(value));
        is_named || variables.any(|text| text.is_none_or(|text| text.contains(&*original)))
    }
}

/// Returns the text of a template, or `None` if a part of it is a variable of the environment.
fn literal_text(template: &PartialTemplate) -> Option<String> {
    let literal = |segment: &Segment| match segment {
        Segment::Text(text) => Some(text.clone()),
        Segment::Env { .. } => None,
    };
    template.0.iter().map(literal).collect()
}

/// Returns whether a tool names variables that its program inherits, whose values may be paths.
fn passes_variables(tool: &Tool) -> bool {
    matches!(&tool.backing, Some(Backing::Command(command)) if !command.pass_env.is_empty())
}

/// Removes the value at `path`, also from each element of a list.
fn take_value(value: &mut Value, path: &[String]) {
    let Some((name, rest)) = path.split_first() else {
        *value = Value::Null;
        return;
    };
    match value {
        Value::Object(members) => {
            if let Some(member) = members.get_mut(name) {
                take_value(member, rest);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                take_value(element, path);
            }
        }
        _ => {}
    }
}

/// Returns whether a text anywhere in a value looks like a path that leads out of the working directory.
fn has_path(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let is_one_line = !text.contains('\n');
            let climbs = text.split('/').any(|part| part == "..");
            is_one_line && (text.starts_with(['/', '~']) || climbs)
        }
        Value::Array(elements) => elements.iter().any(has_path),
        Value::Object(members) => members.values().any(has_path),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;

    #[test]
    fn a_path_outside_of_the_declared_ones_is_noticed() {
        let found = |input: Value, paths: &[&str]| {
            let mut input = input;
            for path in paths {
                let path: Vec<String> = path.split('.').map(str::to_owned).collect();
                take_value(&mut input, &path);
            }
            has_path(&input)
        };
        assert!(!found(json!({"path": "/a", "text": "x / y"}), &["path"]));
        assert!(!found(json!({"f": [{"path": "/a"}]}), &["f.path"]));
        assert!(!found(
            json!({"path": "a", "text": "/usr is\na text"}),
            &["path"]
        ));
        assert!(found(json!({"path": "a", "to": "/b"}), &["path"]));
        assert!(found(json!({"path": "a", "to": ["x/../../b"]}), &["path"]));
        assert!(found(json!({"path": "a", "to": {"dir": "~/b"}}), &["path"]));
    }
}
