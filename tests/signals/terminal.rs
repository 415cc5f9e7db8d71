//! The same keys on a terminal: Ctrl-C and Ctrl-Z reach toolq by its terminal, which it leaves as it found it.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::thread::{self, sleep};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Signal, ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::tcgetattr;

use super::started::{Marked, Started, answer, ids, until};

/// A terminal, and what was written to it.
struct Terminal {
    keys: File,
    end: OwnedFd,
    screen: thread::JoinHandle<String>,
}

impl Terminal {
    /// Starts toolq with its progress on the terminal and its results in a pipe.
    fn start(marked: Marked) -> (Self, Started) {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let end = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let mut command = marked.command(&["--progress", "bar"]);
        command.stderr(end.try_clone().unwrap());
        // SAFETY: both are single calls of the system, which a forked child may make.
        unsafe {
            command.pre_exec(|| {
                setsid()?;
                Ok(ioctl_tiocsctty(rustix::stdio::stderr())?)
            });
        }
        let child = command.spawn().unwrap();
        let keys = File::from(keys);
        let mut shown = keys.try_clone().unwrap();
        let screen = thread::spawn(move || {
            let mut screen = Vec::new();
            // The last one who has the other end open leaves by an error.
            let _ = shown.read_to_end(&mut screen);
            String::from_utf8_lossy(&screen).into_owned()
        });
        let terminal = Self { keys, end, screen };
        (terminal, marked.started(child))
    }

    fn press(&mut self, key: u8) {
        self.keys.write_all(&[key]).unwrap();
    }

    fn modes(&self) -> String {
        format!("{:?}", tcgetattr(&self.end).unwrap())
    }

    fn screen(self) -> String {
        drop(self.end);
        self.screen.join().unwrap()
    }
}

/// FAULTS 60, 62, 68.
#[test]
fn keys_stop_and_end_a_run() {
    let marked = Marked::new().stdin(answer("a", &["hang"; 8]));
    let (mut terminal, started) = Terminal::start(marked);
    let modes = terminal.modes();
    started.wait_for_calls(3);
    terminal.press(b'Z' & 0x1f);
    let stat = format!("/proc/{}/stat", started.child.id());
    until("toolq stops", || {
        fs::read_to_string(&stat).unwrap().contains(") T ")
    });
    started.signal(Signal::CONT);
    sleep(Duration::from_millis(100));
    terminal.press(b'C' & 0x1f);
    let ended = started.end();
    assert_eq!(ended.code, Some(130));
    assert_eq!(ids(&ended.stdout).len(), 8);
    assert_eq!(ended.count("interrupted"), 3);
    ended.assert_log_is_whole();
    assert_eq!(terminal.modes(), modes);
    let screen = terminal.screen();
    assert!(screen.contains("3 interrupted, 5 not executed"), "{screen}");
    // Neither a hidden cursor nor another screen is left behind.
    assert!(!screen.contains("\x1b[?25l") || screen.contains("\x1b[?25h"));
    assert!(!screen.contains("\x1b[?1049h"));
}
