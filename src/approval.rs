//! Who approves the calls of a session, as the flags say.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::OwnedMutexGuard;
use tokio::task;

use crate::args::ApprovalSettings;
use crate::output::CommandError;
use crate::plan_file::PlannedCalls;
use crate::settings::LogTarget;
use crate::terminal::ProgressScreen;
use redact::Mask;
use toolq_core::os::{Clock, Environment};
use toolq_core::plan::{render_invocation, render_sandbox};
use toolq_core::text::escape;
use toolq_core::types::{Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest};
use toolq_engine::{ApprovalFuture, ApprovalPrompt, ApprovalReply, Approver, PriorApprovals};
use toolq_log::memory::{Decided, decide_call, waiting_calls};

/// Calls that the user has named by their ids.
#[derive(Debug)]
struct NamedCalls {
    ids: Vec<String>,
    user: Option<String>,
}

/// Says yes to the calls that a flag names as `toolq approvals` lists them, in the memory of `log`, as `toolq approvals approve` does.
/// Returns the settings with the other names: those of calls that haven't asked yet.
pub(crate) fn approve_waiting(
    settings: ApprovalSettings,
    log: &LogTarget,
    environment: &Environment,
) -> ApprovalSettings {
    let ApprovalSettings::Calls(mut ids) = settings else {
        return settings;
    };
    let Some(place) = log.memory(environment).ok().flatten() else {
        return ApprovalSettings::Calls(ids);
    };
    let waiting = waiting_calls(&place, log.path().unwrap_or(Path::new("")));
    let yes = Decided {
        approved: true,
        reason: None,
        user: user_name(environment),
        timestamp: Clock::system().now_ms(),
    };
    for call in waiting.unwrap_or_default() {
        let is_named = ids.contains(&call.handle);
        let is_approved = call.decision == Some(ApprovalDecision::Yes);
        // A name that can't be approved stays, so that the run says it named no call.
        if is_named && (is_approved || decide_call(&place, &call, &yes).is_ok()) {
            ids.retain(|id| *id != call.handle);
        }
    }
    ApprovalSettings::Calls(ids)
}

impl PriorApprovals for NamedCalls {
    fn approval_of(&self, request: &ApprovalRequest) -> Option<Approval> {
        let call = &request.call;
        // The ids of an agent's calls are chosen by its model.
        let is_named = call.parent.is_none() && self.ids.contains(&call.tool_use_id);
        is_named.then(|| Approval {
            decision: ApprovalDecision::Yes,
            means: ApprovalMeans::Named,
            reason: None,
            user: self.user.clone(),
        })
    }
}

/// Returns the approver of calls, or `None` if neither the settings nor a plan names one.
///
/// # Errors
/// A person should be asked, and there is no terminal.
pub fn build_approver(
    settings: &ApprovalSettings,
    plan: Option<&Arc<PlannedCalls>>,
    mask: &Arc<Mask>,
    screen: Option<ProgressScreen>,
    environment: &Environment,
) -> Result<Option<Approver>, CommandError> {
    let named = build_named_approver(settings, mask, screen, environment)?;
    let Some(plan) = plan else { return Ok(named) };
    Ok(Some(Approver::Planned {
        approvals: Arc::clone(plan) as Arc<_>,
        otherwise: named.map(Box::new),
    }))
}

/// Returns who approves calls, as the flags about approvals say.
fn build_named_approver(
    settings: &ApprovalSettings,
    mask: &Arc<Mask>,
    screen: Option<ProgressScreen>,
    environment: &Environment,
) -> Result<Option<Approver>, CommandError> {
    let user = || user_name(environment);
    Ok(match settings {
        ApprovalSettings::Nobody => None,
        ApprovalSettings::All => Some(Approver::All { user: user() }),
        ApprovalSettings::Calls(ids) => Some(Approver::Planned {
            approvals: Arc::new(NamedCalls {
                ids: ids.clone(),
                user: user(),
            }),
            otherwise: None,
        }),
        ApprovalSettings::Program(program) => {
            check_program_name(program, environment)?;
            Some(Approver::Program(program.clone()))
        }
        ApprovalSettings::Prompt(prompt) => Some(Approver::Person(Arc::clone(prompt))),
        ApprovalSettings::Terminal => {
            let prompt = TerminalPrompt::open(Arc::clone(mask), screen, user()).map_err(|error| {
                let message = format!("there is no terminal to ask on: {error}");
                CommandError::usage(message)
                    .with_hint("`--approve-with PROGRAM` asks a program, and `--approve all` approves all calls")
            })?;
            Some(Approver::Person(Arc::new(prompt)))
        }
    })
}

