//! How a sandbox is sent to a reaper: as strings, each of which begins with a letter.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::sandbox::{NetworkAccess, PathAccess, ProgramSandbox, SandboxPath};

impl ProgramSandbox {
    /// Encodes the sandbox. A path that contains a NUL can't exist, and is left out.
    pub(crate) fn to_strings(&self) -> Vec<CString> {
        let mut texts = vec![tagged(b'B', self.bounds.as_os_str())];
        for path in &self.paths {
            let letter = match (path.access, path.stays_inside) {
                (PathAccess::Read, false) => b'r',
                (PathAccess::ReadSystem, _) => b's',
                (PathAccess::Write, false) => b'w',
                (PathAccess::Device, _) => b'd',
                (PathAccess::Read, true) => b'R',
                (PathAccess::Write, true) => b'W',
            };
            texts.push(tagged(letter, path.path.as_os_str()));
        }
        match &self.network {
            NetworkAccess::None => {}
            NetworkAccess::All => texts.push(tagged(b'a', OsStr::new(""))),
            NetworkAccess::TcpPorts(ports) => {
                let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                texts.push(tagged(b'p', OsStr::new(&ports.join(","))));
            }
        }
        if self.allows_gaps {
            texts.push(tagged(b'g', OsStr::new("")));
        }
        texts
            .into_iter()
            .filter_map(|text| CString::new(text).ok())
            .collect()
    }

    /// Parses what [`Self::to_strings`] returned. Returns `None` if it is malformed.
    pub(crate) fn from_strings(strings: impl Iterator<Item = CString>) -> Option<Self> {
        let mut sandbox = Self {
            paths: Vec::new(),
            bounds: PathBuf::new(),
            network: NetworkAccess::None,
            allows_gaps: false,
        };
        for text in strings {
            let (letter, rest) = text.as_bytes().split_first()?;
            let path = Path::new(OsStr::from_bytes(rest));
            let mut allow = |access, stays_inside| {
                sandbox.paths.push(SandboxPath {
                    path: path.to_owned(),
                    access,
                    stays_inside,
                });
            };
            match letter {
                b'B' => path.clone_into(&mut sandbox.bounds),
                b'r' => allow(PathAccess::Read, false),
                b's' => allow(PathAccess::ReadSystem, false),
                b'w' => allow(PathAccess::Write, false),
                b'd' => allow(PathAccess::Device, false),
                b'R' => allow(PathAccess::Read, true),
                b'W' => allow(PathAccess::Write, true),
                b'a' => sandbox.network = NetworkAccess::All,
                b'p' => sandbox.network = NetworkAccess::TcpPorts(parse_ports(rest)?),
                b'g' => sandbox.allows_gaps = true,
                _ => return None,
            }
        }
        Some(sandbox)
    }
}

fn parse_ports(text: &[u8]) -> Option<Vec<u16>> {
    let text = str::from_utf8(text).ok()?;
    let ports = text.split(',').filter(|port| !port.is_empty());
    ports.map(|port| port.parse().ok()).collect()
}

fn tagged(letter: u8, text: &OsStr) -> Vec<u8> {
    let mut tagged = OsString::from_vec(vec![letter]);
    tagged.push(text);
    tagged.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_survives_the_wire() {
        let paths = [
            ("/usr", PathAccess::ReadSystem, false),
            ("/home", PathAccess::Read, false),
            ("/r", PathAccess::Read, true),
            ("/dev/null", PathAccess::Device, false),
            ("/w", PathAccess::Write, false),
            ("/a b\n", PathAccess::Write, true),
        ];
        let paths = paths.map(|(path, access, stays_inside)| SandboxPath {
            path: path.into(),
            access,
            stays_inside,
        });
        for network in [
            NetworkAccess::None,
            NetworkAccess::All,
            NetworkAccess::TcpPorts(vec![]),
            NetworkAccess::TcpPorts(vec![53, 443]),
        ] {
            for allows_gaps in [false, true] {
                let sandbox = ProgramSandbox {
                    paths: paths.to_vec(),
                    bounds: "/root dir".into(),
                    network: network.clone(),
                    allows_gaps,
                };
                let strings = sandbox.to_strings().into_iter();
                assert_eq!(ProgramSandbox::from_strings(strings), Some(sandbox));
            }
        }
    }
}
