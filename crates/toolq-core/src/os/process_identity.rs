//! Identifies toolq processes.

use std::fs;
use std::io;

/// Prefix of the command-line argument of a reaper that tells people which process owns it.
const OWNER_PREFIX: &str = "of=";

/// Identifies a process uniquely, even though pids are reused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// When the process started, in clock ticks since boot.
    pub start_ticks: Option<u64>,
    /// The boot during which it started.
    pub boot_id: Option<String>,
}

impl ProcessIdentity {
    /// Returns the identity of the current process. What the system doesn't provide is left out.
    pub fn current() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Self {
            pid: std::process::id(),
            start_ticks: stat.as_deref().and_then(parse_start_ticks),
            boot_id: boot_id.map(|id| id.trim().to_owned()),
        }
    }

    /// Whether the process is gone, as far as this system can tell. A process in another container or on another
    /// machine also looks gone. Returns false if too little is known about the process.
    pub fn has_exited(&self) -> bool {
        let (Some(start_ticks), Some(boot_id)) = (self.start_ticks, &self.boot_id) else {
            return false;
        };
        let current_boot_id = Self::current().boot_id;
        if current_boot_id.as_ref() != Some(boot_id) {
            return current_boot_id.is_some();
        }
        match fs::read_to_string(format!("/proc/{}/stat", self.pid)) {
            // A zombie keeps its pid until it is reaped.
            Ok(stat) => parse_start_ticks(&stat) != Some(start_ticks) || is_zombie(&stat),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Returns the argument that marks reapers as belonging to this process.
    pub fn reaper_argument(&self) -> String {
        format!(
            "{OWNER_PREFIX}{}-{}",
            self.pid,
            self.start_ticks.unwrap_or_default()
        )
    }
}

/// Parses field 22 of `/proc/N/stat`. Field 2, the program name, may contain spaces and parentheses.
fn parse_start_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(19)?.parse().ok()
}

/// Whether field 3 of `/proc/N/stat` says that the process has exited.
fn is_zombie(stat: &str) -> bool {
    let split = stat.rsplit_once(") ");
    split.is_some_and(|(_, fields)| fields.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exited_process_is_recognized() {
        let this = ProcessIdentity::current();
        assert!(!this.has_exited());
        let earlier = ProcessIdentity {
            start_ticks: this.start_ticks.map(|ticks| ticks + 1),
            ..this.clone()
        };
        let before = ProcessIdentity {
            boot_id: Some("another".to_owned()),
            ..this.clone()
        };
        assert!(earlier.has_exited() && before.has_exited());
        let unknown = ProcessIdentity {
            start_ticks: None,
            pid: u32::MAX,
            ..this
        };
        assert!(!unknown.has_exited());
        assert!(is_zombie("7 (a) b) Z 1") && !is_zombie("7 (Z) S 1"));
    }

    #[test]
    fn a_program_name_with_parentheses_is_skipped() {
        let rest: Vec<String> = (3..=22).map(|word| word.to_string()).collect();
        let stat = format!("1 (a) b) {} 23 24\n", rest.join(" "));
        assert_eq!(parse_start_ticks(&stat), Some(22));
    }
}
