//! Turns the sandbox of a call into the paths that its program can reach on this machine.

use std::path::{Path, PathBuf};

use procfence::{NetworkAccess, PathAccess, ProgramSandbox, SandboxPath, missing_protections};
use toolq_core::os::Environment;
use toolq_core::types::{
    MissingProtection, Outcome, PartialTemplate, Sandbox, SandboxEntry, SandboxInvocation,
    SandboxNetwork, SandboxPlace,
};

/// The port of name servers.
const DNS_PORT: u16 = 53;

/// What the paths of a sandbox depend on.
pub(crate) struct SandboxContext<'a> {
    pub(crate) root: &'a Path,
    /// The program's working directory.
    pub(crate) cwd: &'a Path,
    /// The program's file and, in a wrapper, that of the program that it runs.
    pub(crate) programs: Vec<&'a Path>,
    pub(crate) environment: &'a Environment,
}

/// Returns what a sandbox with this access can't keep a program from on this system, each as the end of "this system can't
/// confine".
pub fn find_sandbox_gaps(network: &SandboxNetwork) -> Vec<&'static str> {
    missing_protections(&network_access(network))
}

/// Whether a sandbox keeps a file from `programs`, the ones that it is for, whatever their input is.
pub fn hides_file(
    sandbox: &Sandbox,
    file: &Path,
    (programs, root): (&[PathBuf], &Path),
    environment: &Environment,
) -> bool {
    let context = SandboxContext {
        root,
        cwd: root,
        programs: programs.iter().map(PathBuf::as_path).collect(),
        environment,
    };
    let mut shown = Vec::new();
    for entry in sandbox.read.iter().chain(&sandbox.write) {
        match entry {
            SandboxEntry::Root => shown.push(root.to_owned()),
            SandboxEntry::System => {
                let mut paths = Vec::new();
                context.locate_system(PathAccess::Read, &mut paths);
                shown.extend(paths.into_iter().map(|place| place.path));
            }
            SandboxEntry::Path(template) if template.uses_input() => {}
            SandboxEntry::Path(template) => {
                let path = template
                    .without_values()
                    .resolve(&|name| environment.get(name));
                shown.extend(path.map(|path| root.join(path)));
            }
        }
    }
    let Ok(file) = file.canonicalize() else {
        return false;
    };
    let holds = |place: PathBuf| {
        place
            .canonicalize()
            .is_ok_and(|place| file.starts_with(place))
    };
    !shown.into_iter().any(holds)
}

/// Returns why a sandbox can't be applied on this system, if so.
pub(crate) fn find_confinement_problem(
    sandbox: &SandboxInvocation,
    has_supervisor: bool,
) -> Option<String> {
    if !has_supervisor {
        return Some("nothing supervises programs here".to_owned());
    }
    let gaps = missing_protections(&network_access(&sandbox.network));
    if gaps.is_empty() || sandbox.missing == MissingProtection::Warn {
        return None;
    }
    Some(format!("this system can't confine {}", gaps.join(", or ")))
}

/// Returns what the program can reach.
///
/// # Errors
/// The outcome of the call, because a variable in a path isn't set.
pub(crate) fn locate_sandbox(
    sandbox: &SandboxInvocation,
    context: &SandboxContext<'_>,
) -> Result<ProgramSandbox, Outcome> {
    let mut paths = Vec::new();
    for place in &sandbox.read {
        context.locate(place, PathAccess::Read, &mut paths)?;
    }
    let first_changed = paths.len();
    for place in &sandbox.write {
        context.locate(place, PathAccess::Write, &mut paths)?;
    }
    for path in &mut paths[first_changed..] {
        path.stays_inside |= sandbox.changes_only_root;
    }
    Ok(ProgramSandbox {
        paths,
        bounds: context.root.to_owned(),
        network: network_access(&sandbox.network),
        allows_gaps: sandbox.missing == MissingProtection::Warn,
    })
}

/// Whether names have to be looked up over TCP, because the program can't use anything else.
pub(crate) fn needs_dns_over_tcp(sandbox: &SandboxInvocation) -> bool {
    matches!(&sandbox.network, SandboxNetwork::Ports(ports) if ports.contains(&DNS_PORT))
}

fn network_access(network: &SandboxNetwork) -> NetworkAccess {
    match network {
        SandboxNetwork::None => NetworkAccess::None,
        SandboxNetwork::All => NetworkAccess::All,
        SandboxNetwork::Ports(ports) => NetworkAccess::TcpPorts(ports.clone()),
    }
}

