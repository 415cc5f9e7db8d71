//! Exit codes, and which one wins where several apply.

use std::process::ExitCode;

/// How the program ends. The order is that of precedence: of several, the greatest wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Every call was answered.
    Ok,
    /// The model asked for nothing.
    NothingAsked,
    /// `--fail-on-error` with an error result, or `check` or `plan --strict` found problems.
    Found,
    /// A tool was paused, a budget used up, or a call is in doubt. Every call is still answered.
    Stopped,
    /// Usage, tools.yaml or input is wrong; nothing ran.
    Usage,
    /// The session log can't be used.
    Log,
    /// Ended by a signal: 128 and its number.
    Signal(u8),
    /// Results could not be written.
    Output,
}

impl Exit {
    /// The code that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Found => 1,
            Self::Usage => 2,
            Self::Stopped => 3,
            Self::Log => 4,
            Self::NothingAsked => 5,
            Self::Signal(signal) => 128 + signal,
            Self::Output => 74,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {

    use crate::output::exit::Exit;

    /// Where several apply: 74, then 129/130/143, then 4, 2, 3, 1.
    #[test]
    fn the_graver_one_wins() {
        let codes = |exits: &[Exit]| exits.iter().max().map(|exit| exit.code());
        assert_eq!(codes(&[Exit::Output, Exit::Signal(2), Exit::Log]), Some(74));
        assert_eq!(
            codes(&[Exit::Signal(15), Exit::Log, Exit::Usage]),
            Some(143)
        );
        assert_eq!(codes(&[Exit::Stopped, Exit::Usage, Exit::Log]), Some(4));
        assert_eq!(codes(&[Exit::Found, Exit::Stopped]), Some(3));
    }
}
