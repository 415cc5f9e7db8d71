use std::io;
use std::path::{Path, PathBuf};

use super::damage::{Damage, Flaw};

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

    /// What to do about it.
    pub fn cure(&self) -> &'static str {
        match self {
            Self::NoHome => {
                "set HOME, name a file with `--log FILE`, or keep no log with `--no-log`"
            }
            Self::NoFolder(_) => "make the folder, or name another file with `--log FILE`",
            Self::Link(_) => "name the file itself: what a link leads to may change",
            Self::InUse(_) => {
                "wait until the other run ends, or name another file with `--log FILE`"
            }
            Self::NoSession(_) | Self::Missing(_) => {
                "name a file that a run wrote with `--log FILE`"
            }
            Self::Unfinished(_) => "`--resume` finishes it, `--new` begins another run behind it",
            Self::Damaged { .. } => {
                "look at it with `toolq log verify FILE`; keep it, since it says what has run, and name another file with `--log FILE`"
            }
            Self::Newer { .. } => "use a newer toolq, or name another file with `--log FILE`",
            Self::NotAFile(_) | Self::Foreign(_) | Self::NotALog(_) | Self::Io { .. } => {
                "name another file with `--log FILE`, or keep no log with `--no-log`"
            }
        }
    }
}
