//! Builds the Landlock ruleset of a sandbox.

use std::io;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort,
    PathBeneath, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    Scope,
};

use crate::sandbox::{
    CreatedFile, NetworkAccess, OpenedPath, PathAccess, PreparedSandbox, ProgramSandbox,
    SandboxPath,
};

/// The newest version of Landlock whose restrictions are used. Later ones would change what programs can do.
const VERSION: ABI = ABI::V6;

/// Prepares the ruleset, which allows everything in `sandbox`, and nothing else that Landlock knows.
///
/// # Errors
/// The kernel can't do it, and the sandbox doesn't allow gaps; or a system call failed.
pub(crate) fn prepare_ruleset(sandbox: &ProgramSandbox) -> io::Result<PreparedSandbox> {
    let gaps = missing_protections(&sandbox.network);
    if !gaps.is_empty() && !sandbox.allows_gaps {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let level = if sandbox.allows_gaps {
        CompatLevel::BestEffort
    } else {
        CompatLevel::HardRequirement
    };
    let mut builder = RulesetBuilder {
        ruleset: empty_ruleset(&sandbox.network, level).map_err(io::Error::other)?,
        sandbox,
        created_files: Vec::new(),
    };
    for path in &sandbox.paths {
        builder.allow(path)?;
    }
    Ok(PreparedSandbox {
        ruleset: builder.ruleset,
        created_files: builder.created_files,
        allows_gaps: sandbox.allows_gaps,
    })
}

struct RulesetBuilder<'s> {
    ruleset: RulesetCreated,
    sandbox: &'s ProgramSandbox,
    created_files: Vec<CreatedFile>,
}

impl RulesetBuilder<'_> {
    fn allow(&mut self, path: &SandboxPath) -> io::Result<()> {
        let bounds = path.stays_inside.then_some(&*self.sandbox.bounds);
        let opened = match OpenedPath::open(&path.path)? {
            None if path.access == PathAccess::Write && path.stays_inside => {
                let created = CreatedFile::create(&path.path, bounds);
                created.map(|(file, opened)| {
                    self.created_files.push(file);
                    opened
                })
            }
            opened => opened,
        };
        let Some(opened) = opened else {
            return Ok(());
        };
        if bounds.is_some_and(|bounds| !opened.is_inside(bounds)) {
            return Ok(());
        }
        let rule = PathBeneath::new(&opened.descriptor, rights(path.access, opened.is_directory));
        (&mut self.ruleset)
            .add_rule(rule)
            .map_err(io::Error::other)?;
        Ok(())
    }
}

fn empty_ruleset(
    network: &NetworkAccess,
    level: CompatLevel,
) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(level)
        .handle_access(AccessFs::from_all(VERSION))?
        .scope(Scope::from_all(VERSION))?;
    let NetworkAccess::TcpPorts(ports) = network else {
        return ruleset.create();
    };
    let ports = ports
        .iter()
        .map(|port| Ok::<_, RulesetError>(NetPort::new(*port, AccessNet::ConnectTcp)));
    ruleset
        .handle_access(AccessNet::from_all(VERSION))?
        .create()?
        .add_rules(ports)
}

/// Returns what Landlock calls an access. A program that can make device files could read the disk.
fn rights(access: PathAccess, is_directory: bool) -> BitFlags<AccessFs> {
    let rights = match access {
        PathAccess::Read => AccessFs::from_read(VERSION),
        PathAccess::Write => {
            AccessFs::from_all(VERSION)
                & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
        }
        PathAccess::Device => {
            AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
        }
    };
    if is_directory {
        rights
    } else {
        rights & AccessFs::from_file(VERSION)
    }
}

// What the running kernel can't confine. This file contains unsafe code.

#[cfg(target_os = "linux")]
const CREATE_RULESET_VERSION: u32 = 1;

/// Returns what a sandbox with this access can't keep a program from on this system, each as the end of "this system can't
/// confine".
pub fn missing_protections(network: &NetworkAccess) -> Vec<&'static str> {
    #[cfg(target_os = "linux")]
    {
        missing_in(landlock_version(), network)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = network;
        vec!["programs (that needs Linux)"]
    }
}

/// Returns the version of Landlock, or 0 if the kernel doesn't support it. The `landlock` crate doesn't expose it.
#[cfg(target_os = "linux")]
fn landlock_version() -> libc::c_long {
    // SAFETY: with this flag, the kernel reads nothing.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    version.max(0)
}

/// As [`missing_protections`], for this version of Landlock.
#[cfg(target_os = "linux")]
fn missing_in(version: libc::c_long, network: &NetworkAccess) -> Vec<&'static str> {
    if version == 0 {
        return vec![
            "files (its kernel lacks Landlock, which needs Linux 6.2, or has it switched off)",
        ];
    }
    let limits_ports = matches!(network, NetworkAccess::TcpPorts(_));
    let gaps = [
        (3, true, "the truncation of files (that needs Linux 6.2)"),
        (4, limits_ports, "TCP ports (that needs Linux 6.7)"),
        (5, true, "requests to device files (that needs Linux 6.10)"),
        (
            6,
            true,
            "signals and abstract Unix sockets (that needs Linux 6.12)",
        ),
    ];
    let missing = gaps
        .into_iter()
        .filter(|(since, matters, _)| version < *since && *matters);
    missing.map(|(_, _, what)| what).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_lacks_what_it_came_before() {
        let counts = |network: NetworkAccess| {
            [0, 1, 2, 3, 4, 5, 6, 7, 20].map(|version| missing_in(version, &network).len())
        };
        assert_eq!(counts(NetworkAccess::None), [1, 3, 3, 2, 2, 1, 0, 0, 0]);
        let ports = NetworkAccess::TcpPorts(vec![443]);
        assert_eq!(counts(ports), [1, 4, 4, 3, 2, 1, 0, 0, 0]);
    }
}
