//! Loads tools.yaml together with the tools that the host announces.

use std::sync::Arc;

use serde::Serialize;

use crate::context::{CommandContext, LoadedToolsFile};
use crate::output::CommandError;
use crate::session::RunSession;
use redact::Mask;
use toolq_core::check::CallChecker;
use toolq_core::text::escape;
use toolq_core::tools_file::HostToolDeclarations;
use toolq_core::types::{
    DescribeCommand, DescribeResult, Severity, Tool, ToolsChange, ToolsConfig, UnlockedServer,
};
use toolq_engine::check_machine;

/// Why tools can't be loaded.
pub(crate) struct LoadFailure {
    /// The message for people. If tools.yaml is wrong, its problems were printed.
    pub(super) error: CommandError,
    /// What is wrong, for the host. Without secrets.
    pub(super) problems: Vec<ToolsProblem>,
    /// Nothing is wrong with tools.yaml.
    pub(super) is_of_host: bool,
}

/// What is wrong with a tool, and where.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct ToolsProblem {
    /// The keys that lead to it, from the name of the tool on, if it came from the host.
    pub(super) at: Option<Vec<String>>,
    /// The path of the file, otherwise, and the line.
    pub(super) file: Option<String>,
    pub(super) line: Option<usize>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl From<CommandError> for LoadFailure {
    fn from(error: CommandError) -> Self {
        Self {
            error,
            problems: Vec::new(),
            is_of_host: false,
        }
    }
}

/// Loads tools.yaml and adds the tools of the host. `consequence` ends the message if it can't be used.
///
/// # Errors
/// The file can't be read, or one of the two has errors.
pub(super) fn load_tools(
    context: &CommandContext,
    host_tools: Option<&HostToolDeclarations>,
    consequence: &str,
) -> Result<ToolsConfig, LoadFailure> {
    let file = context.read_tools_file_with_host(host_tools)?;
    if file.loaded.tools.is_some() {
        let (tools, file) = context.require_tools(file, consequence)?;
        context.warn_about_root(&tools, &file);
        return Ok(tools);
    }
    let mut problems = problems_of_file(&file);
    let is_of_host = problems.is_empty();
    problems.extend(problems_of_host(&file, host_tools));
    let error = if is_of_host {
        CommandError::usage("the tools of the host can't be used")
    } else {
        match context.require_tools(file, consequence) {
            Ok((tools, _)) => return Ok(tools),
            Err(error) => error,
        }
    };
    Err(LoadFailure {
        error,
        problems,
        is_of_host,
    })
}

fn problems_of_file(file: &LoadedToolsFile) -> Vec<ToolsProblem> {
    let sources = &file.loaded.sources;
    let errors = file.loaded.problems.iter().filter(|problem| {
        problem.severity == Severity::Error && !sources.is_from_host(problem.span)
    });
    let located = errors.map(|problem| ToolsProblem {
        at: None,
        file: Some(file.path_of(problem.span).display().to_string()),
        line: Some(sources.locate(problem.span).line()),
        message: file.mask.apply(&problem.message).into_owned(),
        hint: mask_hint(problem.hint.as_deref(), &file.mask),
    });
    located.collect()
}

fn problems_of_host(
    file: &LoadedToolsFile,
    host_tools: Option<&HostToolDeclarations>,
) -> Vec<ToolsProblem> {
    let errors = host_tools.map(|tools| tools.find_errors(&file.loaded));
    let located = errors.unwrap_or_default().into_iter().map(|problem| {
        let at = problem
            .at
            .iter()
            .map(|key| file.mask.apply(key).into_owned());
        ToolsProblem {
            at: Some(at.collect()),
            file: None,
            line: None,
            message: file.mask.apply(&problem.message).into_owned(),
            hint: mask_hint(problem.hint.as_deref(), &file.mask),
        }
    });
    located.collect()
}

fn mask_hint(hint: Option<&str>, mask: &Mask) -> Option<String> {
    hint.map(|hint| mask.apply(hint).into_owned())
}

impl LoadFailure {
    /// Returns one sentence that names the first problem.
    pub(super) fn summary(&self) -> String {
        let Some(first) = self.problems.first() else {
            return self.error.message.clone();
        };
        let place = match (&first.at, &first.file, first.line) {
            (Some(at), ..) if !at.is_empty() => format!("{}: ", at.join("/")),
            (_, Some(file), Some(line)) => format!("{file}, line {line}: "),
            _ => String::new(),
        };
        format!("{}: {place}{}", self.error.message, first.message)
    }
}

// The tools that the turns of a host are checked with, and how they change.

/// The error of a tool that came with a reload and whose `describe` program would have to run in the middle of a session.
const NOT_DESCRIBED: &str =
    "the tool came with a reload; it describes itself when toolq is started again";

/// The tools of tools.yaml and of the host.
pub(super) struct ToolsInUse<'a> {
    context: &'a CommandContext,
    host_tools: Option<HostToolDeclarations>,
    mask: Arc<Mask>,
    tools: Arc<ToolsConfig>,
    /// Whether the command line says how many calls run at once.
    has_fixed_jobs: bool,
    checker: CallChecker,
}

