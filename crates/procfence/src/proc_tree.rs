//! Processes as the system shows them, and who is whose child.

use std::fs;
use std::path::Path;

use rustix::process::getpid;

/// A process as the system shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    parent: i32,
    /// This and the session are 0 where their leader is outside of the namespace, as a container's first process may
    /// find its own; `getsid` gives 0 for it, too, which rustix takes for impossible.
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// It has ended, and its parent has not asked how.
    pub(crate) ended: bool,
}

/// Where the relations of processes are read.
pub(crate) enum Kin {
    /// Each process has a list of its children. One's own is exact, since nobody leaves it before he is waited for; it
    /// is also read in no time, where looking at all processes would give somebody who runs away a head start.
    Listed,
    /// From all processes, on a system without such lists.
    Seen(Vec<Process>),
}

impl Kin {
    pub(crate) fn look() -> Self {
        if Path::new("/proc/thread-self/children").exists() {
            Self::Listed
        } else {
            Self::Seen(processes())
        }
    }

    /// The children of a process, those that have ended too.
    pub(crate) fn children(&self, parent: i32) -> Vec<Process> {
        match self {
            Self::Listed => listed(parent).into_iter().map(Process::find).collect(),
            Self::Seen(all) => {
                let all = all.iter().copied();
                all.filter(|process| process.parent == parent).collect()
            }
        }
    }
}

impl Process {
    /// From a line of `/proc/PID/stat`: `PID (NAME) STATE PARENT GROUP SESSION …`. The name may hold anything.
    fn parse(stat: &[u8]) -> Option<Self> {
        let stat = String::from_utf8_lossy(stat);
        let (pid, rest) = stat.split_once(" (")?;
        let mut fields = rest.rsplit_once(") ")?.1.split(' ');
        Some(Self {
            ended: matches!(fields.next()?, "Z" | "X"),
            pid: pid.parse().ok()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
        })
    }

    fn read(folder: &Path) -> Option<Self> {
        Self::parse(&fs::read(folder.join("stat")).ok()?)
    }

    /// The process of this number. Where the system hides more of it, as it may another user's, that is all.
    fn find(pid: i32) -> Self {
        Self::read(Path::new(&format!("/proc/{pid}"))).unwrap_or(Self {
            pid,
            parent: 0,
            group: 0,
            session: 0,
            ended: false,
        })
    }
}

/// Whether /proc shows the processes by the numbers that signals go to. In a namespace of its own that was given another's
/// /proc it doesn't.
pub(crate) fn is_visible() -> bool {
    fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == &*number().to_string())
}

/// This process, as the system shows it.
pub(crate) fn own() -> Option<Process> {
    Process::read(Path::new("/proc/self"))
}

/// The children of this process, those that have ended too.
pub(crate) fn children() -> Vec<Process> {
    Kin::look().children(number())
}

/// This process's own number.
pub(crate) fn number() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// The children of each thread of a process.
fn listed(parent: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{parent}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |list: String| -> Vec<i32> {
        let words = list.split_ascii_whitespace();
        words.filter_map(|number| number.parse().ok()).collect()
    };
    lists.flat_map(numbers).collect()
}

/// All processes of the system. Where /proc can't be read there are none to see.
fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = entries.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit());
    numbered
        .filter_map(|entry| Process::read(&entry.path()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn names_that_look_like_fields() {
        let process = Process::parse(b"42 (a) Z 1 (b)) S 7 8 9 0").unwrap();
        assert_eq!(
            (process.pid, process.parent, process.group, process.ended),
            (42, 7, 8, false)
        );
        assert!(Process::parse(b"42 (dead) Z 1 1 1").unwrap().ended);
    }

    #[test]
    fn lists_say_what_all_processes_say() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let find = |kin: &Kin| {
            let children = kin.children(number()).into_iter();
            let pid = i32::try_from(child.id()).unwrap();
            children
                .filter(|found| found.pid == pid)
                .collect::<Vec<_>>()
        };
        let seen = find(&Kin::Seen(processes()));
        assert_eq!(seen.len(), 1);
        assert_eq!(find(&Kin::look()), seen);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
