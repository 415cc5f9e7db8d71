//! The few services of the operating system that pure code needs: the environment, the clock, process identities, and
//! private directories.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::text::to_millis;

// The current time.

/// A source of the current time. Tests pass their own.
#[derive(Clone, derive_more::Debug)]
#[debug("Clock({} ms)", self.now_ms())]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl Clock {
    /// Returns a clock that starts at the current system time and then follows a monotonic clock, so it never goes
    /// backward.
    pub fn system() -> Self {
        let start = SystemTime::now().duration_since(UNIX_EPOCH);
        let start = start.unwrap_or_default();
        let started_at = Instant::now();
        Self::new(move || to_millis(start.saturating_add(started_at.elapsed())))
    }

    /// Creates a clock that reads the time from `read_ms`, in milliseconds since 1970.
    pub fn new(read_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(read_ms))
    }

    /// Returns milliseconds since 1970, UTC.
    pub fn now_ms(&self) -> u64 {
        (self.0)()
    }
}

// Environment variables.

/// A snapshot of the environment, taken once when toolq starts, and what tools.yaml adds to it.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    own: BTreeMap<OsString, OsString>,
    /// For variables that `own` doesn't have.
    added: EnvFile,
}

impl Environment {
    /// Returns a variable if it is set and valid UTF-8.
    pub fn get(&self, name: &str) -> Option<String> {
        self.get_os(name)?.to_str().map(str::to_owned)
    }

    /// Returns a variable's raw value.
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.get_own(name).or_else(|| self.added.get(name))
    }

    /// Returns a variable's raw value in the environment in which toolq was started.
    pub fn get_own(&self, name: &str) -> Option<&OsStr> {
        self.own.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Returns all variables of the environment in which toolq was started, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.own.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns this environment with the variables of a file below its own.
    #[must_use]
    pub fn with_env_file(&self, file: &EnvFile) -> Self {
        Self {
            own: self.own.clone(),
            added: file.clone(),
        }
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self {
            own: variables.into_iter().collect(),
            added: EnvFile::default(),
        }
    }
}

/// Variables that tools.yaml takes from a file. All of their values are secrets.
#[derive(Clone, Default, PartialEq, Eq, derive_more::Debug)]
pub struct EnvFile {
    /// The file, absolute. `None` without an `env_file`.
    pub(crate) path: Option<PathBuf>,
    /// Shown without their values.
    #[debug("{:?}", variables.keys())]
    pub(crate) variables: BTreeMap<String, String>,
}

impl EnvFile {
    /// Returns the path of the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsStr::new)
    }

    /// Returns the names of the variables, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }

    /// Returns all values, in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.variables.values().map(String::as_str)
    }
}

// Failpoints: places where a test can kill toolq or make a step fail. `TOOLQ_FAILPOINT=NAME:N:kill|error|panic` acts
// when the failpoint NAME is reached for the Nth time; the name `any` counts all failpoints. Release builds have no
// failpoints.

/// Arms the failpoint that the environment names. Only the program itself calls this, once.
pub fn arm_failpoints(environment: &Environment) {
    #[cfg(debug_assertions)]
    if let Some(spec) = environment.get("TOOLQ_FAILPOINT") {
        armed::arm(&spec);
    }
    #[cfg(not(debug_assertions))]
    let _ = environment;
}

/// Marks the failpoint `name`.
///
/// # Errors
/// A test makes the step that follows fail.
///
/// # Panics
/// A test requested a panic.
#[inline]
pub fn failpoint(name: &'static str) -> io::Result<()> {
    #[cfg(debug_assertions)]
    return armed::reach(name);
    #[cfg(not(debug_assertions))]
    {
        let _ = name;
        Ok(())
    }
}

/// Marks the failpoint `name` in the middle of a step. If a test kills toolq here, `half` runs first.
#[inline]
pub fn failpoint_midway(name: &'static str, half: impl FnOnce()) {
    #[cfg(debug_assertions)]
    armed::reach_midway(name, half);
    #[cfg(not(debug_assertions))]
    let _ = (name, half);
}

#[cfg(debug_assertions)]
mod armed {
    use std::io;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    static ARMED: OnceLock<ArmedFailpoint> = OnceLock::new();

    struct ArmedFailpoint {
        name: String,
        /// How many more times it is reached until it acts.
        remaining: AtomicU64,
        action: FailpointAction,
    }

    #[derive(Clone, Copy, PartialEq, Eq, strum::EnumString)]
    #[strum(serialize_all = "lowercase")]
    enum FailpointAction {
        Kill,
        Panic,
        Error,
    }

