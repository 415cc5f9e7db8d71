//! The paths that `system` in a sandbox includes.

/// Where programs, their libraries and their data are installed.
pub(crate) const SYSTEM_DIRECTORIES: [&str; 9] = [
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
pub(crate) const SYSTEM_CONFIGURATION: [&str; 33] = [
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
pub(crate) const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

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
