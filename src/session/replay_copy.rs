//! Prepares the copy of `root` for `replay --on-copy`.

use std::io;
use std::path::{Path, PathBuf};

use crate::call_setup::SUPERVISOR_PROGRAM;
use crate::context::CommandContext;
use crate::output::CommandError;
use crate::replay::{TreeCopyError, WorkingCopy};
use procfence::CopyConfinement;
use toolq_core::os::failpoint;
use toolq_core::types::ToolsConfig;

/// Directories for temporary files that programs use besides TMPDIR. Calls get empty ones of their own.
const TEMP_DIRS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// A copy of `root`, still empty, and how calls are confined to it.
pub struct ReplayCopy {
    pub files: WorkingCopy,
    /// `None` if the system doesn't allow it. Then no call may run.
    pub confinement: Option<CopyConfinement>,
}

impl ReplayCopy {
    /// Creates an empty copy, and checks whether calls can find it at the path of `root`.
    ///
    /// # Errors
    /// `root` is the whole file system, or the copy can't be created.
    pub fn prepare(
        context: &CommandContext,
        tools: &ToolsConfig,
        keep: bool,
    ) -> Result<Self, CommandError> {
        let root = &tools.root;
        let failed = |error: io::Error| {
            CommandError::usage(format!("{} can't be copied: {error}", root.display()))
                .with_hint("set TMPDIR to a directory with enough space")
        };
        let canonical_root = root.canonicalize().map_err(failed)?;
        if canonical_root == Path::new("/") {
            return Err(CommandError::usage("`root` is /, which can't be copied")
                .with_hint("name the directory that the tools work on as `root` in tools.yaml"));
        }
        let temp_dirs = temp_dirs(context);
        let places = copy_places(context);
        let files = WorkingCopy::new(&canonical_root, &places, &temp_dirs, keep);
        let files = files.map_err(failed)?;
        if root.join(".git").is_file() {
            context.stderr.print_warning(
                "`.git` is a file: the git directory lies outside `root` and isn't copied, so git can't write",
            );
        }
        let confinement = CopyConfinement {
            copy: files.path(),
            scratch: files.scratch_dir(),
            temp_dirs,
            root: canonical_root,
            is_mounted: true,
        };
        let confinement = allowed_confinement(confinement, context);
        Ok(Self { files, confinement })
    }

    /// Returns where calls find the copy, if that isn't the path of `root`.
    pub fn moved_root(&self) -> Option<PathBuf> {
        let confinement = self.confinement.as_ref()?;
        (!confinement.is_mounted).then(|| self.files.path())
    }

    /// Makes the copy equal to `root` again. Returns false if `is_stopped` returned true before that was done.
    ///
    /// # Errors
    /// A file can't be copied.
    pub fn refresh(
        &mut self,
        context: &CommandContext,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<bool, TreeCopyError> {
        match self.files.refresh(is_stopped) {
            Ok(()) => {}
            Err(TreeCopyError::Stopped) => return Ok(false),
            Err(error) => return Err(error),
        }
        if let [first, rest @ ..] = self.files.unreadable() {
            let first = first.display();
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            context.stderr.print_warning(&format!(
                "not in the copy, because you can't read it: {first}{more}"
            ));
        }
        Ok(true)
    }

    /// Notes that the calls of the recording `name` have run, and keeps the copy if that is wanted.
    ///
    /// # Errors
    /// The copy can't be moved.
    pub fn end_recording(&mut self, name: &str, context: &CommandContext) -> io::Result<()> {
        self.files.mark_used();
        if let Some(place) = self.files.keep_used()? {
            let place = place.display();
            context
                .stderr
                .print_requested_note(&format!("the copy on which {name} was replayed: {place}"));
        }
        Ok(())
    }
}

/// Returns the confinement that the system allows: with mounts, without them, or no confinement at all. Warns about the
/// consequences.
fn allowed_confinement(
    mounted: CopyConfinement,
    context: &CommandContext,
) -> Option<CopyConfinement> {
    let lacks_all = failpoint("confine.none").err();
    let check = |confinement: &CopyConfinement| match &lacks_all {
        Some(error) => Err(io::Error::other(error.to_string())),
        None => confinement.check(Path::new(SUPERVISOR_PROGRAM)),
    };
    let checked = failpoint("confine.before").and_then(|()| check(&mounted));
    let Err(error) = checked else {
        return Some(mounted);
    };
    let unmounted = CopyConfinement {
        is_mounted: false,
        ..mounted
    };
    if let Err(also) = check(&unmounted) {
        context.stderr.print_warning(&format!(
            "this system can't keep calls away from the original ({error}; {also}), so none runs"
        ));
        return None;
    }
    context.stderr.print_warning(&format!(
        "calls can't find the copy at the path of `root` ({error}), so only calls run whose paths are all in the \
         `paths` of their tool"
    ));
    Some(unmounted)
}

/// Returns where the copy may be: TMPDIR, and other places for large files, one of which may be on the same file system.
fn copy_places(context: &CommandContext) -> Vec<PathBuf> {
    let path_of = |name: &str| context.environment.get_os(name).map(PathBuf::from);
    let cache = path_of("XDG_CACHE_HOME").or_else(|| Some(path_of("HOME")?.join(".cache")));
    let places = [
        path_of("TMPDIR").or_else(|| Some(PathBuf::from("/tmp"))),
        Some(PathBuf::from("/var/tmp")),
        cache.map(|cache| cache.join("toolq")),
    ];
    let places = places.into_iter().flatten();
    places.filter(|place| place.is_absolute()).collect()
}

/// Returns the existing directories for temporary files, outer ones first.
fn temp_dirs(context: &CommandContext) -> Vec<PathBuf> {
    let own = context.environment.get_os("TMPDIR").map(PathBuf::from);
    let named = TEMP_DIRS.map(PathBuf::from).into_iter().chain(own);
    let mut dirs: Vec<PathBuf> = named.filter_map(|dir| dir.canonicalize().ok()).collect();
    dirs.sort_unstable();
    dirs.dedup();
    dirs
}
