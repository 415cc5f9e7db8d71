//! Finds a session in the default directory that was killed or left calls in doubt, so that its input isn't run again by
//! accident.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::LogError;
use crate::open::lock;
use crate::open::paths::names_input;
use crate::open::sessions::{latest_first, read_first_session};
use crate::read::RecordReader;
use crate::records::{RecordKind, SessionHeader, SessionRecord, StartRecord};
use crate::resume::InDoubtCalls;
use redact::Mask;
use toolq_core::types::Effect;

/// A session of which it isn't known what its calls did.
#[derive(Debug)]
pub struct UnsettledSession {
    /// Its log.
    pub path: PathBuf,
    /// Whether it was killed.
    pub was_killed: bool,
    /// Whether a call that isn't `read` had started.
    pub had_effects: bool,
    /// Its calls in doubt.
    pub in_doubt: InDoubtCalls,
}

/// Returns the latest session in `dir` with the input, root and tools file of `header`, if it was killed or left calls in
/// doubt. A session that is still running isn't returned.
///
/// # Errors
/// The directory or that session can't be read.
pub fn find_unsettled_session(
    dir: &Path,
    header: &SessionHeader,
    mask: &Mask,
) -> Result<Option<UnsettledSession>, LogError> {
    let Some(input_sha256) = &header.input_sha256 else {
        return Ok(None);
    };
    for path in latest_first(dir, |name| names_input(name, input_sha256))? {
        match read_first_session(&path) {
            Some(session) if is_same_run(&session, header, mask) => {
                return check_session(path, &session);
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Returns whether a session had the input, root and tools file of `header`.
fn is_same_run(session: &SessionRecord, header: &SessionHeader, mask: &Mask) -> bool {
    let same_text = |logged: &str, current: &str| logged == mask.apply(current);
    let logged_tools = Path::new(&session.cwd).join(&session.tools.path);
    let (cwd, tools) = (mask.apply(&header.cwd), mask.apply(&header.tools_path));
    session.input_sha256 == header.input_sha256
        && session
            .root
            .as_deref()
            .is_some_and(|root| same_text(root, &header.root))
        && logged_tools == Path::new(&*cwd).join(&*tools)
}

fn check_session(
    path: PathBuf,
    session: &SessionRecord,
) -> Result<Option<UnsettledSession>, LogError> {
    let file = lock::open_owned(&path)?;
    if is_running(&file, &path, session)? {
        return Ok(None);
    }
    let (mut was_killed, mut had_effects) = (true, false);
    let mut in_doubt = InDoubtCalls::default();
    for record in RecordReader::from_file(file) {
        match record {
            Ok(record) => {
                was_killed = record.kind.leaves_run_open(was_killed);
                let applied = in_doubt.apply_record(&record);
                applied.map_err(|corruption| LogError::from_corruption(&path, corruption))?;
                if record.kind == RecordKind::ToolStart {
                    let start = record.parse_metadata::<StartRecord<'_>>();
                    let start =
                        start.map_err(|corruption| LogError::from_corruption(&path, corruption))?;
                    had_effects |= start.effect != Effect::Read;
                }
            }
            Err(corruption) if corruption.is_torn_end() => was_killed = true,
            Err(corruption) => return Err(LogError::from_corruption(&path, corruption)),
        }
    }
    Ok(
        (was_killed || in_doubt.has_any()).then_some(UnsettledSession {
            path,
            was_killed,
            had_effects,
            in_doubt,
        }),
    )
}

/// Returns whether a toolq holds the lock of a log. One that was killed may leave a child that holds it for a moment.
fn is_running(file: &File, path: &Path, session: &SessionRecord) -> Result<bool, LogError> {
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) if session.process().has_exited() => {
            match lock::lock_file(file, path) {
                Err(LogError::InUse(_)) => Ok(true),
                locked => locked.map(|()| false),
            }
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) => Err(LogError::Io {
            path: path.to_owned(),
            action: "locked",
            source,
        }),
    }
}
