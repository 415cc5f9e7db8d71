//! Why a session log can't be used, and what the user can do about it.

use std::io;
use std::path::{Path, PathBuf};

use toolq_core::exit::{CommandError, Exit};
use toolq_core::text::{escape, quote_path_for_shell};
use toolq_core::types::EmitError;

/// Why a session log can't be used. [`LogError::hint`] says what to do about it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages document the variants")]
pub enum LogError {
    #[error(
        "no default location for the session log: neither XDG_STATE_HOME nor HOME is an absolute path"
    )]
    NoHome,
    #[error("the parent directory of the session log {} doesn't exist", .0.display())]
    NoParentDir(PathBuf),
    #[error("the session log {} doesn't exist", .0.display())]
    NotFound(PathBuf),
    #[error("no session log found in {}", .0.display())]
    NoSession(PathBuf),
    #[error("the session log {} is a symbolic link", .0.display())]
    Symlink(PathBuf),
    #[error("the session log {} isn't a regular file", .0.display())]
    NotRegularFile(PathBuf),
    #[error("the session log {} belongs to another user", .0.display())]
    ForeignOwner(PathBuf),
    #[error("the session log stores large content in {}, which {problem}", dir.display())]
    InvalidBlobDir { dir: PathBuf, problem: &'static str },
    #[error("the session log {} is in use by another toolq process", .0.display())]
    InUse(PathBuf),
    #[error("{} isn't a toolq session log", .0.display())]
    NotALog(PathBuf),
    #[error("the session log {} is damaged at {corruption}", path.display())]
    Corrupt {
        path: PathBuf,
        corruption: Corruption,
    },
    #[error("the session log {} has format {major}.{minor}, which is newer than this toolq supports", path.display())]
    NewerFormat {
        path: PathBuf,
        major: u32,
        minor: u32,
    },
    #[error("the session log {} can't be {action}: {source}", path.display())]
    Io {
        path: PathBuf,
        action: &'static str,
        source: io::Error,
    },
}

/// What a log is opened for. The hint for an error depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To run calls and record them.
    Run,
    /// To replay recordings and record their calls.
    Replay,
    /// To resolve a call in doubt.
    Resolve,
    /// To read it.
    Read,
    /// To delete it.
    Prune,
}

impl LogError {
    /// Returns what says that the file at `path` can't be `action`.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Io {
            path: path.to_owned(),
            action,
            source,
        }
    }

    /// Says that the memory can't be used.
    pub(crate) fn of_memory(&self) -> EmitError {
        EmitError(format!("the memory can't be used: {self}"))
    }

    /// Converts corruption found in the log at `path`.
    pub fn from_corruption(path: &Path, corruption: Corruption) -> Self {
        let path = path.to_owned();
        match corruption.kind {
            CorruptionKind::NotALog => Self::NotALog(path),
            CorruptionKind::NewerFormat { major, minor } => {
                Self::NewerFormat { path, major, minor }
            }
            _ => Self::Corrupt { path, corruption },
        }
    }

    /// Returns a one-line suggestion for the user, given what the log was opened for.
    pub fn hint(&self, access: Access) -> String {
        match access {
            Access::Run => self.run_hint(),
            Access::Replay => self.replay_hint(),
            Access::Resolve | Access::Read | Access::Prune => self.log_command_hint(access),
        }
    }

    /// A run can use a different log or no log. If this log may record calls that have run, the hint warns that a
    /// different log doesn't.
    fn run_hint(&self) -> String {
        match self {
            Self::NoHome => {
                "set HOME, choose a file with `--log FILE`, or turn the log off with `--no-log`"
            }
            Self::NoParentDir(_) => "create the directory, or choose another file with `--log FILE`",
            Self::Symlink(_) => "use the path of the file itself: the target of a link may change",
            Self::InUse(_) => {
                "wait until the other run ends; a different log (`--log FILE`) has no record of its calls"
            }
            Self::NoSession(_) | Self::NotFound(_) => {
                "use `--log FILE` to name the log of an earlier run"
            }
            Self::Corrupt { path, .. } => {
                let path = quote_path_for_shell(path);
                return format!(
                    "`toolq log verify {path}` names the first damaged line; restore the log from a copy, or check what has already run (`toolq log show {path}` shows everything before the damage) before you start over with a new log"
                );
            }
            Self::NewerFormat { .. } => {
                "use a newer toolq: with another log, the calls in this one would run again"
            }
            Self::InvalidBlobDir { .. } => return self.log_command_hint(Access::Run),
            Self::NotRegularFile(_) | Self::ForeignOwner(_) | Self::NotALog(_) | Self::Io { .. } => {
                "choose another file with `--log FILE`, or turn the log off with `--no-log`"
            }
        }
        .to_owned()
    }

    /// A replay only writes a log on request, and remembers nothing.
    fn replay_hint(&self) -> String {
        match self {
            Self::NoParentDir(_)
            | Self::Symlink(_)
            | Self::InUse(_)
            | Self::InvalidBlobDir { .. } => self.run_hint(),
            _ => "choose another file with `--log FILE`, or omit the flag".to_owned(),
        }
    }

    /// The `toolq log` commands accept a log as an argument or find the latest one, so `--log FILE` is no help there.
    fn log_command_hint(&self, access: Access) -> String {
        match self {
            Self::NoHome => "set HOME",
            Self::Symlink(_) => "use the path of the file itself: the target of a link may change",
            Self::InUse(_) => "wait until the run that is writing it ends",
            Self::Corrupt { path, corruption } if access == Access::Resolve => {
                let (path, line) = (quote_path_for_shell(path), corruption.line);
                return format!(
                    "restore it from a copy: nothing can be appended after the damage at line {line}; `toolq log show {path}` shows everything before it"
                );
            }
            Self::Corrupt { path, corruption } if corruption.line > 1 => {
                let (path, whole) = (quote_path_for_shell(path), corruption.line - 1);
                let (records, them) = match whole {
                    1 => ("record before it is intact".to_owned(), "it"),
                    _ => (format!("{whole} records before it are intact"), "them"),
                };
                return format!("the {records}: view {them} with `head -n {whole} {path}`");
            }
            Self::NewerFormat { .. } => "use a newer toolq",
            Self::InvalidBlobDir { .. } => {
                "replace it with a directory of your own, and move the files of this log there"
            }
            Self::Io { .. } => "check its permissions and the disk it is on",
            Self::NotFound(_) => {
                "`toolq log list` lists the sessions with their ids; `toolq log show --id ID` shows a call"
            }
            Self::NoSession(_) => "`toolq run` writes one; name the log of a run with `--log FILE`",
            _ => "name a session log that toolq wrote",
        }
        .to_owned()
    }
}

