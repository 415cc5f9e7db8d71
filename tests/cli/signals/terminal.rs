//! Ctrl-C and Ctrl-Z on a terminal, which toolq must leave in its original state.

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

use super::marked_run::{MarkedRun, MarkedSandbox, response_with_calls, result_ids};
use crate::support::waiting::wait_until;

/// A pseudoterminal, and a thread that collects what is written to it.
struct PseudoTerminal {
    controller: File,
    tty: OwnedFd,
    screen_reader: thread::JoinHandle<String>,
}

impl PseudoTerminal {
    /// Starts toolq with its progress on the terminal and its results on a pipe.
    fn start_run(sandbox: MarkedSandbox, progress: &str) -> (Self, MarkedRun) {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let tty = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let mut command = sandbox.command(&["--progress", progress]);
        command.stderr(tty.try_clone().unwrap());
        // SAFETY: both are plain system calls, which are async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                setsid()?;
                Ok(ioctl_tiocsctty(rustix::stdio::stderr())?)
            });
        }
        let child = command.spawn().unwrap();
        let controller = File::from(controller);
        let mut reader = controller.try_clone().unwrap();
        let screen = thread::spawn(move || {
            let mut screen = Vec::new();
            // When the last process closes the other end, this fails with EIO.
            let _ = reader.read_to_end(&mut screen);
            String::from_utf8_lossy(&screen).into_owned()
        });
        let terminal = Self {
            controller,
            tty,
            screen_reader: screen,
        };
        (terminal, sandbox.into_run(child))
    }

    fn press_key(&mut self, key: u8) {
        self.controller.write_all(&[key]).unwrap();
    }

    fn modes(&self) -> String {
        format!("{:?}", tcgetattr(&self.tty).unwrap())
    }

    fn close_and_read_screen(self) -> String {
        drop(self.tty);
        self.screen_reader.join().unwrap()
    }
}

/// The terminal's settings, cursor and screen are as they were before. A program has no terminal, and a session of its
/// own.
#[test]
fn ctrl_z_suspends_and_ctrl_c_ends_a_run() {
    let sandbox = MarkedSandbox::new().stdin(response_with_calls("a", &["hang"; 8]));
    let (mut terminal, run) = PseudoTerminal::start_run(sandbox, "bar");
    let modes = terminal.modes();
    run.wait_for_calls(3);
    terminal.press_key(b'Z' & 0x1f);
    let stat = format!("/proc/{}/stat", run.child.id());
    wait_until("toolq stops", || {
        fs::read_to_string(&stat).unwrap().contains(") T ")
    });
    run.signal(Signal::CONT);
    sleep(Duration::from_millis(100));
    terminal.press_key(b'C' & 0x1f);
    let output = run.wait_for_output();
    assert_eq!(output.code, Some(130));
    assert_eq!(result_ids(&output.stdout).len(), 8);
    assert_eq!(output.count_status("interrupted"), 3);
    output.assert_log_complete();
    assert_eq!(terminal.modes(), modes);
    let screen = terminal.close_and_read_screen();
    assert!(
        screen.contains("3 failed (interrupted), 5 skipped (not executed)"),
        "{screen}"
    );
    // The cursor is visible again, and the alternate screen was never used.
    assert!(!screen.contains("\x1b[?25l") || screen.contains("\x1b[?25h"));
    assert!(!screen.contains("\x1b[?1049h"));
}

/// A build server's log may come from a terminal, and a dumb terminal can't move its cursor.
#[test]
fn bars_are_drawn_on_a_terminal_but_not_in_ci_or_on_a_dumb_one() {
    for (variables, has_bars) in [
        (&[("TERM", "xterm")][..], true),
        (&[("TERM", "xterm"), ("CI", "true")], false),
        (&[("TERM", "dumb")], false),
    ] {
        let mut sandbox = MarkedSandbox::new().stdin(response_with_calls("a", &["times_out"; 2]));
        for (name, value) in variables {
            sandbox.toolq = sandbox.toolq.env(name, value);
        }
        let (terminal, run) = PseudoTerminal::start_run(sandbox, "auto");
        run.wait_for_output();
        let screen = terminal.close_and_read_screen();
        let moves_cursor = screen.contains("\x1b[2K") || screen.contains("\x1b[1A");
        assert_eq!(moves_cursor, has_bars, "{variables:?}: {screen:?}");
        assert!(screen.contains("times_out"), "{screen:?}");
    }
}
