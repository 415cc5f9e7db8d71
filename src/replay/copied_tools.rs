//! The tools as they work on a copy of `root`: in the copy, and each program in a sandbox that lets it change nothing else.
//!
//! Recordings are full of absolute paths. So where an input names the original, a program gets the path of the copy, and
//! where a result names the copy, it is compared as if it named the original.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use toolq_core::check::CallChecker;
use toolq_core::json::Input;
use toolq_core::types::{
    Backing, Call, CallAnswer, CheckedCall, CommandBacking, Leftovers, MissingProtection,
    ResultContent, Sandbox, SandboxEntry, SandboxNetwork, Template, Tool, ToolsConfig, Turn,
    Verdict,
};

/// The tools of a tools.yaml, with a copy in place of `root`.
pub struct CopiedTools {
    tools: Arc<ToolsConfig>,
    checker: CallChecker,
    /// The path of the original, as tools.yaml has it and without links.
    original: [String; 2],
    copy: String,
}

impl CopiedTools {
    /// Moves the root and the working directories of `tools` to `copy`, and confines their programs to it.
    pub fn new(tools: &ToolsConfig, copy: &Path) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let canonical = tools.root.canonicalize();
        let original = [
            text(canonical.as_ref().unwrap_or(&tools.root)),
            text(&tools.root),
        ];
        let moved = |path: &Path| moved_path(path, &tools.root, copy);
        let copied_tool = |tool: &Arc<Tool>| {
            let mut tool = Tool::clone(tool);
            let command = match &mut tool.backing {
                Some(Backing::Command(command)) => Some(command),
                _ => None,
            };
            let describe = tool.describe.as_mut().map(|describe| &mut describe.command);
            for command in command.into_iter().chain(describe).chain(&mut tool.probe) {
                command.cwd = moved(&command.cwd);
                confine(command);
            }
            Arc::new(tool)
        };
        let tools = Arc::new(ToolsConfig {
            tools: tools.tools.iter().map(copied_tool).collect(),
            root: copy.to_owned(),
            dir: moved(&tools.dir),
            ..tools.clone()
        });
        Self {
            checker: CallChecker::new(Arc::clone(&tools)),
            tools,
            original,
            copy: text(copy),
        }
    }

    /// Returns the tools that work on the copy.
    pub fn tools(&self) -> &Arc<ToolsConfig> {
        &self.tools
    }

    /// Returns the calls of a turn as they run on the copy, without those that can't.
    pub(crate) fn check_turn(&self, turn: Turn) -> Vec<CheckedCall> {
        let calls = turn.calls.into_iter().map(|call| self.call_on_copy(call));
        let turn = Turn {
            calls: calls.collect(),
            ..turn
        };
        let mut checked = self.checker.check_turn(turn);
        checked.retain(|checked| matches!(checked.verdict, Verdict::Accepted(_)));
        checked
    }

    fn call_on_copy(&self, mut call: Call) -> Call {
        if let Ok(input) = &call.input {
            let copy = json_text(&self.copy);
            let text = self
                .original
                .iter()
                .fold(input.text().to_owned(), |text, original| {
                    replace_path(&text, &json_text(original), &copy)
                });
            // It can only fail for an input that becomes too long with the other path.
            call.input = Input::parse(&text).or(call.input);
        }
        call
    }

    /// Makes an answer name the original where it names the copy.
    pub(crate) fn restore_paths(&self, answer: &mut CallAnswer) {
        let [_, original] = &self.original;
        match &mut answer.content {
            ResultContent::Text(text) => *text = replace_path(text, &self.copy, original),
            ResultContent::Blocks(blocks) => {
                let (copy, original) = (json_text(&self.copy), json_text(original));
                for block in blocks {
                    let text = replace_path(block.get(), &copy, &original);
                    if let Ok(restored) = RawValue::from_string(text) {
                        *block = restored;
                    }
                }
            }
        }
    }
}

/// Lets a program change nothing but the copy, and no more of it than the tool's own sandbox allows. What it leaves running
/// is killed, because the copy is removed.
fn confine(command: &mut CommandBacking) {
    let sandbox = command.sandbox.get_or_insert_with(|| Sandbox {
        read: vec![
            SandboxEntry::Path(Template::from_text("/")),
            SandboxEntry::System,
        ],
        write: vec![SandboxEntry::Root],
        ..Sandbox::default()
    });
    sandbox
        .write
        .retain(|entry| !matches!(entry, SandboxEntry::System));
    sandbox.changes_only_root = true;
    sandbox.network = SandboxNetwork::None;
    sandbox.missing = MissingProtection::Refuse;
    command.leftovers = Leftovers::Kill;
}

/// Returns where a path below the original is in the copy. Other paths stay.
fn moved_path(path: &Path, original: &Path, copy: &Path) -> PathBuf {
    match path.strip_prefix(original) {
        Ok(below) => copy.join(below),
        Err(_) => path.to_owned(),
    }
}

/// Replaces a directory's path where it stands by itself: `/a/b` in `x=/a/b/c`, but not in `/a/bc` or `/0/a/b`.
fn replace_path(text: &str, from: &str, to: &str) -> String {
    let is_part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(from) {
        // A full stop behind a path isn't part of its name.
        let follows_name = after.trim_start_matches('.').starts_with(is_part_of_name);
        let stands_alone = !before.ends_with(is_part_of_name) && !follows_name;
        replaced.push_str(before);
        replaced.push_str(if stands_alone { to } else { from });
        rest = after;
    }
    replaced + rest
}

/// Returns a text as it stands in a string of JSON.
fn json_text(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_path_is_replaced() {
        let replaced = |text| replace_path(text, "/a/b", "/copy");
        for (text, expected) in [
            ("/a/b", "/copy"),
            ("cat /a/b/c '/a/b'; x=/a/b", "cat /copy/c '/copy'; x=/copy"),
            ("it is in /a/b.", "it is in /copy."),
            ("/a/bc /a/b-c /a/b.c /0/a/b", "/a/bc /a/b-c /a/b.c /0/a/b"),
            ("", ""),
        ] {
            assert_eq!(replaced(text), expected);
        }
    }
}
