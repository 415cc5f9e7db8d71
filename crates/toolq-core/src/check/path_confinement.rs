//! Decides whether the inputs named in `paths` stay inside the root, judged as the arguments and variables that they
//! become. A call is judged when it is checked, and again right before each attempt, because a call before it may have
//! made a symlink.
//!
//! This isn't a sandbox: the tool's program opens the path after that, and a process that replaces a directory with a
//! symlink in between gets past the check.

#[cfg(test)]
mod path_bounds_tests;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

use crate::check::fill::path_texts::{
    PathText, command_path_texts, mcp_path_texts, value_path_texts,
};
use crate::check::rejection;
use crate::json::Input;
use crate::types::{
    AcceptedCall, Backing, CommandBacking, Effect, ProblemDetail, Rejection, Tool, ToolsConfig,
};

/// The message for every refused path; a cause may follow.
const REFUSAL: &str = "Path must be within working directory";

/// Where the paths of calls may lead.
#[derive(Debug, Clone, Copy)]
pub struct PathLimits<'a> {
    /// The directory that they must stay inside.
    pub root: &'a Path,
    /// Files and directories that only calls of `read` tools may be given.
    pub own_files: &'a [PathBuf],
}

impl ToolsConfig {
    /// Returns where the paths of calls may lead.
    pub fn path_limits(&self) -> PathLimits<'_> {
        PathLimits {
            root: &self.root,
            own_files: &self.own_files,
        }
    }
}

/// Judges the paths of a call that was accepted earlier once more.
///
/// # Errors
/// The rejection of the call, because a path leads where it may not lead now.
pub fn recheck_paths(accepted: &AcceptedCall, limits: PathLimits<'_>) -> Result<(), Rejection> {
    check_paths(&accepted.tool, &accepted.input, limits)
}

/// Judges the inputs named in `paths`. Relative paths start in the directory where the tool's program runs.
///
/// # Errors
/// The rejection of the call, because paths lead outside of `root`, their target can't be determined, or they lead a tool
/// with effects into a `.git` or to one of toolq's own files.
pub(crate) fn check_paths(
    tool: &Tool,
    input: &Input,
    PathLimits { root, own_files }: PathLimits<'_>,
) -> Result<(), Rejection> {
    let command = match &tool.backing {
        Some(Backing::Command(command)) => Some(command),
        _ => None,
    };
    let base = working_directory(tool, root);
    if base != root && leads_outside(base, root) {
        return Err(rejection::path_outside_root(vec![ProblemDetail::new(
            "",
            "the tool's working directory leads outside of `root`",
        )]));
    }
    if tool.paths.is_empty() {
        return Ok(());
    }
    let Some(bounds) = PathBounds::new(root, base) else {
        return Err(rejection::path_outside_root(vec![ProblemDetail::new(
            "",
            explain_unusable_root(root),
        )]));
    };
    let mut details: Vec<ProblemDetail> = Vec::new();
    let mut leads_outside_root = false;
    for path in path_texts(tool, command, input) {
        let PathText { pointer, text, .. } = path;
        let verdict = text.as_deref().map(|text| {
            if path.is_guess {
                bounds.check_guess(text)
            } else {
                bounds.check_path(text)
            }
        });
        leads_outside_root |= verdict != Some(Ok(()));
        let message = match verdict {
            None => format!("{REFUSAL} (it isn't a string)"),
            Some(Err(PathRefusal::Outside)) => REFUSAL.to_owned(),
            Some(Err(cause)) => format!("{REFUSAL} ({cause})"),
            Some(Ok(())) if tool.effect == Effect::Read => continue,
            Some(Ok(())) => match bounds.find_protection(&text.unwrap_or_default(), own_files) {
                Some(message) => message,
                None => continue,
            },
        };
        if details.iter().all(|detail| detail.path != pointer) {
            details.push(ProblemDetail::new(pointer, message));
        }
    }
    if details.is_empty() {
        return Ok(());
    }
    Err(if leads_outside_root {
        rejection::path_outside_root(details)
    } else {
        rejection::own_file(details)
    })
}

/// Returns the directory where the tool's program runs, and where relative paths start.
pub(crate) fn working_directory<'a>(tool: &'a Tool, root: &'a Path) -> &'a Path {
    match &tool.backing {
        Some(Backing::Mcp(mcp)) => mcp.server.program().map_or(root, |program| &program.cwd),
        Some(Backing::Command(command)) => &command.cwd,
        _ => root,
    }
}

/// Says what is wrong with a root in which no path can be judged, whatever the input is.
fn explain_unusable_root(root: &Path) -> &'static str {
    match root.try_exists() {
        Ok(false) => "the working directory (the root) doesn't exist",
        _ => "the working directory (the root) can't be read",
    }
}

/// Whether a directory that exists isn't in `root`: a call may have replaced it with a symlink.
fn leads_outside(directory: &Path, root: &Path) -> bool {
    match (directory.canonicalize(), root.canonicalize()) {
        (Ok(directory), Ok(root)) => !directory.starts_with(root),
        _ => false,
    }
}

