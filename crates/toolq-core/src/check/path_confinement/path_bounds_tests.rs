//! Paths inside and outside of a root, as the kernel resolves them and as the walk does.

use std::os::unix::fs::symlink;

use super::*;

/// By `..`, an absolute path, `~`, nothing at all, NUL, or a symlink that leads outside, into `/proc/self/root`, to
/// nothing or to itself. Paths are compared by components: `app-secret` isn't inside `app`.
#[test]
fn paths_outside_the_root_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (root, other) = (dir.path().join("app"), dir.path().join("app-secret"));
    fs::create_dir_all(root.join("src/deep")).unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(root.join("src/a.txt"), "").unwrap();
    symlink(&other, root.join("out")).unwrap();
    symlink("src", root.join("in")).unwrap();
    symlink(other.join("later"), root.join("dangling")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    let bounds = PathBounds::new(&root, &root).unwrap();
    let absolute = |relative: &str| root.join(relative).to_string_lossy().into_owned();
    let long = "x".repeat(5_000);
    for path in [
        ".",
        "./",
        "src",
        "src/",
        "src/a.txt",
        "src/../src/a.txt",
        "new.txt",
        "new/deep/er.txt",
        "in/a.txt",
        "..a",
        "a..",
        "src/...",
        "./~",
        "in/../src",
        "src/a.txt/x",
        &absolute("src"),
        &absolute(""),
    ] {
        assert_eq!(bounds.check_path(path), Ok(()), "{path}");
    }
    for path in [
        "",
        "..",
        "../app-secret",
        "../app",
        "src/../../app",
        "../../etc/passwd",
        "/etc/passwd",
        "/",
        "//etc",
        "~",
        "~/x",
        "~root/x",
        "a\0b",
        &long,
        "out",
        "out/x",
        "out/../src",
        "in/deep/../../../x",
        "dangling",
        "dangling/x",
        "loop",
        "loop/x",
        "magic/etc",
        "new/../../x",
        "new/../src",
        &absolute("../app-secret/x"),
        &format!("{}-secret/x", root.display()),
    ] {
        assert!(bounds.check_path(path).is_err(), "{path}");
    }
}

/// The kernel never finds a path inside that the walk finds outside, and resolves what exists by itself.
#[cfg(target_os = "linux")]
#[test]
fn the_kernel_and_the_walk_agree() {
    let dir = tempfile::tempdir().unwrap();
    let (root, other) = (dir.path().join("app"), dir.path().join("other"));
    fs::create_dir_all(root.join("src/deep")).unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(root.join("src/a.txt"), "").unwrap();
    symlink("src", root.join("in")).unwrap();
    symlink(root.join("src"), root.join("absolute")).unwrap();
    symlink(&other, root.join("out")).unwrap();
    symlink("../other", root.join("up")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    let base = root.join("src");
    let bounds = PathBounds::new(&root, &base).unwrap();
    let base = base.canonicalize().unwrap();
    let system_resolves = bounds.resolves_beneath(&base, Path::new("."));
    for (path, by_kernel, by_walk) in [
        ("a.txt", true, true),
        ("deep/../a.txt", true, true),
        ("../in/deep", true, true),
        ("..", true, true),
        ("../absolute/a.txt", false, true),
        ("new.txt", false, true),
        ("a.txt/x", false, true),
        ("../..", false, false),
        ("../out", false, false),
        ("../up", false, false),
        ("../loop", false, false),
        ("../magic/etc", false, false),
        ("new/../a.txt", false, false),
    ] {
        let path = Path::new(path);
        let found = bounds.resolves_beneath(&base, path);
        assert_eq!(found, by_kernel && system_resolves, "{}", path.display());
        let walked = bounds.walk_components(base.clone(), path);
        assert_eq!(walked.is_ok(), by_walk, "{}", path.display());
    }
}

/// A refused path says why, so that the model can write another.
#[test]
fn a_path_that_no_system_accepts_is_refused_for_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = PathBounds::new(dir.path(), dir.path()).unwrap();
    let deep = "new/".repeat(MAX_PATH_BYTES / 4 - 1);
    for (path, why) in [
        ("", PathRefusal::Empty),
        ("a\0b", PathRefusal::ContainsNul),
        (
            &*format!("{deep}{}", "x".repeat(MAX_PATH_BYTES - deep.len())),
            PathRefusal::TooLong,
        ),
        ("~/x", PathRefusal::Tilde),
        (&*"x".repeat(1_000), PathRefusal::UnreadableDirectory),
        ("new/../x", PathRefusal::ClimbsFromMissing),
    ] {
        assert_eq!(bounds.check_path(path), Err(why), "{path}");
    }
    let longest = format!("{deep}{}", "x".repeat(MAX_PATH_BYTES - deep.len() - 1));
    assert_eq!(bounds.check_path(&longest), Ok(()));
}

/// A text that no program can open is harmless, even if it looks like a path.
#[test]
fn a_guess_is_refused_only_if_it_leads_somewhere_outside() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("app");
    fs::create_dir_all(root.join("src")).unwrap();
    let bounds = PathBounds::new(&root, &root).unwrap();
    for (path, as_path, as_guess) in [
        ("", false, true),
        ("~", false, true),
        ("~/x", false, true),
        ("missing/../x", false, true),
        ("src/x", true, true),
        ("../x", false, false),
        ("/etc/passwd", false, false),
    ] {
        assert_eq!(bounds.check_path(path).is_ok(), as_path, "{path}");
        assert_eq!(bounds.check_guess(path).is_ok(), as_guess, "{path}");
    }
}
