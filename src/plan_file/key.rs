//! The key of digests of secrets. A digest without a key would let a reader of the plan find a short secret by trying.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;

use toolq_core::os::{Environment, create_private_dir};
use toolq_log::sessions_dir;

/// Names the key for plans that are made on one machine and applied on another.
pub const KEY_VARIABLE: &str = "TOOLQ_PLAN_KEY";
/// The shortest key that the variable may hold, in bytes.
const MIN_KEY_BYTES: usize = 16;
/// Number of random bytes of a key that toolq makes.
const RANDOM_KEY_BYTES: usize = 32;
/// The largest key file that is read.
const MAX_KEY_FILE_BYTES: u64 = 4 << 10;

/// The key of a user. Its bytes are never shown.
pub struct PlanKey(Vec<u8>);

impl PlanKey {
    /// Returns the key in the environment or, if there is no key there, in the user's state directory, where it is created
    /// when it is first needed.
    ///
    /// # Errors
    /// Why there is no key.
    pub fn load(environment: &Environment) -> Result<Self, String> {
        if let Some(key) = environment.get_os(KEY_VARIABLE) {
            let key = key.as_encoded_bytes();
            if key.len() < MIN_KEY_BYTES {
                return Err(format!(
                    "{KEY_VARIABLE} has fewer than {MIN_KEY_BYTES} characters"
                ));
            }
            return Ok(Self(key.to_owned()));
        }
        let path = key_path(environment)?;
        let read = read_key(&path).and_then(|key| match key {
            Some(key) => Ok(key),
            None => create_key(&path),
        });
        let key = read.map_err(|error| {
            format!(
                "the key {} can't be used: {error} ({KEY_VARIABLE} takes its place)",
                path.display()
            )
        })?;
        Ok(Self(key))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

fn key_path(environment: &Environment) -> Result<PathBuf, String> {
    let sessions = sessions_dir(environment).map_err(|error| format!("{error}"))?;
    Ok(sessions.with_file_name("plan.key"))
}

/// Reads the key. `None` if there is no such file.
fn read_key(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        let message = "others can read or change it; `chmod 600` it";
        return Err(io::Error::other(message));
    }
    let mut key = Vec::new();
    file.take(MAX_KEY_FILE_BYTES).read_to_end(&mut key)?;
    if key.len() < MIN_KEY_BYTES {
        return Err(io::Error::other("it is too short"));
    }
    Ok(Some(key))
}

/// Makes a key, unless another process has just made one.
fn create_key(path: &Path) -> io::Result<Vec<u8>> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    create_private_dir(dir)?;
    let mut bytes = [0; RANDOM_KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    // Readable by its owner only, and complete when it gets its name.
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    let key = HEXLOWER.encode(&bytes);
    file.write_all(key.as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(key.into_bytes()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            let other = read_key(path)?;
            other.ok_or_else(|| io::Error::other("it was removed"))
        }
        Err(error) => Err(error.error),
    }
}
