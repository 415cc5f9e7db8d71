//! The examples of the library, as `cargo test` builds them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::repository_root;

/// Returns an example, which is built first unless it is current: a run of some test programs alone doesn't build it.
pub fn find_example(name: &str) -> PathBuf {
    let test_binary = std::env::current_exe().unwrap();
    let profile_dir = test_binary.ancestors().nth(2).unwrap();
    let example = profile_dir.join("examples").join(name);
    if !is_current(&example) {
        build_example(name, profile_dir.parent().unwrap());
    }
    example
}

/// Returns whether a program is newer than every file that it was built of, which cargo lists beside it.
fn is_current(program: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let (Some(built), Ok(list)) = (
        changed(program),
        fs::read_to_string(program.with_extension("d")),
    ) else {
        return false;
    };
    let of_program = format!("{}: ", program.display());
    let Some(sources) = list.strip_prefix(&of_program) else {
        return false;
    };
    sources
        .split_whitespace()
        .all(|source| changed(Path::new(source)).is_some_and(|changed| changed <= built))
}

fn build_example(name: &str, target_dir: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    // What cargo sets for tests would make it build everything again.
    for (variable, _) in std::env::vars_os() {
        let text = variable.to_string_lossy();
        let is_for_tests = [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_",
            "CARGO_CRATE_",
        ]
        .iter()
        .any(|prefix| text.starts_with(prefix));
        if is_for_tests || text == "CARGO" {
            cargo.env_remove(&variable);
        }
    }
    let built = cargo
        .args(["build", "--quiet", "--locked", "--package", "toolq-embed"])
        .args(["--example", name])
        .env("CARGO_TARGET_DIR", target_dir)
        .current_dir(repository_root())
        .status();
    assert!(built.unwrap().success());
}
