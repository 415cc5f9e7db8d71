//! Which process this is, and what another toolq, killed since, has left running: nothing, but for the moment that its
//! keepers need to end it.

use std::fs;
use std::io;

/// Before what names, in the arguments of its keepers, the toolq that they are of.
const OWNER: &str = "of=";

/// A process as no other one is: numbers are used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since the system did.
    pub started: Option<u64>,
    /// Which start of the system that was.
    pub boot_id: Option<String>,
}

impl Process {
    /// This one. What the system doesn't tell is left out.
    pub fn current() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Self {
            pid: std::process::id(),
            started: stat.as_deref().and_then(started),
            boot_id: boot_id.map(|id| id.trim().to_owned()),
        }
    }

    /// Whether it is gone, as far as this system can tell: one that runs in a container or on another machine looks so,
    /// too. False where too little is known of it.
    pub fn has_ended(&self) -> bool {
        let (Some(began), Some(boot)) = (self.started, &self.boot_id) else {
            return false;
        };
        let now = Self::current().boot_id;
        if now.as_ref() != Some(boot) {
            return now.is_some();
        }
        match fs::read_to_string(format!("/proc/{}/stat", self.pid)) {
            // What has ended and was not waited for keeps its number.
            Ok(stat) => started(&stat) != Some(began) || is_zombie(&stat),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// The argument by which keepers are known to be of this process.
    pub fn argument(&self) -> String {
        format!("{OWNER}{}-{}", self.pid, self.started.unwrap_or_default())
    }

    /// A keeper of this process, which itself has ended, that still lives. As long as there is one, something that this
    /// process has started may live, too.
    pub fn survivor(&self) -> Option<u32> {
        // What another start of the system has left is nothing.
        if self.started.is_none() || self.boot_id != Self::current().boot_id {
            return None;
        }
        let argument = self.argument();
        let mut processes = fs::read_dir("/proc").ok()?.flatten();
        processes.find_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok()?;
            let arguments = fs::read(process.path().join("cmdline")).ok()?;
            let mut arguments = arguments.split(|byte| *byte == 0);
            arguments
                .any(|found| found == argument.as_bytes())
                .then_some(pid)
        })
    }
}

/// The twenty-second word of `/proc/self/stat`. The second, a program's name, may hold spaces and brackets.
fn started(stat: &str) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(") ")?;
    behind.split(' ').nth(19)?.parse().ok()
}

/// By the third word of `/proc/N/stat`.
fn is_zombie(stat: &str) -> bool {
    let behind = stat.rsplit_once(") ");
    behind.is_some_and(|(_, behind)| behind.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_ended() {
        let this = Process::current();
        assert!(!this.has_ended());
        let earlier = Process {
            started: this.started.map(|ticks| ticks + 1),
            ..this.clone()
        };
        let before = Process {
            boot_id: Some("another".to_owned()),
            ..this.clone()
        };
        assert!(earlier.has_ended() && before.has_ended());
        let unknown = Process {
            started: None,
            pid: u32::MAX,
            ..this
        };
        assert!(!unknown.has_ended());
        assert!(is_zombie("7 (a) b) Z 1") && !is_zombie("7 (Z) S 1"));
    }

    #[test]
    fn a_name_with_brackets_is_passed_over() {
        let rest: Vec<String> = (3..=22).map(|word| word.to_string()).collect();
        let stat = format!("1 (a) b) {} 23 24\n", rest.join(" "));
        assert_eq!(started(&stat), Some(22));
    }
}
