//! `toolq approvals`: what waits for an approval, and what people decide about it.

use std::env;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::approval::user_name;
use crate::args::LogFormat;
use crate::commands::log::resolve::load_mask;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, stdout};
use crate::settings::LogTarget;
use toolq_core::os::Clock;
use toolq_core::text::{escape, format_count, format_time, truncate_to_columns};
use toolq_core::types::ApprovalDecision;
use toolq_log::memory::{Decided, Made, RememberedIn, WaitingCall, decide_call, waiting_calls};
use toolq_log::{Access, LogError};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ApprovalsArguments {
    /// The log of the runs, if they had `--log`.
    #[arg(
        help = "The log of the runs, if they had `--log` [env: TOOLQ_LOG_FILE] [default: the memory of all runs without `--log`]",
        long,
        value_name = "FILE",
        global = true,
        value_hint = ValueHint::FilePath
    )]
    pub log: Option<PathBuf>,
    /// Output format of the list
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true)]
    pub format: LogFormat,
    #[command(subcommand)]
    pub command: Option<ApprovalsCommand>,
}

const EXAMPLES: &str = "\
Examples:
  toolq approvals                            list what waits for an approval
  toolq approvals approve toolu_07           let this call run when its input is run again
  toolq approvals deny toolu_07 --reason 'not on Fridays'
                                             refuse it";

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the calls that wait for an approval
    List,
    /// Let calls run when their input is run again
    Approve {
        /// The calls, as the list names them
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
    /// Refuse calls
    Deny {
        /// The calls, as the list names them
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Why, for the model and for the log
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        reason: Option<String>,
    },
}

/// How much of an input is repeated when its call was decided about, in columns.
const MAX_INPUT_COLUMNS: usize = 100;

/// A call that waits, for programs.
#[derive(Serialize)]
struct WaitingJson<'a> {
    id: &'a str,
    tool_use_id: &'a str,
    tool_name: &'a str,
    input: Option<&'a RawValue>,
    /// In milliseconds since 1970.
    asked: Option<u64>,
    log: &'a Path,
    directory: &'a str,
}

impl<'a> WaitingJson<'a> {
    fn new(call: &'a WaitingCall) -> Self {
        let input = call.input.as_deref();
        Self {
            id: &call.id,
            tool_use_id: &call.tool_use_id,
            tool_name: &call.tool,
            input: input.and_then(|input| serde_json::from_str(input).ok()),
            asked: call.asked_ms,
            log: &call.log,
            directory: &call.directory,
        }
    }
}

/// Lists the calls that wait, or records decisions about some.
///
/// # Errors
/// An id matches no call that waits, somebody has decided about it, or the memory can't be used.
pub fn run_approvals_command(
    arguments: &ApprovalsArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let log_error = |error: LogError| error.for_command(Access::Read);
    let target = LogTarget::new(arguments.log.clone(), &context.environment);
    let log = target.path().unwrap_or(Path::new(""));
    let place = target.memory(&context.environment).map_err(log_error)?;
    let place = place.unwrap_or_else(|| RememberedIn::log(log));
    let mut waiting = waiting_calls(&place, log).map_err(log_error)?;
    // Who has said no may say yes after all, and the other way round.
    let turned = match &arguments.command {
        None | Some(ApprovalsCommand::List) => None,
        Some(ApprovalsCommand::Approve { .. }) => Some(ApprovalDecision::No),
        Some(ApprovalsCommand::Deny { .. }) => Some(ApprovalDecision::Yes),
    };
    waiting.retain(|call| call.decision.is_none() || call.decision == turned);
    let (ids, approved, reason) = match &arguments.command {
        None | Some(ApprovalsCommand::List) => return print_list(&waiting, arguments, context),
        Some(ApprovalsCommand::Approve { ids }) => (ids, true, None),
        Some(ApprovalsCommand::Deny { ids, reason }) => (ids, false, reason.as_ref()),
    };
    let found = ids.iter().map(|id| find_call(id, &waiting));
    let found: Vec<&WaitingCall> = found.collect::<Result<_, _>>()?;
    let mask = load_mask(context);
    let decided = Decided {
        approved,
        reason: reason.map(|reason| mask.apply(reason).into_owned()),
        user: user_name(&context.environment),
        timestamp: Clock::system().now_ms(),
    };
    for call in found {
        if let Made::Existed(_) = decide_call(&place, call, &decided).map_err(log_error)? {
            let message = format!("somebody has just decided about {}", call.id);
            return Err(CommandError::usage(message));
        }
        let becomes = if approved {
            "runs when its input is run again"
        } else {
            "is denied"
        };
        let input = call.input.as_deref().unwrap_or_default();
        let input = truncate_to_columns(input, MAX_INPUT_COLUMNS);
        let message = format!("{} {} {input} {becomes}", call.tool, call.id);
        context.stderr.print_note(&escape(&message));
    }
    Ok(Exit::Ok)
}

