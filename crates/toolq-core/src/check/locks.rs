//! Fills the locks of a call, and resolves the paths in them: when the call is checked, and again when it starts, because
//! a call before it may have made a symbolic link.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::check::fill::{ProblemCollector, find_value, problem_at, value_text};
use crate::check::path_confinement::{MAX_PATH_BYTES, working_directory};
use crate::json::Input;
use crate::types::{
    AcceptedCall, CallLock, CallLocks, FILE_LOCK_PREFIX, LockMode, LockedResource, ProblemDetail,
    Template, TemplatePart, Tool,
};

/// Maximum number of locks of a call.
const MAX_LOCKS: usize = 1_000;

/// Maximum number of symbolic links in a path, as on Linux.
const MAX_LINKS: usize = 40;

/// Returns the locks of a call, or `None` if its tool declares no locks. Such a call is ordered by its concurrency
/// safety alone.
///
/// # Errors
/// The problems with the values that the locks are made of.
pub(crate) fn build_locks(
    tool: &Tool,
    input: &Input,
    root: &Path,
) -> Result<Option<CallLocks>, Vec<ProblemDetail>> {
    let Some(templates) = &tool.locks else {
        return Ok(None);
    };
    let mut problems = ProblemCollector::default();
    let mut locks: Vec<CallLock> = Vec::new();
    let modes = [
        (LockMode::Write, &templates.write),
        (LockMode::Read, &templates.read),
    ];
    for (mode, templates) in modes {
        for template in templates {
            let names = problems.record(fill_names(template, input));
            for name in names.into_iter().flatten() {
                let resource = resolve_resource(&name, working_directory(tool, root));
                locks.push(CallLock {
                    name,
                    mode,
                    resource,
                });
            }
        }
    }
    if locks.len() > MAX_LOCKS {
        problems.0.push(ProblemDetail::new(
            "",
            format!("its locks are more than {MAX_LOCKS}"),
        ));
    }
    problems.into_result((!locks.is_empty()).then(|| locks.into()))
}

/// Resolves the paths in the locks of a call once more. Returns its locks if they have changed.
pub fn recheck_locks(accepted: &AcceptedCall, root: &Path) -> Option<CallLocks> {
    let locks = accepted.locks.as_ref()?;
    let base = working_directory(&accepted.tool, root);
    let now: Vec<CallLock> = locks
        .iter()
        .map(|lock| CallLock {
            resource: resolve_resource(&lock.name, base),
            ..lock.clone()
        })
        .collect();
    (now != **locks).then(|| now.into())
}

/// Returns the names that a template expands to: one, or one for each element of an array. Returns `None` if an
/// optional value is missing.
fn fill_names(template: &Template, input: &Input) -> Result<Option<Vec<String>>, ProblemDetail> {
    let mut names = vec![String::new()];
    for part in &template.parts {
        let values = match part {
            TemplatePart::Text(text) => vec![text.clone()],
            // Lock templates can't contain variables.
            TemplatePart::Env { .. } => continue,
            TemplatePart::Value {
                path,
                optional,
                splat,
            } => {
                let Some(raw) = find_value(input, path, *optional)? else {
                    return Ok(None);
                };
                if *splat {
                    let items = raw.elements();
                    let items = items.ok_or_else(|| problem_at(path, "must be an array"))?;
                    items.into_iter().map(value_text).collect()
                } else {
                    vec![value_text(raw)]
                }
            }
        };
        if names.len().saturating_mul(values.len()) > MAX_LOCKS {
            return Err(ProblemDetail::new(
                "",
                format!("its locks are more than {MAX_LOCKS}"),
            ));
        }
        names = values
            .iter()
            .flat_map(|value| names.iter().map(move |name| format!("{name}{value}")))
            .collect();
    }
    Ok(Some(names))
}

fn resolve_resource(name: &str, base: &Path) -> LockedResource {
    match name.strip_prefix(FILE_LOCK_PREFIX) {
        // If it can't be resolved, it may be any file.
        Some(path) => LockedResource::Path(resolve_path(&base.join(path)).unwrap_or("/".into())),
        None => LockedResource::Text(name.to_owned()),
    }
}

/// Follows all symbolic links in an absolute path, also those that lead to nothing yet. Returns `None` if they never end,
/// or if the path is too long for any program.
fn resolve_path(path: &Path) -> Option<PathBuf> {
    let mut rest: VecDeque<OsString> = components(path).collect();
    let mut resolved = PathBuf::from("/");
    let mut links = 0;
    while let Some(component) = rest.pop_front() {
        if resolved.as_os_str().len() >= MAX_PATH_BYTES {
            return None;
        }
        if component == ".." {
            resolved.pop();
            continue;
        }
        resolved.push(&component);
        let Ok(target) = resolved.read_link() else {
            continue;
        };
        links += 1;
        if links > MAX_LINKS {
            return None;
        }
        if target.is_absolute() {
            resolved = "/".into();
        } else {
            resolved.pop();
        }
        for component in components(&target).collect::<Vec<_>>().into_iter().rev() {
            rest.push_front(component);
        }
    }
    Some(resolved)
}

/// Returns the components of a path, with `..` but without `.` and the root.
fn components(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::ParentDir | Component::Normal(_) => Some(component.as_os_str().to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_even_to_what_does_not_exist() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("src")).unwrap();
        symlink("src", root.join("in")).unwrap();
        symlink("../later", root.join("src/dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        for (path, expected) in [
            ("src/a", "src/a"),
            ("./src//a/", "src/a"),
            ("in/a", "src/a"),
            ("in/../b", "b"),
            ("new/../b", "b"),
            ("in/dangling", "later"),
            ("in/dangling/x", "later/x"),
        ] {
            assert_eq!(
                resolve_path(&root.join(path)),
                Some(root.join(expected)),
                "{path}"
            );
        }
        assert_eq!(resolve_path(&root.join("loop/x")), None);
        assert_eq!(
            resolve_resource("file:loop", &root),
            LockedResource::Path("/".into())
        );
    }
}
