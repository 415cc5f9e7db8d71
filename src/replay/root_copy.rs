//! A throw-away copy of `root`, on which the calls of one recording after the other run, and the tools as they work there.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps};
use rustix::process::geteuid;
use serde_json::Value;
use serde_json::value::RawValue;
use tempfile::TempDir;

use toolq_core::check::CallChecker;
use toolq_core::json::Input;
use toolq_core::types::{
    Backing, Call, CallAnswer, CheckedCall, CommandBacking, Leftovers, MissingProtection,
    ResultContent, Sandbox, SandboxEntry, SandboxNetwork, Template, Tool, ToolsConfig, Turn,
    Verdict,
};

/// Where a directory is copied to, with everything in it: `.git`, untracked files, and files that git ignores.
///
/// All of it is removed when this is dropped, unless a copy has been kept.
#[derive(Debug)]
pub struct RootCopy {
    original: PathBuf,
    base: TempDir,
    /// Whether copies are kept, and how many have been.
    kept: Option<usize>,
}

impl RootCopy {
    /// Prepares a place for copies of `original` in the directory `place`.
    ///
    /// # Errors
    /// A directory can't be created.
    pub fn new(original: &Path, place: &Path, keep: bool) -> io::Result<Self> {
        fs::create_dir_all(place)?;
        let base = tempfile::Builder::new()
            .prefix("toolq-copy-")
            .tempdir_in(place.canonicalize()?)?;
        Ok(Self {
            original: original.to_owned(),
            base,
            kept: keep.then_some(0),
        })
    }

    /// Returns the path of the copy, which is the same for each recording.
    pub fn path(&self) -> PathBuf {
        self.base.path().join("copy")
    }

    /// Makes the copy for a recording. Returns what couldn't be read, and so isn't in it.
    ///
    /// # Errors
    /// A file can't be copied, or `is_stopped` returned true.
    pub fn make(&self, is_stopped: &dyn Fn() -> bool) -> io::Result<Vec<PathBuf>> {
        let copy = self.path();
        fs::create_dir(&copy).map_err(at(&copy))?;
        copy_tree(&self.original, &copy, self.base.path(), is_stopped)
    }

    /// Moves the copy of a recording out of the way of the next one, and returns where it is now; or removes it if copies
    /// aren't kept.
    ///
    /// # Errors
    /// It can't be moved or removed.
    pub fn end_recording(&mut self) -> io::Result<Option<PathBuf>> {
        let copy = self.path();
        let Some(count) = &mut self.kept else {
            return remove_tree(&copy).map(|()| None);
        };
        *count += 1;
        let place = self.base.path().join(format!("recording-{count}"));
        fs::rename(copy, &place)?;
        // It outlives this value, however that ends.
        self.base.disable_cleanup(true);
        Ok(Some(place))
    }

    /// Removes everything except copies that are kept.
    ///
    /// # Errors
    /// A file can't be removed.
    pub fn remove(self) -> io::Result<()> {
        if self.kept.is_some_and(|count| count > 0) {
            return remove_tree(&self.path());
        }
        remove_tree(self.base.path())
    }
}

/// Removes a directory if it is there, also with directories in it that calls have made unreadable or unwritable.
fn remove_tree(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_removable(directory)?;
            fs::remove_dir_all(directory)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes a directory and those in it readable and writable, but never what a link leads to.
fn make_removable(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_removable(&entry.path())?;
        }
    }
    Ok(())
}

// Copies a directory with everything in it.

