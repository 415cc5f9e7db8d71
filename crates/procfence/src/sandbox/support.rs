//! What the running kernel can't confine. This file contains unsafe code.

use crate::sandbox::NetworkAccess;

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