/// Checks that a name without a slash is in PATH: a program that is only looked for at the first question would stop the run
/// in the middle.
///
/// # Errors
/// It isn't.
fn check_program_name(program: &Path, environment: &Environment) -> Result<(), CommandError> {
    let name = program.display();
    let path = environment.get_os("PATH").unwrap_or_default();
    let mut dirs = std::env::split_paths(path);
    if name.to_string().contains('/') || dirs.any(|dir| dir.join(program).is_file()) {
        return Ok(());
    }
    let failure = CommandError::usage(format!(
        "the approval program {name} isn't in PATH; nothing ran"
    ));
    Err(if program.is_file() {
        failure.with_hint(format!(
            "for the one in the current directory, write `./{name}`"
        ))
    } else {
        failure
    })
}

/// Returns the name of the user who runs toolq, for the log.
pub fn user_name(environment: &Environment) -> Option<String> {
    let mut names = ["LOGNAME", "USER"].into_iter();
    names.find_map(|name| environment.get(name).filter(|user| !user.is_empty()))
}

// Asks on the terminal whether a call may start, one question after another. A question that isn't needed anymore is
// withdrawn.

/// The controlling terminal, even if stdin and stderr are redirected.
const TERMINAL: &str = "/dev/tty";

/// Asks a person on the terminal.
#[derive(derive_more::Debug)]
#[debug("TerminalPrompt")]
struct TerminalPrompt {
    terminal: Arc<File>,
    mask: Arc<Mask>,
    screen: Option<ProgressScreen>,
    user: Option<String>,
    /// Tools all of whose calls were approved.
    approved_tools: Mutex<HashSet<String>>,
    /// Held from a question to the end of reading its reply: agents ask at the same time, and what is typed must never
    /// reach the question of another call.
    turn_to_ask: Arc<tokio::sync::Mutex<()>>,
}

impl TerminalPrompt {
    /// Opens the terminal.
    ///
    /// # Errors
    /// toolq has no terminal.
    pub(crate) fn open(
        mask: Arc<Mask>,
        screen: Option<ProgressScreen>,
        user: Option<String>,
    ) -> io::Result<Self> {
        let terminal = File::options().read(true).write(true).open(TERMINAL)?;
        Ok(Self {
            terminal: Arc::new(terminal),
            mask,
            screen,
            user,
            approved_tools: Mutex::default(),
            turn_to_ask: Arc::default(),
        })
    }

    async fn ask_person(&self, request: &ApprovalRequest) -> ApprovalReply {
        let tool = &request.accepted.tool.name;
        let turn = Arc::clone(&self.turn_to_ask).lock_owned().await;
        if self.approved_tools.lock().contains(tool) {
            return self.decided(ApprovalDecision::Yes, None);
        }
        let question = render_question(request, &self.mask);
        let hidden = HiddenScreen::hide(self.screen.as_ref());
        let typed = self.ask_until_known(question, turn).await;
        drop(hidden);
        match typed {
            Ok(TypedReply::Yes) => self.decided(ApprovalDecision::Yes, None),
            Ok(TypedReply::AllOfTool) => {
                self.approved_tools.lock().insert(tool.clone());
                self.decided(ApprovalDecision::Yes, None)
            }
            Ok(TypedReply::No(reason)) => self.decided(ApprovalDecision::No, reason),
            Ok(TypedReply::Quit | TypedReply::Unknown) => {
                ApprovalReply::Stopped("you quit at the question".to_owned())
            }
            Err(error) => ApprovalReply::Stopped(format!("the terminal can't be read: {error}")),
        }
    }