/// Returns a function that says which file an error is about.
fn at(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Copies what is in the directory `from`, and its attributes, to the existing directory `to`. The directory `left_out`,
/// which may lie inside `from`, isn't copied, and neither are sockets and devices: what serves them would be shared.
///
/// Returns the files and directories that this user can't read, and so aren't in the copy.
///
/// # Errors
/// A file can't be copied, or `is_stopped` returned true.
fn copy_tree(
    from: &Path,
    to: &Path,
    left_out: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> io::Result<Vec<PathBuf>> {
    let left_out = left_out.metadata().map_err(at(left_out))?;
    let mut copier = TreeCopier {
        left_out: (left_out.dev(), left_out.ino()),
        is_stopped,
        unreadable: Vec::new(),
    };
    let metadata = from.metadata().map_err(at(from))?;
    copier.copy_contents(from, to)?;
    copy_attributes(&metadata, to).map_err(at(from))?;
    Ok(copier.unreadable)
}

/// Copies one directory.
struct TreeCopier<'a> {
    /// The device and inode of the directory that isn't copied.
    left_out: (u64, u64),
    is_stopped: &'a dyn Fn() -> bool,
    unreadable: Vec<PathBuf>,
}

impl TreeCopier<'_> {
    fn copy_contents(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let entries = self.readable(from, fs::read_dir(from));
        let Some(entries) = entries.map_err(at(from))? else {
            return Ok(());
        };
        for entry in entries {
            if (self.is_stopped)() {
                return Err(io::Error::other("the copying was stopped"));
            }
            let entry = entry.map_err(at(from))?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let metadata = self.readable(&from, entry.metadata());
            match metadata.map_err(at(&from))? {
                Some(metadata) if metadata.is_dir() => {
                    self.copy_directory(&from, &metadata, &to)?;
                }
                Some(metadata) => {
                    let copied = self.copy_entry(&from, &metadata, &to);
                    copied.map_err(at(&from))?;
                }
                None => {}
            }
        }
        Ok(())
    }

    fn copy_directory(&mut self, from: &Path, metadata: &Metadata, to: &Path) -> io::Result<()> {
        if (metadata.dev(), metadata.ino()) == self.left_out {
            return Ok(());
        }
        fs::create_dir(to).map_err(at(from))?;
        self.copy_contents(from, to)?;
        copy_attributes(metadata, to).map_err(at(from))
    }

    /// Copies anything but a directory.
    fn copy_entry(&mut self, from: &Path, metadata: &Metadata, to: &Path) -> io::Result<()> {
        let kind = metadata.file_type();
        if kind.is_symlink() {
            symlink(fs::read_link(from)?, to)?;
        } else if kind.is_fifo() {
            rustix::fs::mknodat(CWD, to, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        } else if kind.is_file() {
            // On file systems with reflinks, both share their storage until one of them changes.
            if self.readable(from, fs::copy(from, to))?.is_none() {
                return Ok(());
            }
        } else {
            // What serves a socket or a device would be shared with the original.
            return Ok(());
        }
        copy_attributes(metadata, to)
    }

    /// Returns what was opened, or `None` for what this user can't read, or was removed in the meantime.
    fn readable<T>(&mut self, path: &Path, opened: io::Result<T>) -> io::Result<Option<T>> {
        match opened {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.unreadable.push(path.to_owned());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Copies the owner, permissions and times. The times matter to `make` and `git status`.
fn copy_attributes(metadata: &Metadata, to: &Path) -> io::Result<()> {
    if geteuid().is_root() {
        lchown(to, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    if !metadata.is_symlink() {
        fs::set_permissions(to, metadata.permissions())?;
    }
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time(metadata.atime(), metadata.atime_nsec()),
        last_modification: time(metadata.mtime(), metadata.mtime_nsec()),
    };
    Ok(rustix::fs::utimensat(
        CWD,
        to,
        &times,
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

// The tools as they work on a copy of `root`: in the copy, and each program in a sandbox that lets it change nothing else.
//
// Recordings are full of absolute paths. So where an input names the original, a program gets the path of the copy, and
// where a result names the copy, it is compared as if it named the original.

/// The tools of a tools.yaml, with a copy in place of `root`.
pub struct CopiedTools {
    tools: Arc<ToolsConfig>,
    checker: CallChecker,
    /// The path of the original, as tools.yaml has it and without links.
    original: [String; 2],
    copy: String,
}

impl CopiedTools {
    /// Moves the root and the working directories of `tools` to `copy`, and confines their programs to it.
    pub fn new(tools: &ToolsConfig, copy: &Path) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let canonical = tools.root.canonicalize();
        let original = [
            text(canonical.as_ref().unwrap_or(&tools.root)),
            text(&tools.root),
        ];
        let moved = |path: &Path| moved_path(path, &tools.root, copy);
        let copied_tool = |tool: &Arc<Tool>| {
            let mut tool = Tool::clone(tool);
            let command = match &mut tool.backing {
                Some(Backing::Command(command)) => Some(command),
                _ => None,
            };
            let describe = tool.describe.as_mut().map(|describe| &mut describe.command);
            for command in command.into_iter().chain(describe).chain(&mut tool.probe) {
                command.cwd = moved(&command.cwd);
                confine(command);
            }
            Arc::new(tool)
        };
        let tools = Arc::new(ToolsConfig {
            tools: tools.tools.iter().map(copied_tool).collect(),
            root: copy.to_owned(),
            dir: moved(&tools.dir),
            ..tools.clone()
        });
        Self {
            checker: CallChecker::new(Arc::clone(&tools)),
            tools,
            original,
            copy: text(copy),
        }
    }

    /// Returns the tools that work on the copy.
    pub fn tools(&self) -> &Arc<ToolsConfig> {
        &self.tools
    }

    /// Returns the calls of a turn as they run on the copy, without those that can't.
    pub(crate) fn check_turn(&self, turn: Turn) -> Vec<CheckedCall> {
        let calls = turn.calls.into_iter().map(|call| self.call_on_copy(call));
        let turn = Turn {
            calls: calls.collect(),
            ..turn
        };
        let mut checked = self.checker.check_turn(turn);
        checked.retain(|checked| matches!(checked.verdict, Verdict::Accepted(_)));
        checked
    }

    fn call_on_copy(&self, mut call: Call) -> Call {
        if let Ok(input) = &call.input {
            let copy = json_text(&self.copy);
            let text = self
                .original
                .iter()
                .fold(input.text().to_owned(), |text, original| {
                    replace_path(&text, &json_text(original), &copy)
                });
            // It can only fail for an input that becomes too long with the other path.
            call.input = Input::parse(&text).or(call.input);
        }
        call
    }

    /// Makes an answer name the original where it names the copy.
    pub(crate) fn restore_paths(&self, answer: &mut CallAnswer) {
        let [_, original] = &self.original;
        match &mut answer.content {
            ResultContent::Text(text) => *text = replace_path(text, &self.copy, original),
            ResultContent::Blocks(blocks) => {
                let (copy, original) = (json_text(&self.copy), json_text(original));
                for block in blocks {
                    let text = replace_path(block.get(), &copy, &original);
                    if let Ok(restored) = RawValue::from_string(text) {
                        *block = restored;
                    }
                }
            }
        }
    }
}

/// Lets a program change nothing but the copy, and no more of it than the tool's own sandbox allows. What it leaves running
/// is killed, because the copy is removed.
fn confine(command: &mut CommandBacking) {
    let sandbox = command.sandbox.get_or_insert_with(|| Sandbox {
        read: vec![
            SandboxEntry::Path(Template::from_text("/")),
            SandboxEntry::System,
        ],
        write: vec![SandboxEntry::Root],
        ..Sandbox::default()
    });
    sandbox
        .write
        .retain(|entry| !matches!(entry, SandboxEntry::System));
    sandbox.changes_only_root = true;
    sandbox.network = SandboxNetwork::None;
    sandbox.missing = MissingProtection::Refuse;
    command.leftovers = Leftovers::Kill;
}

/// Returns where a path below the original is in the copy. Other paths stay.
fn moved_path(path: &Path, original: &Path, copy: &Path) -> PathBuf {
    match path.strip_prefix(original) {
        Ok(below) => copy.join(below),
        Err(_) => path.to_owned(),
    }
}

/// Replaces a directory's path where it stands by itself: `/a/b` in `x=/a/b/c`, but not in `/a/bc` or `/0/a/b`.
fn replace_path(text: &str, from: &str, to: &str) -> String {
    let is_part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(from) {
        // A full stop behind a path isn't part of its name.
        let follows_name = after.trim_start_matches('.').starts_with(is_part_of_name);
        let stands_alone = !before.ends_with(is_part_of_name) && !follows_name;
        replaced.push_str(before);
        replaced.push_str(if stands_alone { to } else { from });
        rest = after;
    }
    replaced + rest
}

/// Returns a text as it stands in a string of JSON.
fn json_text(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_copy_is_as_the_original_is() {
        let (original, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::write(original.path().join("x"), "1").unwrap();
        let mut copy = RootCopy::new(original.path(), place.path(), false).unwrap();
        for _ in 0..2 {
            copy.make(&|| false).unwrap();
            assert_eq!(fs::read_dir(copy.path()).unwrap().count(), 1);
            assert_eq!(fs::read_to_string(copy.path().join("x")).unwrap(), "1");
            fs::write(copy.path().join("x"), "2").unwrap();
            fs::write(copy.path().join("y"), "2").unwrap();
            assert_eq!(copy.end_recording().unwrap(), None);
        }
        let stopped = copy.make(&|| true).unwrap_err();
        assert_eq!(stopped.to_string(), "the copying was stopped");
        copy.remove().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn kept_copies_outlive_the_value() {
        let (original, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let mut copy = RootCopy::new(original.path(), place.path(), true).unwrap();
        copy.make(&|| false).unwrap();
        let kept = copy.end_recording().unwrap().unwrap();
        copy.make(&|| false).unwrap();
        let path = copy.path();
        copy.remove().unwrap();
        assert!(kept.exists() && !path.exists());
    }

    /// Otherwise, a call could choose what becomes removable after it.
    #[test]
    fn closed_directories_are_removed_and_links_are_not_followed() {
        let (dir, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let at = |name: &str| dir.path().join(name);
        fs::write(outside.path().join("file"), "").unwrap();
        fs::set_permissions(outside.path(), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(at("copy/closed/inner")).unwrap();
        symlink(outside.path(), at("copy/link")).unwrap();
        fs::set_permissions(at("copy/closed"), Permissions::from_mode(0o000)).unwrap();
        make_removable(&at("copy")).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&at("copy/closed")), 0o700);
        assert_eq!(mode(outside.path()), 0o755);
        remove_tree(&at("copy")).unwrap();
        assert!(!at("copy").exists() && outside.path().join("file").exists());
    }

    #[test]
    fn a_copy_inside_of_the_original_does_not_contain_itself() {
        let original = TempDir::new().unwrap();
        fs::write(original.path().join("x"), "1").unwrap();
        let copy = RootCopy::new(original.path(), &original.path().join("tmp"), false).unwrap();
        copy.make(&|| false).unwrap();
        let copied = fs::read_dir(copy.path().join("tmp")).unwrap();
        assert_eq!(copied.count(), 0);
    }
}

#[cfg(test)]
mod tree_copy_tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use tempfile::TempDir;

    use super::*;

    fn copy(original: &TempDir) -> TempDir {
        let copy = TempDir::new().unwrap();
        copy_tree(original.path(), copy.path(), copy.path(), &|| false).unwrap();
        copy
    }

    #[test]
    fn a_copy_has_all_kinds_of_files_with_their_attributes() {
        let original = TempDir::new().unwrap();
        let at = |name: &str| original.path().join(name);
        fs::create_dir_all(at("a/.hidden")).unwrap();
        fs::write(at("a/.hidden/x"), "x").unwrap();
        fs::set_permissions(at("a/.hidden/x"), Permissions::from_mode(0o751)).unwrap();
        fs::set_permissions(at("a"), Permissions::from_mode(0o555)).unwrap();
        symlink("nowhere", at("broken")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let copy = copy(&original);
        let in_copy = |name: &str| copy.path().join(name);
        assert_eq!(fs::read_to_string(in_copy("a/.hidden/x")).unwrap(), "x");
        for name in ["", "a", "a/.hidden/x", "broken", "pipe"] {
            let metadata = |path: PathBuf| path.symlink_metadata().unwrap();
            let (old, new) = (metadata(at(name)), metadata(in_copy(name)));
            assert_eq!(old.mtime_nsec(), new.mtime_nsec(), "{name}");
            assert_eq!(old.file_type(), new.file_type(), "{name}");
            if name != "pipe" {
                assert_eq!(old.mode(), new.mode(), "{name}");
            }
        }
        assert!(!in_copy("socket").exists());
        fs::set_permissions(at("a"), Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(in_copy("a"), Permissions::from_mode(0o755)).unwrap();
    }

    /// The error's own text has a slash, too: "Input/output error".
    #[test]
    fn a_file_that_the_disk_can_not_read_is_named() {
        let target = TempDir::new().unwrap();
        let mut copier = TreeCopier {
            left_out: (0, 0),
            is_stopped: &|| false,
            unreadable: Vec::new(),
        };
        // Nothing is mapped at the address 0.
        let from = Path::new("/proc/self/mem");
        let metadata = from.metadata().unwrap();
        let copied = copier.copy_entry(from, &metadata, &target.path().join("mem"));
        let error = copied.map_err(at(from)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/proc/self/mem: Input/output error (os error 5)"
        );
    }
}

#[cfg(test)]
mod copied_tools_tests {
    use super::*;

    #[test]
    fn only_the_whole_path_is_replaced() {
        let replaced = |text| replace_path(text, "/a/b", "/copy");
        for (text, expected) in [
            ("/a/b", "/copy"),
            ("cat /a/b/c '/a/b'; x=/a/b", "cat /copy/c '/copy'; x=/copy"),
            ("it is in /a/b.", "it is in /copy."),
            ("/a/bc /a/b-c /a/b.c /0/a/b", "/a/bc /a/b-c /a/b.c /0/a/b"),
            ("", ""),
        ] {
            assert_eq!(replaced(text), expected);
        }
    }
}