fn find_call<'w>(id: &str, waiting: &'w [WaitingCall]) -> Result<&'w WaitingCall, CommandError> {
    let named: Vec<&WaitingCall> = waiting
        .iter()
        .filter(|call| call.handle == id || call.tool_use_id == id)
        .collect();
    let ids = |calls: &mut dyn Iterator<Item = &WaitingCall>| {
        let ids: Vec<&str> = calls.map(|call| call.id.as_str()).collect();
        ids.join(", ")
    };
    let (message, hint) = match named[..] {
        [call] => return Ok(call),
        [] => {
            let others = ids(&mut waiting.iter());
            let hint = match others.as_str() {
                "" => "none does".to_owned(),
                others => format!("these do: {others}"),
            };
            (format!("no call {id} waits for an approval"), hint)
        }
        _ => {
            let named = ids(&mut named.iter().copied());
            let message = format!("several calls {id} wait for an approval");
            (message, format!("name one of them: {named}"))
        }
    };
    Err(CommandError::usage(message).with_hint(hint))
}

fn print_list(
    waiting: &[WaitingCall],
    arguments: &ApprovalsArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    match arguments.format {
        LogFormat::Json => {
            let calls: Vec<_> = waiting.iter().map(WaitingJson::new).collect();
            stdout::write_line(&serde_json::to_string(&calls).unwrap_or_default())?;
        }
        LogFormat::Text => {
            for call in waiting {
                stdout::write_line(&call_text(call))?;
            }
        }
    }
    let waits = match waiting.len() {
        0 => "no call waits for an approval".to_owned(),
        1 => "1 call waits for an approval: `toolq approvals approve ID`, or `deny ID`".to_owned(),
        count => format!(
            "{} wait for an approval: `toolq approvals approve ID…`, or `deny ID…`",
            format_count(count as u64, "call")
        ),
    };
    context.stderr.print_note(&waits);
    Ok(Exit::Ok)
}

/// Returns the call, when and by which run it was asked for, and its whole input.
fn call_text(call: &WaitingCall) -> String {
    let id = escape(&call.id);
    let (tool, log) = match call.tool.as_str() {
        "" => ("a call whose log is gone".into(), call.log.display()),
        tool => (escape(tool), call.log.display()),
    };
    // What it is approved by may be another one.
    let name = match call.tool_use_id.as_str() {
        "" => String::new(),
        id if id == call.id => String::new(),
        other => format!(" {}", escape(other)),
    };
    let asked = call
        .asked_ms
        .map(|asked| format!(", asked {}", format_time(asked)));
    let is_here = env::current_dir().is_ok_and(|here| here == Path::new(&call.directory));
    let from = match call.directory.as_str() {
        "" => String::new(),
        _ if is_here => String::new(),
        directory => format!(" in {}", escape(directory)),
    };
    let input = call
        .input
        .as_deref()
        .map(|input| format!("\n  {}", escape(input)));
    format!(
        "{id}  {tool}{name}{}{from} ({log}){}",
        asked.unwrap_or_default(),
        input.unwrap_or_default()
    )
}