    fn decided(&self, decision: ApprovalDecision, reason: Option<String>) -> ApprovalReply {
        ApprovalReply::Decided(Approval {
            decision,
            means: ApprovalMeans::Terminal,
            reason,
            user: self.user.clone(),
        })
    }

    /// Asks until the reply is understood. Dropping the future withdraws the question.
    async fn ask_until_known(
        &self,
        question: String,
        turn: OwnedMutexGuard<()>,
    ) -> io::Result<TypedReply> {
        let mut withdrawal = Withdrawal {
            is_withdrawn: Arc::default(),
            terminal: Arc::clone(&self.terminal),
            has_reply: false,
        };
        let is_withdrawn = Arc::clone(&withdrawal.is_withdrawn);
        let terminal = Arc::clone(&self.terminal);
        let reading = task::spawn_blocking(move || -> io::Result<Option<TypedReply>> {
            // A withdrawn question is still read for a moment.
            let _turn = turn;
            discard_typed_ahead(&terminal);
            (&*terminal).write_all(question.as_bytes())?;
            loop {
                let Some(line) = read_line(&terminal, &is_withdrawn)? else {
                    return Ok(None);
                };
                match TypedReply::parse(&line) {
                    TypedReply::Unknown => (&*terminal).write_all(b"  y, n, a or q? ")?,
                    typed => return Ok(Some(typed)),
                }
            }
        });
        let typed = reading.await.map_err(io::Error::other)??;
        withdrawal.has_reply = typed.is_some();
        Ok(typed.unwrap_or(TypedReply::Quit))
    }
}

impl ApprovalPrompt for TerminalPrompt {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> ApprovalFuture<'a> {
        Box::pin(self.ask_person(request))
    }
}

/// Keeps the progress off the terminal until it is dropped, also if the question is withdrawn.
struct HiddenScreen<'s>(Option<&'s ProgressScreen>);

impl<'s> HiddenScreen<'s> {
    fn hide(screen: Option<&'s ProgressScreen>) -> Self {
        if let Some(screen) = screen {
            screen.hide();
        }
        Self(screen)
    }
}

impl Drop for HiddenScreen<'_> {
    fn drop(&mut self) {
        if let Some(screen) = self.0 {
            screen.show();
        }
    }
}

/// When dropped, tells the thread that reads the terminal that its question was withdrawn. If the question has no reply,
/// also ends its line, so that later output begins on a new one.
struct Withdrawal {
    is_withdrawn: Arc<AtomicBool>,
    terminal: Arc<File>,
    /// Whether the user has replied, which ended the line.
    has_reply: bool,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        self.is_withdrawn.store(true, Ordering::Relaxed);
        if !self.has_reply {
            // A terminal that is gone needs no line break.
            let _ = (&*self.terminal).write_all(b"\n");
        }
    }
}

// Writes the question whether a call may start. It shows the whole input and all that would run, with every control
// character escaped: the call was written by a model, and must not be able to hide a part of itself.

/// The deepest indentation of a line of an input.
const MAX_INPUT_INDENT: usize = 20;

/// Renders what a person reads. Everything that comes from the model or tools.yaml is escaped.
fn render_question(request: &ApprovalRequest, mask: &Mask) -> String {
    let ApprovalRequest { call, accepted } = request;
    let shown = |text: &str| escape(&mask.apply(text)).into_owned();
    let tool = shown(&accepted.tool.name);
    let runs = render_invocation(accepted, mask);
    let sandbox = render_sandbox(accepted, mask);
    let sandbox = sandbox.map_or_else(String::new, |sandbox| format!("\n  {sandbox}"));
    let agent = call.parent.as_ref().map_or_else(String::new, |agent| {
        format!(", for the agent {}", shown(&agent.tool_name))
    });
    format!(
        "\napprove {tool} ({effect}), call {id} of turn {turn}{agent}?\n  input: {input}\n  runs:  {runs}{sandbox}\n\
         [y]es, [n]o (`n REASON` tells the model why), [a]ll calls of {tool}, [q]uit the run: ",
        effect = accepted.tool.effect.name(),
        id = shown(&call.tool_use_id),
        turn = call.turn,
        input = shown_lines(&mask.apply(accepted.input.text())),
        runs = runs
            .as_deref()
            .unwrap_or("nothing: the tool has no backing"),
    )
}

