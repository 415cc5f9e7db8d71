use std::io;
use std::path::{Path, PathBuf};

use crate::read::{Damage, Flaw};

/// Why a session log can't be used: what, where and why. [`LogError::cure`] says what to do.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum LogError {
    #[error(
        "there is no place for the session log: neither XDG_STATE_HOME nor HOME is an absolute path"
    )]
    NoHome,
    #[error("the folder of the session log {} does not exist", .0.display())]
    NoFolder(PathBuf),
    #[error("there is no session log {}", .0.display())]
    Missing(PathBuf),
    #[error("there is no session log in {}", .0.display())]
    NoSession(PathBuf),
    #[error("the session log {} is a symbolic link", .0.display())]
    Link(PathBuf),
    #[error("the session log {} is no regular file", .0.display())]
    NotAFile(PathBuf),
    #[error("the session log {} belongs to another user", .0.display())]
    Foreign(PathBuf),
    #[error("the session log keeps what is large in {}, which {wrong}", folder.display())]
    Bodies {
        folder: PathBuf,
        wrong: &'static str,
    },
    #[error("the session log {} is in use by another toolq", .0.display())]
    InUse(PathBuf),
    #[error("{} is no session log of toolq", .0.display())]
    NotALog(PathBuf),
    #[error("the last run in the session log {} is unfinished", .0.display())]
    Unfinished(PathBuf),
    #[error("the session log {} is damaged in {damage}", path.display())]
    Damaged { path: PathBuf, damage: Damage },
    #[error("the session log {} has the format {major}.{minor}, newer than this toolq knows", path.display())]
    Newer {
        path: PathBuf,
        major: u32,
        minor: u32,
    },
    #[error("the session log {} can't be {doing}: {source}", path.display())]
    Io {
        path: PathBuf,
        doing: &'static str,
        source: io::Error,
    },
}

/// What a log was wanted for: what can be done about its error depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// To run calls, and write it.
    Run,
    /// To go on with its last run. No other log can, and what it has done would run again there.
    Resume,
    /// To run the calls of recordings, and write it.
    Replay,
    /// To say what became of one of its calls.
    Resolve,
    /// To look at it.
    Read,
    /// To remove it.
    Prune,
}

impl LogError {
    /// What a damage means for the log of this path.
    pub fn of(path: &Path, damage: Damage) -> Self {
        let path = path.to_owned();
        match damage.what {
            Flaw::NotALog => Self::NotALog(path),
            Flaw::Newer { major, minor } => Self::Newer { path, major, minor },
            _ => Self::Damaged { path, damage },
        }
    }

    /// What to do about it, in one line, for whoever wanted the log for `wish`.
    pub fn cure(&self, wish: Wish) -> String {
        match wish {
            Wish::Run => self.cure_of_run(),
            Wish::Replay => self.cure_of_replay(),
            Wish::Resume if matches!(self, Self::Damaged { .. }) => self.cure_of_run(),
            Wish::Resume | Wish::Resolve | Wish::Read | Wish::Prune => self.cure_of_verb(wish),
        }
    }

    /// A run takes another log by an option, or none. Where the log may say what has run, another one knows nothing of it.
    fn cure_of_run(&self) -> String {
        match self {
            Self::NoHome => {
                "set HOME, name a file with `--log FILE`, or keep no log with `--no-log`"
            }
            Self::NoFolder(_) => "make the folder, or name another file with `--log FILE`",
            Self::Link(_) => "name the file itself: what a link leads to may change",
            Self::InUse(_) => {
                "wait until the other run ends; a log of another name (`--log FILE`) knows nothing of it"
            }
            Self::NoSession(_) | Self::Missing(_) => {
                "name a file that a run wrote with `--log FILE`"
            }
            Self::Unfinished(_) => "`--resume` finishes it, `--new` begins another run behind it",
            Self::Damaged { path, .. } => {
                let path = path.display();
                return format!(
                    "`toolq log verify {path}` names its first broken line: restore it from a copy, or look up what has run (`toolq log show {path}` shows what stands before the damage) before any of it runs again in another log"
                );
            }
            Self::Newer { .. } => {
                "use a newer toolq: in another log, what this one has done would run again"
            }
            Self::Bodies { .. } => return self.cure_of_verb(Wish::Run),
            Self::NotAFile(_) | Self::Foreign(_) | Self::NotALog(_) | Self::Io { .. } => {
                "name another file with `--log FILE`, or keep no log with `--no-log`"
            }
        }
        .to_owned()
    }

    /// A replay keeps a log only where it is told to, and resumes none.
    fn cure_of_replay(&self) -> String {
        match self {
            Self::NoFolder(_) | Self::Link(_) | Self::InUse(_) | Self::Bodies { .. } => {
                self.cure_of_run()
            }
            _ => "name another file with `--log FILE`, or leave it out".to_owned(),
        }
    }

    /// The verbs of `toolq log` take a log as an argument, or find it themselves.
    fn cure_of_verb(&self, wish: Wish) -> String {
        match self {
            Self::NoHome => "set HOME",
            Self::Link(_) => "name the file itself: what a link leads to may change",
            Self::InUse(_) => "wait until the run that writes it ends",
            Self::Damaged { path, damage } if wish == Wish::Resolve => {
                let (path, line) = (path.display(), damage.line);
                return format!(
                    "restore it from a copy: nothing can be added behind line {line}; `toolq log show {path}` shows what stands before it"
                );
            }
            Self::Damaged { path, damage } if damage.line > 1 => {
                let (path, whole) = (path.display(), damage.line - 1);
                let (records, them) = match whole {
                    1 => ("record before it is whole".to_owned(), "it"),
                    _ => (format!("{whole} records before it are whole"), "them"),
                };
                return format!("the {records}: look at {them} with `head -n {whole} {path}`");
            }
            Self::Newer { .. } => "use a newer toolq",
            Self::Bodies { .. } => {
                "put a folder of your own in its place, with whatever it has of this log"
            }
            Self::Io { .. } => "look at its permissions, and at the disk that it is on",
            _ => "name a file that a run of toolq wrote",
        }
        .to_owned()
    }
}