/// Returns every text that a program could open because of an input named in `paths`.
fn path_texts(tool: &Tool, command: Option<&CommandBacking>, input: &Input) -> Vec<PathText> {
    let mut texts = value_path_texts(tool, command, input);
    for command in command.into_iter().chain(&tool.probe) {
        texts.extend(command_path_texts(command, &tool.paths, input));
    }
    if let Some(Backing::Mcp(mcp)) = &tool.backing {
        texts.extend(mcp_path_texts(mcp, &tool.paths, input));
    }
    texts
}

// Tells whether a path leads to what only tools that read may open: toolq's own files, which say what may run and what did,
// and those of git, which runs what they name as soon as the user asks for a status.

impl PathBounds<'_> {
    /// Says why a tool with effects can't have this path, if so.
    fn find_protection(&self, path: &str, own_files: &[PathBuf]) -> Option<String> {
        let protected = match find_own_file(path, self.base, own_files) {
            Some(file) => {
                let shown = file.strip_prefix(self.root).unwrap_or(file);
                format!("to {}, which belongs to toolq", shown.display())
            }
            None if self.leads_into_git(path) => "into .git, which says what git runs".to_owned(),
            None => return None,
        };
        Some(format!(
            "Path must not lead {protected}: only tools that read may open it"
        ))
    }

    /// Whether a path leads to a `.git` in the root or to something in one, through whatever links.
    fn leads_into_git(&self, path: &str) -> bool {
        let place = resolve_place(&self.base.join(path)).unwrap_or_default();
        let inside = place.strip_prefix(&self.canonical_root);
        // Some file systems ignore case.
        inside.is_ok_and(|inside| inside.iter().any(|name| name.eq_ignore_ascii_case(".git")))
    }
}

/// Returns the first of `files` that `path` leads to. Relative paths start at `base`. A file is known by its identity, so
/// links to it are found, too; one that doesn't exist yet, by its place. Everything in a directory belongs to it.
fn find_own_file<'f>(path: &str, base: &Path, files: &'f [PathBuf]) -> Option<&'f Path> {
    if files.is_empty() || path.is_empty() {
        return None;
    }
    let target = base.join(path);
    let is_same = |file: &&PathBuf| {
        have_same_identity(&target, file)
            || match (resolve_place(&target), resolve_place(file)) {
                (Some(target), Some(file)) => target.starts_with(file),
                _ => false,
            }
    };
    files.iter().find(is_same).map(PathBuf::as_path)
}

/// Whether both paths lead to the same file, possibly through links.
fn have_same_identity(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Returns where a path leads, without links. Its last components may be missing.
fn resolve_place(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let mut missing = Vec::new();
    let mut existing = &*path;
    loop {
        if let Ok(mut place) = existing.canonicalize() {
            place.extend(missing.iter().rev());
            return Some(place);
        }
        missing.push(existing.file_name()?);
        existing = existing.parent()?;
    }
}

// Keeps a path inside the root. The kernel resolves it, where it can; else, a walk looks at each component and follows
// the symlinks that exist in the file system.

/// Maximum length of a path in bytes, including the terminator: `PATH_MAX` on Linux.
pub(crate) const MAX_PATH_BYTES: usize = 4_096;

/// Why a path isn't inside the bounds, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
enum PathRefusal {
    #[display("it is empty")]
    Empty,
    #[display("it contains a NUL character")]
    ContainsNul,
    #[display("it is longer than 4,095 bytes")]
    TooLong,
    #[display("`~` isn't expanded; write `./~` for a file with that name")]
    Tilde,
    /// It leads outside.
    #[display("it leads outside")]
    Outside,
    /// It has a `..` where nothing exists yet.
    #[display("`..` after a directory that doesn't exist")]
    ClimbsFromMissing,
    #[display("the working directory can't be read")]
    UnreadableWorkingDirectory,
    #[display("a symlink in the path can't be resolved")]
    UnresolvedLink,
    #[display("a directory in the path can't be read")]
    UnreadableDirectory,
}

/// The directory that paths must stay inside.
struct PathBounds<'a> {
    /// As declared.
    root: &'a Path,
    /// With symlinks resolved.
    canonical_root: PathBuf,
    /// Where relative paths start.
    base: &'a Path,
}

impl<'a> PathBounds<'a> {
    /// Creates the bounds of `root`. Relative paths start at `base`. Returns `None` if the root can't be read.
    pub(crate) fn new(root: &'a Path, base: &'a Path) -> Option<Self> {
        Some(Self {
            root,
            canonical_root: root.canonicalize().ok()?,
            base,
        })
    }