/// Renders an input with the line breaks that the model put between its values: a JSON string can't contain raw ones. Empty
/// lines are left out, and the others are indented below the first, so that no line can pass for one of the question.
fn shown_lines(input: &str) -> String {
    let lines = input.lines().filter(|line| !line.trim().is_empty());
    let lines = lines.map(|line| {
        let line = line.trim_end();
        let indent = line.len() - line.trim_start().len();
        let indent = indent.min(MAX_INPUT_INDENT);
        format!("{:indent$}{}", "", escape(line.trim_start()))
    });
    lines.collect::<Vec<_>>().join("\n         ")
}

// Reads what a person types in reply to a question, and understands only what is clear.

/// How often a pending question checks whether it was withdrawn.
const WITHDRAWAL_CHECK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// The longest line that is read. No typed reply needs more.
const MAX_LINE_BYTES: usize = 4 << 10;

/// What a person typed.
#[derive(Debug, PartialEq, Eq)]
enum TypedReply {
    Yes,
    AllOfTool,
    No(Option<String>),
    Quit,
    Unknown,
}

impl TypedReply {
    pub(crate) fn parse(line: &str) -> Self {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let reason = rest.trim();
        match word.to_ascii_lowercase().as_str() {
            "n" | "no" => Self::No((!reason.is_empty()).then(|| reason.to_owned())),
            _ if !reason.is_empty() => Self::Unknown,
            "y" | "yes" => Self::Yes,
            "a" | "all" => Self::AllOfTool,
            "q" | "quit" => Self::Quit,
            _ => Self::Unknown,
        }
    }
}

/// Discards what was typed before the question was there: it can't be the reply.
fn discard_typed_ahead(terminal: &File) {
    let _ = tcflush(terminal, QueueSelector::IFlush);
}

/// Reads a line. `None` if the terminal was closed or the question was withdrawn.
///
/// # Errors
/// The terminal can't be read.
fn read_line(terminal: &File, is_withdrawn: &AtomicBool) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    while !is_withdrawn.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(terminal, PollFlags::IN)];
        if poll(&mut ready, Some(&WITHDRAWAL_CHECK))? == 0 {
            continue;
        }
        let mut byte = [0];
        if (&*terminal).read(&mut byte)? == 0 {
            return Ok(None);
        }
        match byte[0] {
            b'\n' => return Ok(Some(String::from_utf8_lossy(&line).into_owned())),
            byte if line.len() < MAX_LINE_BYTES => line.push(byte),
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No line of an input looks like one of the question, and nothing is pushed off the screen.
    #[test]
    fn an_input_has_its_lines_and_nothing_hidden() {
        let shown = |input| shown_lines(input);
        assert_eq!(shown(r#"{"to": "EUR"}"#), r#"{"to": "EUR"}"#);
        assert_eq!(
            shown("{\r\n  \"to\": \"EUR\",\n\n\n\t\"n\": 1\n}"),
            "{\n           \"to\": \"EUR\",\n          \"n\": 1\n         }"
        );
        let far = format!("{{\n{}\"n\": \u{1b}[2J}}", " ".repeat(500));
        assert_eq!(
            shown(&far),
            format!("{{\n{}\"n\": \\x1b[2J}}", " ".repeat(29))
        );
    }

    /// Only an unambiguous reply counts. After any other, the question is repeated.
    #[test]
    fn only_clear_words_are_replies() {
        let no = |reason: Option<&str>| TypedReply::No(reason.map(str::to_owned));
        for (line, expected) in [
            ("y", TypedReply::Yes),
            (" YES ", TypedReply::Yes),
            ("a", TypedReply::AllOfTool),
            ("q", TypedReply::Quit),
            ("n", no(None)),
            ("no too much money", no(Some("too much money"))),
            ("", TypedReply::Unknown),
            ("yes, but", TypedReply::Unknown),
            ("y n", TypedReply::Unknown),
            ("yup", TypedReply::Unknown),
        ] {
            assert_eq!(TypedReply::parse(line), expected, "{line:?}");
        }
    }
}