    pub(crate) fn arm(text: &str) {
        let mut parts = text.split(':');
        let (Some(name), Some(at), Some(action)) = (parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        let failpoint = ArmedFailpoint {
            name: name.to_owned(),
            remaining: AtomicU64::new(at.parse().unwrap_or_default()),
            action: action.parse().unwrap_or(FailpointAction::Error),
        };
        let _ = ARMED.set(failpoint);
    }

    pub(crate) fn reach(name: &str) -> io::Result<()> {
        match take_action(name) {
            None => Ok(()),
            Some(FailpointAction::Kill) => {
                kill_self();
                Ok(())
            }
            Some(FailpointAction::Panic) => panic!("failpoint {name}"),
            Some(FailpointAction::Error) => Err(io::Error::other(format!("failpoint {name}"))),
        }
    }

    pub(crate) fn reach_midway(name: &str, half: impl FnOnce()) {
        if take_action(name) == Some(FailpointAction::Kill) {
            half();
            kill_self();
        }
    }

    fn take_action(name: &str) -> Option<FailpointAction> {
        let wanted = ARMED.get()?;
        let is_match = wanted.name == "any" || wanted.name == name;
        let is_due = is_match && wanted.remaining.fetch_sub(1, Ordering::SeqCst) == 1;
        is_due.then_some(wanted.action)
    }

    fn kill_self() {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

// Directories that only their owner can access.

/// Creates a directory and its missing parents, each accessible only to its owner, regardless of the umask. Existing
/// directories are left alone. The entries of new directories survive a power loss.
///
/// # Errors
/// The directory can't be created, or the path is something else, such as a symlink.
pub fn create_private_dir(directory: &Path) -> io::Result<()> {
    // A strict umask can make a new directory unusable until its mode is set. Don't let other threads find it in that
    // state.
    static CREATION_LOCK: Mutex<()> = Mutex::new(());
    let _guard = CREATION_LOCK.lock();
    create_with_parents(directory)
}

fn create_with_parents(directory: &Path) -> io::Result<()> {
    let mut created = DirBuilder::new().mode(0o700).create(directory);
    if created
        .as_ref()
        .is_err_and(has_kind(io::ErrorKind::NotFound))
        && let Some(parent) = directory.parent()
    {
        create_with_parents(parent)?;
        created = DirBuilder::new().mode(0o700).create(directory);
    }
    match created {
        Ok(()) => {
            fs::set_permissions(directory, Permissions::from_mode(0o700))?;
            match sync_parent(directory) {
                // The parent may belong to another user.
                Err(error) if has_kind(io::ErrorKind::PermissionDenied)(&error) => Ok(()),
                synced => synced,
            }
        }
        Err(error)
            if has_kind(io::ErrorKind::AlreadyExists)(&error) && is_directory(directory)? =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Blocks until the entry of `path` in its directory survives a power loss.
///
/// # Errors
/// The directory can't be opened or synced.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    match File::open(parent.unwrap_or(Path::new(".")))?.sync_all() {
        // Returned by file systems that have nothing to sync for a directory.
        Err(error) if has_kind(io::ErrorKind::InvalidInput)(&error) => Ok(()),
        synced => synced,
    }
}

fn has_kind(kind: io::ErrorKind) -> impl Fn(&io::Error) -> bool {
    move |error| error.kind() == kind
}

fn is_directory(path: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.is_dir())
}

// Identifies toolq processes.

/// Prefix of the command-line argument of a reaper that tells people which process owns it.
const OWNER_PREFIX: &str = "of=";

/// Identifies a process uniquely, even though pids are reused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// When the process started, in clock ticks since boot.
    pub start_ticks: Option<u64>,
    /// The boot during which it started.
    pub boot_id: Option<String>,
}

impl ProcessIdentity {
    /// Returns the identity of the current process. What the system doesn't provide is left out.
    pub fn current() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Self {
            pid: std::process::id(),
            start_ticks: stat.as_deref().and_then(parse_start_ticks),
            boot_id: boot_id.map(|id| id.trim().to_owned()),
        }
    }

    /// Whether the process is gone, as far as this system can tell. A process in another container or on another
    /// machine also looks gone. Returns false if too little is known about the process.
    pub fn has_exited(&self) -> bool {
        let (Some(start_ticks), Some(boot_id)) = (self.start_ticks, &self.boot_id) else {
            return false;
        };
        let current_boot_id = Self::current().boot_id;
        if current_boot_id.as_ref() != Some(boot_id) {
            return current_boot_id.is_some();
        }
        match fs::read_to_string(format!("/proc/{}/stat", self.pid)) {
            // A zombie keeps its pid until it is reaped.
            Ok(stat) => parse_start_ticks(&stat) != Some(start_ticks) || is_zombie(&stat),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Returns the argument that marks reapers as belonging to this process.
    pub fn reaper_argument(&self) -> String {
        format!(
            "{OWNER_PREFIX}{}-{}",
            self.pid,
            self.start_ticks.unwrap_or_default()
        )
    }
}

/// Parses field 22 of `/proc/N/stat`. Field 2, the program name, may contain spaces and parentheses.
fn parse_start_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(19)?.parse().ok()
}

/// Whether field 3 of `/proc/N/stat` says that the process has exited.
fn is_zombie(stat: &str) -> bool {
    let split = stat.rsplit_once(") ");
    split.is_some_and(|(_, fields)| fields.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exited_process_is_recognized() {
        let this = ProcessIdentity::current();
        assert!(!this.has_exited());
        let earlier = ProcessIdentity {
            start_ticks: this.start_ticks.map(|ticks| ticks + 1),
            ..this.clone()
        };
        let before = ProcessIdentity {
            boot_id: Some("another".to_owned()),
            ..this.clone()
        };
        assert!(earlier.has_exited() && before.has_exited());
        let unknown = ProcessIdentity {
            start_ticks: None,
            pid: u32::MAX,
            ..this
        };
        assert!(!unknown.has_exited());
        assert!(is_zombie("7 (a) b) Z 1") && !is_zombie("7 (Z) S 1"));
    }

    #[test]
    fn a_program_name_with_parentheses_is_skipped() {
        let rest: Vec<String> = (3..=22).map(|word| word.to_string()).collect();
        let stat = format!("1 (a) b) {} 23 24\n", rest.join(" "));
        assert_eq!(parse_start_ticks(&stat), Some(22));
    }
}
