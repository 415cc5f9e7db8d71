//! Restricts this process with Landlock: which files it can write, and which processes it can signal. It does so for
//! files that are reached in any way, also through `/proc/PID/root` and device files. This file contains unsafe code.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, openat};

const CREATE_RULESET_VERSION: u32 = 1;

/// Device files that every program may write.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// How much depends on Landlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// The rest of the file system is read-only anyway, and there is no network. Without Landlock, devices, pipes and
    /// other processes stay within reach.
    BesideMounts,
    /// Nothing else protects the file system and the network.
    Alone,
}

impl Strictness {
    /// The oldest version that can do what is needed: 2 can allow renaming (Linux 5.19), and 3 knows `truncate` (6.2).
    fn required_version(self) -> libc::c_long {
        match self {
            Self::BesideMounts => 2,
            Self::Alone => 3,
        }
    }

    /// The changes that are forbidden outside of what can be written.
    fn restricted_changes(self) -> BitFlags<AccessFs> {
        match self {
            Self::BesideMounts => {
                AccessFs::WriteFile | AccessFs::Refer | AccessFs::MakeChar | AccessFs::MakeBlock
            }
            Self::Alone => AccessFs::from_write(ABI::V3),
        }
    }

    /// Returns a ruleset that allows none of these changes. If the kernel supports it, signals (Linux 6.12) and, with
    /// [`Self::Alone`], TCP (6.7) are restricted, too.
    fn empty_ruleset(self) -> Result<RulesetCreated, RulesetError> {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(self.restricted_changes())?
            .scope(Scope::from_all(ABI::V6))?;
        match self {
            Self::BesideMounts => ruleset.create(),
            Self::Alone => ruleset
                .handle_access(AccessNet::from_all(ABI::V4))?
                .create(),
        }
    }
}

/// Lets this process, and all that it starts, write only below `writable`, and signal only each other.
///
/// # Errors
/// The kernel doesn't have Landlock, or with [`Strictness::Alone`], not enough of it.
pub(crate) fn restrict(writable: &[PathBuf], strictness: Strictness) -> io::Result<()> {
    if version() < strictness.required_version() {
        return Err(io::Error::other("it lacks Landlock, or has an old one"));
    }
    let changes = strictness.restricted_changes();
    let mut ruleset = strictness.empty_ruleset().map_err(io::Error::other)?;
    allow(&mut ruleset, Path::new("/"), AccessFs::Refer.into())?;
    for directory in writable {
        let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
        allow(&mut ruleset, directory, changes & !devices)?;
    }
    for device in DEVICES {
        let writes = changes & (AccessFs::WriteFile | AccessFs::Truncate);
        match allow(&mut ruleset, Path::new(device), writes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            allowed => allowed?,
        }
    }
    ruleset.restrict_self().map(drop).map_err(io::Error::other)
}

/// Returns the version of Landlock, or 0 if the kernel doesn't support it. The `landlock` crate doesn't expose it.
pub(crate) fn version() -> libc::c_long {
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

/// Allows `changes` to everything below `path`.
fn allow(ruleset: &mut RulesetCreated, path: &Path, changes: BitFlags<AccessFs>) -> io::Result<()> {
    let opened = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let added = ruleset.add_rule(PathBeneath::new(opened, changes));
    added.map(drop).map_err(io::Error::other)
}