impl LogError {
    /// Returns the error that ends a command. The hint depends on `access`, what the log was opened for.
    pub fn for_command(&self, access: Access) -> CommandError {
        CommandError::new(Exit::Log, self).with_hint(self.hint(access))
    }
}

/// For errors of a run's log.
impl From<LogError> for CommandError {
    fn from(error: LogError) -> Self {
        error.for_command(Access::Run)
    }
}

/// Where a log is damaged, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct Corruption {
    /// Number of the first damaged line, counted from 1.
    pub line: u64,
    /// Byte offset of the beginning of that line. All records before it are intact.
    pub offset: u64,
    /// What is wrong with that line.
    pub kind: CorruptionKind,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CorruptionKind {
    /// The file ends within a record: its writer was killed, or the disk was full. No call started because of it, since
    /// its write never completed.
    #[error("the record is torn: the file ends {bytes} bytes into it")]
    Torn { bytes: u64 },
    /// The first line isn't even the beginning of a log.
    #[error("this isn't a session log record")]
    NotALog,
    #[error("the line exceeds the 64 KiB record limit")]
    TooLong,
    #[error("the line isn't valid UTF-8")]
    NotUtf8,
    #[error("the line doesn't end in a checksum")]
    MissingChecksum,
    #[error("the line doesn't match its checksum")]
    WrongChecksum,
    #[error("the line isn't a valid record: {0}")]
    InvalidRecord(String),
    #[error("expected record {expected}, found {found}: lines are missing or were moved")]
    UnexpectedSeq { expected: u64, found: u64 },
    #[error("format {major}.{minor} is newer than this toolq supports")]
    NewerFormat { major: u32, minor: u32 },
    #[error("records of type {} must be understood, but this toolq doesn't know them", escape(.0))]
    MustUnderstand(String),
    /// The record is intact, but can't follow the ones before it.
    #[error("{0}")]
    SequenceViolation(&'static str),
    #[error("the metadata doesn't fit the record's type: {0}")]
    InvalidMetadata(String),
    #[error("the line can't be read: {0}")]
    Unreadable(String),
}

impl Corruption {
    /// Returns whether the only damage is an end that was never completely written. A torn end may be set aside.
    pub fn is_torn_end(&self) -> bool {
        matches!(self.kind, CorruptionKind::Torn { .. })
    }
}
