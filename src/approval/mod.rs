//! Who approves the calls of a session, as the flags say.

mod terminal_prompt;

use std::path::Path;
use std::sync::Arc;

use crate::approval::terminal_prompt::TerminalPrompt;
use crate::output::CommandError;
use crate::plan_file::PlannedCalls;
use crate::settings::ApprovalSettings;
use crate::terminal::ProgressScreen;
use redact::Mask;
use toolq_core::os::Environment;
use toolq_core::types::{Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest};
use toolq_engine::{Approver, PriorApprovals};

/// Calls that the user has named by their ids.
#[derive(Debug)]
struct NamedCalls {
    ids: Vec<String>,
    user: Option<String>,
}

impl PriorApprovals for NamedCalls {
    fn approval_of(&self, request: &ApprovalRequest) -> Option<Approval> {
        let is_named = self.ids.contains(&request.call.tool_use_id);
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
