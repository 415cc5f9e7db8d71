//! Short names of the sessions in the default directory: the end of the file's name.

use std::path::{Path, PathBuf};

use crate::context::CommandContext;

/// Number of characters of an id.
const ID_LENGTH: usize = 8;

/// Returns the id of a session with a name such as `20251121T200000Z-0123abcd.jsonl`, or else the whole name.
pub(crate) fn session_id(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    match name.rsplit_once('-') {
        Some((_, id)) if is_id(id) => id.to_owned(),
        _ => name.into_owned(),
    }
}

/// Returns the path of the session in the default directory with the id `file`, or else `file`. A file of that name comes
/// first.
pub(crate) fn find_session(file: &Path, context: &CommandContext) -> PathBuf {
    let named = file.to_str().filter(|id| is_id(id) && !file.exists());
    let sessions = named.map(|id| {
        let directory = toolq_log::sessions_dir(&context.environment);
        let logs = directory.and_then(|directory| toolq_log::list_sessions(&directory));
        let mut logs = logs.unwrap_or_default();
        logs.retain(|log| session_id(log) == id);
        logs
    });
    let latest = sessions.and_then(|mut sessions| sessions.pop());
    latest.unwrap_or_else(|| file.to_owned())
}

fn is_id(text: &str) -> bool {
    text.len() == ID_LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