impl<'a> ToolsInUse<'a> {
    /// Begins with the tools of a session.
    pub(super) fn new(
        session: &RunSession<'a>,
        host_tools: Option<HostToolDeclarations>,
        has_fixed_jobs: bool,
    ) -> Self {
        let tools = &session.setup.tools;
        Self {
            context: session.context,
            host_tools,
            mask: Arc::clone(&session.setup.mask),
            tools: Arc::clone(tools),
            has_fixed_jobs,
            checker: CallChecker::new(Arc::clone(tools)),
        }
    }

    pub(super) fn tools(&self) -> &Arc<ToolsConfig> {
        &self.tools
    }

    pub(super) fn checker(&self) -> &CallChecker {
        &self.checker
    }

    /// Reads tools.yaml again. What the host has announced stays. Calls that were checked before run as they were checked.
    ///
    /// # Errors
    /// Why the tools stay as they were.
    pub(super) fn reload(&mut self) -> Result<ToolsChange, LoadFailure> {
        let path = &self.context.tools_path;
        if path.as_os_str() == "-" {
            let message = "the tools file came from stdin, so it can't be read again";
            return Err(CommandError::usage(message).into());
        }
        let mut tools = load_tools(self.context, self.host_tools.as_ref(), "")?;
        self.admit(&mut tools)?;
        // A `describe` program would have to run in between, while calls wait.
        for tool in tools.tools.iter().filter(|tool| tool.describe.is_some()) {
            if let Some(describe) = tool.describe.as_ref().filter(|_| tool.needs_describe()) {
                // Nothing else describes it.
                let _ = describe
                    .result
                    .set(DescribeResult::Err(NOT_DESCRIBED.to_owned()));
            }
        }
        self.tools = Arc::new(tools);
        self.checker = CallChecker::new(Arc::clone(&self.tools));
        Ok(ToolsChange {
            path: path.display().to_string(),
            tools: Arc::clone(&self.tools),
        })
    }

    /// Checks that `tools` can come into force, and lets what tools and servers have said about themselves hold on.
    ///
    /// # Errors
    /// What is fixed when the session begins has changed, or the processes of a tool couldn't be ended.
    fn admit(&self, tools: &mut ToolsConfig) -> Result<(), CommandError> {
        self.require_same_setting(tools)?;
        check_machine(tools)?;
        for tool in &mut tools.tools {
            self.keep_description(tool);
        }
        for server in &tools.unlocked {
            self.keep_listing(server);
        }
        Ok(())
    }

    /// # Errors
    /// What is fixed when the session begins has changed.
    fn require_same_setting(&self, tools: &ToolsConfig) -> Result<(), CommandError> {
        let refuse = |what: &str| {
            let message = format!("{what} can't change while toolq runs");
            Err(CommandError::usage(message).with_hint("start it again"))
        };
        if tools.root != self.tools.root {
            return refuse("`root`");
        }
        if !self.has_fixed_jobs && tools.concurrency != self.tools.concurrency {
            return refuse("`concurrency`");
        }
        if tools.env_file != self.tools.env_file {
            return refuse("what `env_file` says");
        }
        // What was masked at the start stays masked, and nothing else is.
        let is_new_secret = |name: &&String| {
            let value = self.context.environment.get_os(name.as_str());
            let value = value.unwrap_or_default().to_string_lossy();
            let value = value.trim();
            value.len() >= Mask::MIN_SECRET_BYTES && self.mask.apply(value) == value
        };
        match tools.secrets.iter().find(is_new_secret) {
            Some(name) => refuse(&format!("what is secret ({name} is new)")),
            None => Ok(()),
        }
    }

    /// Lets what a server has announced hold on, if it would be reached as before. It isn't asked, since calls wait.
    fn keep_listing(&self, server: &UnlockedServer) {
        let mut old = self.tools.unlocked.iter();
        let old = old.find(|old| old.server.is_same_as(&server.server));
        match old.and_then(|old| old.listing()) {
            Some(Ok(listing)) => {
                server.set_announced(Ok((listing.lock.clone(), Vec::new())));
            }
            Some(Err(why)) => server.set_announced(Err(why.to_owned())),
            None => {
                let warning = format!(
                    "the tools of the server {} aren't served until toolq is started again: it isn't locked",
                    server.server.name
                );
                self.context.stderr.print_warning(&warning);
            }
        }
        if let Some(Err(why)) = server.listing() {
            let warning = format!(
                "the tools of the server {} aren't served: {}",
                server.server.name,
                escape(why)
            );
            self.context.stderr.print_warning(&warning);
        }
    }

    /// Gives a tool the description that it gave itself before, if the same program would be asked.
    fn keep_description(&self, tool: &mut Arc<Tool>) {
        let command = |describe: &DescribeCommand| format!("{:?}", describe.command);
        let old = self.tools.get(&tool.name);
        let old = old.and_then(|old| old.describe.as_deref());
        if let (Some(old), Some(new)) = (old, tool.describe.as_deref())
            && command(old) == command(new)
        {
            let described = Box::new(old.clone());
            Arc::make_mut(tool).describe = Some(described);
        }
    }
}
