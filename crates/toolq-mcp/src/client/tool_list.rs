//! Collects the pages of `tools/list`.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::client::event::ToolList;
use crate::client::handshake::RequestMeta;
use crate::tool::Tool;

/// A list of more pages is taken for one that doesn't end.
const MAX_PAGES: usize = 1_000;
/// More tools of a server are left out: no model could choose among them, and each takes a few kilobytes.
const MAX_TOOLS: usize = 10_000;
/// How long the name of a tool may be.
const MAX_NAME_CHARS: usize = 128;
/// How long the pages may be together, as long as one message may be.
const MAX_LIST_BYTES: usize = 64 << 20;

/// The pages that have come.
#[derive(Debug, Default)]
pub(crate) struct ToolListPages {
    list: ToolList,
    names: HashSet<String>,
    /// Number of tools beyond [`MAX_TOOLS`].
    omitted: usize,
    pages: usize,
    bytes: usize,
    cursors: HashSet<String>,
}

/// What to do after a page.
#[derive(Debug)]
pub(crate) enum NextPage {
    /// Ask for the page at this cursor. An empty one is valid.
    Ask(String),
    /// The list is complete.
    Done(ToolList),
}

#[derive(Serialize)]
pub(crate) struct ListToolsParams<'a> {
    #[serde(rename = "_meta", skip_serializing_if = "RequestMeta::is_empty")]
    pub(crate) meta: RequestMeta<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cursor: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListToolsResult<'t> {
    /// Some languages write an empty list as `null`.
    #[serde(borrow)]
    tools: Option<Vec<&'t RawValue>>,
    next_cursor: Option<&'t RawValue>,
}

#[derive(Deserialize)]
struct ToolName {
    name: String,
}

pub(crate) fn unreadable_list(reason: &dyn fmt::Display) -> String {
    format!("the server's list of tools can't be read: {reason}")
}

impl ToolListPages {
    /// Takes a page.
    pub(crate) fn add(&mut self, page: &RawValue) -> Result<NextPage, String> {
        self.bytes += page.get().len();
        if self.bytes > MAX_LIST_BYTES {
            return Err("the server's list of tools has more than 64 MiB".to_owned());
        }
        let page: ListToolsResult<'_> =
            serde_json::from_str(page.get()).map_err(|error| unreadable_list(&error))?;
        for definition in page.tools.unwrap_or_default() {
            self.add_tool(definition);
        }
        self.pages += 1;
        let cursor = page.next_cursor;
        let cursor = cursor.map(|cursor| serde_json::from_str::<String>(cursor.get()));
        match cursor.transpose() {
            Err(_) => {
                let problem = "the cursor of its next page isn't a text, so it may have more tools";
                self.list.problems.push(problem.to_owned());
                Ok(NextPage::Done(self.take_list()))
            }
            Ok(Some(_)) if self.pages == MAX_PAGES => Err(format!(
                "the server's list of tools has over {MAX_PAGES} pages"
            )),
            Ok(Some(cursor)) if self.cursors.insert(cursor.clone()) => Ok(NextPage::Ask(cursor)),
            Ok(next) => {
                if next.is_some() {
                    let problem = "the list repeats its pages, and may have more tools";
                    self.list.problems.push(problem.to_owned());
                }
                Ok(NextPage::Done(self.take_list()))
            }
        }
    }

    fn take_list(&mut self) -> ToolList {
        let mut list = std::mem::take(&mut self.list);
        if self.omitted > 0 {
            let problem = format!(
                "it has more than {MAX_TOOLS} tools: {} are left out",
                self.omitted
            );
            list.problems.push(problem);
        }
        list
    }

    /// Adds a tool. One that can't be used is left out alone.
    fn add_tool(&mut self, definition: &RawValue) {
        if self.list.tools.len() + self.list.problems.len() >= MAX_TOOLS {
            self.omitted += 1;
            return;
        }
        let tool: Tool = match serde_json::from_str(definition.get()) {
            Ok(tool) => tool,
            Err(error) => {
                // The position is relative to the definition, which is never shown on its own.
                let error = error.to_string();
                let reason = error.split(" at line ").next().unwrap_or_default();
                let name = serde_json::from_str(definition.get())
                    .map_or_else(|_| "without a name".to_owned(), |tool: ToolName| tool.name);
                self.leave_out(&name, reason);
                return;
            }
        };
        if tool.name.is_empty() || tool.name.chars().count() > MAX_NAME_CHARS {
            let reason = format!("its name must have 1 to {MAX_NAME_CHARS} characters");
            self.leave_out(&tool.name, &reason);
        } else if tool.requires_task() {
            self.leave_out(&tool.name, "it can only be called as a task");
        } else if self.names.insert(tool.name.clone()) {
            self.list.tools.push(tool);
        } else if !self.has(&tool) {
            self.leave_out(&tool.name, "another tool has its name");
        }
    }

    /// Returns whether the list has the same definition already.
    fn has(&self, tool: &Tool) -> bool {
        let text = |tool: &Tool| serde_json::to_string(tool).unwrap_or_default();
        let mut tools = self.list.tools.iter();
        let known = tools.find(|known| known.name == tool.name);
        known.is_some_and(|known| text(known) == text(tool))
    }

    fn leave_out(&mut self, name: &str, reason: &str) {
        let name: String = name.chars().take(MAX_NAME_CHARS).collect();
        self.list
            .problems
            .push(format!("the tool {name} is left out: {reason}"));
    }
}
