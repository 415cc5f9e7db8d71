//! What becomes of a call that an earlier run, or another one, has started. A pure function of what the entries of the call and
//! the log of its latest attempt say.

/// The latest attempt at a call, as it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Its number, counted from 1.
    pub number: u32,
    /// What a person or a probe said about it: whether it was done.
    pub settled: Option<bool>,
    /// Whether somebody holds its log. Tested before the log is read.
    pub log: LogAccess,
    /// What the log says about its end.
    pub end: AttemptEnd,
    /// The call has the tool and the input of this attempt.
    pub is_same_call: bool,
    /// It has its result, and that has counted for as long as its tool says.
    pub is_expired: bool,
}

/// Whether the run of an attempt may still be at work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum LogAccess {
    /// It is this run. A call that an agent makes can't wait for that of the agent.
    Own,
    /// Another run holds the log.
    Held,
    /// Its run is over, with everything that it started.
    #[default]
    Free,
    /// The log is gone.
    Gone,
}

/// What a log says about the end of an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AttemptEnd {
    /// Nothing: it may have been started, and may have had its effect.
    #[default]
    Unknown,
    /// It surely had no effect.
    Nothing,
    /// It is in doubt.
    InDoubt,
    /// It has a result.
    Result(ResultKind),
}

/// What a result says about the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultKind {
    /// The call was done.
    Done,
    /// The call failed, and what did it says so by its exit code or status.
    Refused,
    /// The call failed in a way that leaves its effect open: a timeout, a signal, a server's error.
    Open,
}

/// What the call that asks is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asker {
    /// What becomes of it if it may have had its effect.
    pub if_doubtful: IfDoubtful,
    /// Its tool runs once for some of its values, and not once for each call.
    pub is_once: bool,
    /// It is to run again.
    pub is_new: bool,
}

/// What a tool says about calls that may have had their effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IfDoubtful {
    /// Nothing: somebody has to look.
    #[default]
    Ask,
    /// Its probe can find out.
    Probe,
    /// Running them twice does no harm.
    Repeat,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It runs, with this number of attempt.
    Run(u32),
    /// It runs once more on purpose, with this number of attempt, and as another call for its callee.
    Renew(u32),
    /// It has the result in the log of its latest attempt, once that is synced.
    Answer,
    /// It has the result that it was settled with.
    AnswerSettled,
    /// It may have had its effect.
    InDoubt,
    /// As [`Self::InDoubt`], but its probe can find out.
    Probe,
    /// Another run is at it: its result is awaited.
    Wait,
    /// This run is at it.
    IsRunning,
    /// Its id, or its values, belong to a call with another tool or input.
    Conflict,
}

/// Decides what becomes of a call. `latest` is its latest attempt.
pub fn decide(latest: Option<&Attempt>, asker: Asker) -> Decision {
    let Some(latest) = latest else {
        return Decision::Run(1);
    };
    let next = latest.number + 1;
    let is_open = latest.end == AttemptEnd::Unknown && latest.settled.is_none();
    match (latest.end, latest.settled) {
        _ if is_open && latest.log == LogAccess::Own => Decision::IsRunning,
        _ if is_open && latest.log == LogAccess::Held => Decision::Wait,
        (_, Some(false)) | (AttemptEnd::Nothing, None) => Decision::Run(next),
        (AttemptEnd::Result(ResultKind::Refused), None) if asker.is_once => Decision::Run(next),
        (AttemptEnd::Result(_), _) | (_, Some(true)) if latest.is_expired => Decision::Renew(next),
        _ if asker.is_new => Decision::Renew(next),
        _ if !latest.is_same_call => Decision::Conflict,
        (_, Some(true)) => Decision::AnswerSettled,
        (AttemptEnd::Result(ResultKind::Open), None) if asker.is_once => doubtful(next, asker),
        (AttemptEnd::Result(_), None) => Decision::Answer,
        (_, None) => doubtful(next, asker),
    }
}

fn doubtful(next: u32, asker: Asker) -> Decision {
    match asker.if_doubtful {
        IfDoubtful::Repeat => Decision::Run(next),
        IfDoubtful::Probe => Decision::Probe,
        IfDoubtful::Ask => Decision::InDoubt,
    }
}
