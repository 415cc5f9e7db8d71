//! Why a request has no answer, and what may be done about it.

use std::time::Duration;

use crate::agent::error::Broken;
use crate::http::Fault;
use toolq_core::transcript::ResponseFault;
use toolq_core::types::{AgentFault, Outcome, RetryOn, TransportPhase};

/// Why a request has no answer, and what may be done about it.
pub(crate) struct Trouble {
    pub(crate) why: Broken,
    /// The reason to ask again, if it is one.
    pub(crate) again: Option<RetryOn>,
    /// The model has more to do than it can.
    pub(crate) overloaded: bool,
    /// The least time that the server wants to pass before the next request.
    pub(crate) retry_after: Option<Duration>,
}

impl Trouble {
    /// One that asking again does not mend.
    pub(crate) fn last(why: impl Into<Broken>) -> Self {
        Self {
            why: why.into(),
            again: None,
            overloaded: false,
            retry_after: None,
        }
    }

    /// What is told where it can't be asked again, since calls of its answer have started.
    pub(crate) fn too_late(self) -> Broken {
        let why = match self.why {
            Broken::Fault(AgentFault::Api { said, .. }) => said,
            Broken::Fault(AgentFault::Unreadable(why)) => why,
            Broken::Outcome(Outcome::Transport(transport)) => transport.detail,
            other => return other,
        };
        AgentFault::BrokeOff(why).into()
    }
}

/// What a stream told in the place of an answer, behind a head that promised one.
pub(crate) fn told(fault: ResponseFault, retry_after: Option<Duration>) -> Trouble {
    match fault {
        ResponseFault::Error { kind, message } => refused(None, &kind, &message, retry_after),
        ResponseFault::Strange(why) => Trouble::last(AgentFault::Unreadable(why)),
    }
}

/// An error that the API told, by status or by its word.
pub(crate) fn refused(
    status: Option<u16>,
    kind: &str,
    message: &str,
    retry_after: Option<Duration>,
) -> Trouble {
    let overloaded = status == Some(529) || kind == "overloaded_error";
    let again = match (status, kind) {
        (Some(429), _) | (None, "rate_limit_error") => Some(RetryOn::RateLimited),
        (Some(500..=504 | 529), _) | (None, "api_error" | "timeout_error" | "overloaded_error") => {
            Some(RetryOn::Unavailable)
        }
        _ => None,
    };
    let said = match (kind, message) {
        (kind, "") => kind.to_owned(),
        ("", message) => message.to_owned(),
        (kind, message) => format!("{message} ({kind})"),
    };
    Trouble {
        why: AgentFault::Api {
            status,
            said,
            wait: retry_after.filter(|wait| !wait.is_zero()),
        }
        .into(),
        again,
        overloaded,
        retry_after,
    }
}

/// A request that found no answer at all.
pub(crate) fn unreached(fault: Fault) -> Trouble {
    let outcome = match fault {
        Fault::Broken(transport) => Outcome::Transport(transport),
        Fault::Unsent(outcome) => outcome,
        // Its time is the agent's, and the encoding was looked at before.
        Fault::Late(_) | Fault::Encoded(_) => Outcome::NoBacking,
    };
    let is_passing = matches!(
        &outcome,
        Outcome::Transport(transport) if transport.phase != TransportPhase::Build
    );
    Trouble {
        again: is_passing.then_some(RetryOn::Unavailable),
        ..Trouble::last(outcome)
    }
}