    /// Checks that `path` stays inside. A path that doesn't exist yet is inside if its nearest existing ancestor is.
    ///
    /// # Errors
    /// Why it doesn't, or why that can't be determined.
    fn check_path(&self, path: &str) -> Result<(), PathRefusal> {
        match path {
            "" => return Err(PathRefusal::Empty),
            _ if path.contains('\0') => return Err(PathRefusal::ContainsNul),
            _ if path.len() >= MAX_PATH_BYTES => return Err(PathRefusal::TooLong),
            _ if path.starts_with('~') => return Err(PathRefusal::Tilde),
            _ => {}
        }
        let path = Path::new(path);
        if path.is_relative() {
            let base = self
                .base
                .canonicalize()
                .map_err(|_| PathRefusal::UnreadableWorkingDirectory)?;
            return self.check_components(base, path);
        }
        let relative = [self.root, &self.canonical_root]
            .into_iter()
            .find_map(|root| path.strip_prefix(root).ok());
        let relative = relative.ok_or(PathRefusal::Outside)?;
        self.check_components(self.canonical_root.clone(), relative)
    }

    /// Like [`Self::check_path`], but a path that leads nowhere is fine, because no program gets there.
    ///
    /// # Errors
    /// See [`Self::check_path`].
    fn check_guess(&self, path: &str) -> Result<(), PathRefusal> {
        if path.is_empty() || path.starts_with('~') {
            return Ok(());
        }
        match self.check_path(path) {
            Err(PathRefusal::ClimbsFromMissing) => Ok(()),
            verdict => verdict,
        }
    }

    /// Checks a path that starts at `base`, a directory without symlinks in its path.
    fn check_components(&self, base: PathBuf, path: &Path) -> Result<(), PathRefusal> {
        if self.resolves_beneath(&base, path) {
            return Ok(());
        }
        self.walk_components(base, path)
    }

    /// Whether the kernel resolves the path to something that exists, without leaving the root on the way. It does so in one
    /// step, so that nothing can be exchanged between two components. What it doesn't resolve may be inside all the same: a
    /// path that doesn't exist yet, or an absolute symlink.
    #[cfg(target_os = "linux")]
    fn resolves_beneath(&self, base: &Path, path: &Path) -> bool {
        let Ok(from_root) = base.strip_prefix(&self.canonical_root) else {
            return false;
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let path = Path::new(".").join(from_root).join(path);
        let root = open(&self.canonical_root, flags, Mode::empty());
        let opened = root.and_then(|root| openat2(root, path, flags, Mode::empty(), resolve));
        opened.is_ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn resolves_beneath(&self, _base: &Path, _path: &Path) -> bool {
        false
    }

    /// Walks down from `current`; no step may leave the root.
    fn walk_components(&self, mut current: PathBuf, path: &Path) -> Result<(), PathRefusal> {
        let mut exists = true;
        for component in path.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir if exists => {
                    current.pop();
                }
                Component::ParentDir => return Err(PathRefusal::ClimbsFromMissing),
                Component::Normal(name) => {
                    current.push(name);
                    if exists {
                        exists = follow_link(&mut current)?;
                    }
                }
                Component::RootDir | Component::Prefix(_) => return Err(PathRefusal::Outside),
            }
            if !current.starts_with(&self.canonical_root) {
                return Err(PathRefusal::Outside);
            }
        }
        Ok(())
    }
}

/// Resolves `path` if it is a symlink. Returns false if nothing exists there.
fn follow_link(path: &mut PathBuf) -> Result<bool, PathRefusal> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => {
            *path = path
                .canonicalize()
                .map_err(|_| PathRefusal::UnresolvedLink)?;
            Ok(true)
        }
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(_) => Err(PathRefusal::UnreadableDirectory),
    }
}

#[cfg(test)]
mod own_file_tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_found_behind_any_link() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path();
        for name in ["tools.yaml", "other.yaml"] {
            fs::write(base.join(name), "").unwrap();
        }
        fs::create_dir_all(base.join("log.jsonl.d")).unwrap();
        fs::create_dir(base.join("sub")).unwrap();
        symlink("tools.yaml", base.join("soft")).unwrap();
        fs::hard_link(base.join("tools.yaml"), base.join("hard")).unwrap();
        symlink("..", base.join("sub/up")).unwrap();
        symlink("tools.lock", base.join("dangling")).unwrap();
        let files: Vec<PathBuf> = ["tools.yaml", "tools.lock", "log.jsonl", "log.jsonl.d"]
            .map(|name| base.join(name))
            .into();
        let absolute = base.join("tools.yaml").to_string_lossy().into_owned();
        for (path, expected) in [
            ("tools.yaml", Some("tools.yaml")),
            ("./sub/../tools.yaml", Some("tools.yaml")),
            ("soft", Some("tools.yaml")),
            ("hard", Some("tools.yaml")),
            ("sub/up/tools.yaml", Some("tools.yaml")),
            (&absolute, Some("tools.yaml")),
            ("tools.lock", Some("tools.lock")),
            ("sub/up/tools.lock", Some("tools.lock")),
            ("log.jsonl.d/abc", Some("log.jsonl.d")),
            ("log.jsonl", Some("log.jsonl")),
            ("other.yaml", None),
            ("tools.yaml.bak", None),
            ("sub/tools.yaml", None),
            (".", None),
            ("", None),
        ] {
            let found = find_own_file(path, base, &files);
            assert_eq!(
                found,
                expected.map(|name| base.join(name)).as_deref(),
                "{path}"
            );
        }
    }
}