impl SandboxContext<'_> {
    fn locate(
        &self,
        place: &SandboxPlace,
        access: PathAccess,
        paths: &mut Vec<SandboxPath>,
    ) -> Result<(), Outcome> {
        let (path, stays_inside) = match place {
            SandboxPlace::Root => (self.root.to_owned(), false),
            SandboxPlace::System => {
                self.locate_system(access, paths);
                return Ok(());
            }
            SandboxPlace::Declared(path) => (self.root.join(self.resolve(path)?), false),
            SandboxPlace::FromInput(path) => (self.cwd.join(self.resolve(path)?), true),
        };
        paths.push(SandboxPath {
            path,
            access,
            stays_inside,
        });
        Ok(())
    }

    fn resolve(&self, path: &PartialTemplate) -> Result<String, Outcome> {
        path.resolve(&|name| self.environment.get(name))
            .map_err(Outcome::MissingVariable)
    }

    /// Adds what programs need to start.
    fn locate_system(&self, access: PathAccess, paths: &mut Vec<SandboxPath>) {
        let mut add = |path: PathBuf, access: PathAccess| {
            paths.push(SandboxPath {
                path,
                access,
                stays_inside: false,
            });
        };
        for directory in SYSTEM_DIRECTORIES {
            // On most systems, `/bin` and the like are links into `/usr`.
            if !Path::new(directory).is_symlink() {
                add(directory.into(), access);
            }
        }
        for name in SYSTEM_CONFIGURATION {
            add(Path::new("/etc").join(name), PathAccess::Read);
        }
        add("/proc".into(), PathAccess::Read);
        for device in DEVICES {
            add(device.into(), PathAccess::Device);
        }
        for program in &self.programs {
            add((*program).to_owned(), PathAccess::Read);
            if let Some(directory) = self.package_directory(program) {
                add(directory, PathAccess::Read);
            }
        }
    }

    /// Returns the virtual environment or the `node_modules` that a program is in. It must be a directory of its own:
    /// neither the root nor one above it, nor a home directory.
    fn package_directory(&self, program: &Path) -> Option<PathBuf> {
        let directory = find_package_directory(program)?.canonicalize().ok()?;
        let home = self.environment.get_os("HOME").map(Path::new);
        let is_home = |home: &Path| {
            home.canonicalize()
                .is_ok_and(|home| home.starts_with(&directory))
        };
        let root = self.root.canonicalize().ok()?;
        let is_too_wide = root.starts_with(&directory)
            || home.is_some_and(is_home)
            || directory
                .parent()
                .is_none_or(|parent| parent == Path::new("/home"));
        (!is_too_wide).then_some(directory)
    }
}

/// Returns the virtual environment or the `node_modules` around a program.
fn find_package_directory(program: &Path) -> Option<&Path> {
    let mut ancestors = program.ancestors().skip(1);
    ancestors.find(|directory| {
        directory
            .file_name()
            .is_some_and(|name| name == "node_modules")
            || directory.join("pyvenv.cfg").is_file()
    })
}

// The paths that `system` in a sandbox includes.

/// Where programs, their libraries and their data are installed.
const SYSTEM_DIRECTORIES: [&str; 9] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
];

/// What programs read from `/etc`. Nothing in it is secret.
const SYSTEM_CONFIGURATION: [&str; 33] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "group",
    "host.conf",
    "hosts",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "protocols",
    "resolv.conf",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
];

/// Devices that every program may read and write.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;

    #[test]
    fn only_a_directory_of_its_own_comes_with_a_program() {
        let home = tempfile::tempdir().unwrap();
        let make = |path: &str| {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        for path in ["app/.venv/pyvenv.cfg", "app/pyvenv.cfg", "pyvenv.cfg"] {
            make(path);
        }
        let environment: Environment = [("HOME".into(), home.path().as_os_str().to_owned())]
            .into_iter()
            .collect();
        let root = home.path().join("app");
        let found = |program: &str| {
            let program = make(program);
            let context = SandboxContext {
                root: &root,
                cwd: &root,
                programs: vec![&program],
                environment: &environment,
            };
            let found = context.package_directory(&program)?;
            let home = home.path().canonicalize().unwrap();
            Some(found.strip_prefix(home).unwrap().to_owned())
        };
        assert_eq!(found("app/.venv/bin/black"), Some("app/.venv".into()));
        let modules = "lib/node_modules";
        assert_eq!(found("lib/node_modules/.bin/x"), Some(modules.into()));
        // These are in the root, above it, and in a home directory.
        assert_eq!(found("app/bin/x"), None);
        assert_eq!(found("bin/x"), None);
        assert_eq!(found("other/x"), None);
    }

    /// docs/control.md lists what `system` is.
    #[test]
    fn the_documentation_lists_what_is_part_of_the_system() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/control.md");
        let page = fs::read_to_string(page).unwrap();
        let begin = page.find("- **`system`**").unwrap();
        let end = begin + page[begin..].find("\n\n").unwrap();
        let section = &page[begin..end];
        let devices = DEVICES.map(|device| device.trim_start_matches("/dev/"));
        for name in SYSTEM_DIRECTORIES
            .iter()
            .chain(&SYSTEM_CONFIGURATION)
            .chain(&devices)
        {
            assert!(section.contains(&format!("`{name}`")), "{name}");
        }
        let listed = section.split('`').skip(1).step_by(2);
        let from_etc = listed.filter(|name| SYSTEM_CONFIGURATION.contains(name));
        assert_eq!(from_etc.count(), SYSTEM_CONFIGURATION.len());
    }
}
