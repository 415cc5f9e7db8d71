//! Signals to toolq: the first of those that end it ends the run politely, the second at once. Ctrl-Z stops what runs,
//! and itself.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use rustix::process::{Signal as Sent, getpid, kill_process};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

use crate::output::Exit;
use crate::terminal::Screen;
use toolq_core::types::Halt;
use toolq_engine::Control;

/// Those that end the run.
const ENDING: [Sent; 4] = [Sent::HUP, Sent::INT, Sent::QUIT, Sent::TERM];
/// Signals so close together are one: `timeout` sends TERM to its program and then to the group of it.
const SAME: Duration = Duration::from_millis(50);
/// How long after the second signal toolq may still answer. Then it ends whoever it waits for.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long toolq may take to be stopped, once it told itself to.
const STOPPING: Duration = Duration::from_secs(1);

/// The signals that toolq hears from now on, instead of dying of them.
pub struct Signals {
    heard: Vec<(Sent, Signal)>,
    ended_by: Arc<OnceLock<u8>>,
}

/// Who writes a file beyond `ulimit -f` is sent a signal. From now on the write fails instead of ending the program.
pub fn survive_file_limit() {
    let Ok(runtime) = Builder::new_current_thread().enable_io().build() else {
        return;
    };
    let _entered = runtime.enter();
    // What catches it stays when the runtime is gone.
    let _ = hear(Sent::XFSZ);
}

impl Signals {
    /// Catches what toolq was not told to ignore, as by `nohup`. Needs a runtime.
    ///
    /// # Errors
    /// The system refuses.
    pub fn catch() -> io::Result<Self> {
        let ignored = ignored();
        let wanted = ENDING.into_iter().chain([Sent::TSTP]);
        let wanted = wanted.filter(|wanted| ignored >> (wanted.as_raw() - 1) & 1 == 0);
        let heard = wanted.map(|wanted| Ok((wanted, hear(wanted)?)));
        Ok(Self {
            heard: heard.collect::<io::Result<_>>()?,
            ended_by: Arc::default(),
        })
    }

    /// Where the first signal that ends the run will stand.
    pub fn ended_by(&self) -> Arc<OnceLock<u8>> {
        Arc::clone(&self.ended_by)
    }

    /// Does what signals say, as long as the program runs.
    pub async fn obey(mut self, control: Control, screen: Option<Screen>) {
        let first = loop {
            match self.next().await {
                Sent::TSTP => stop(&control, screen.as_ref()).await,
                ending => break u8::try_from(ending.as_raw()).unwrap_or_default(),
            }
        };
        let begun = Instant::now();
        let _ = self.ended_by.set(first);
        control.halt(Halt::Signal(first));
        loop {
            match self.next().await {
                Sent::TSTP => stop(&control, screen.as_ref()).await,
                _ if begun.elapsed() < SAME => {}
                _ => break,
            }
        }
        control.halt_now();
        sleep(PATIENCE).await;
        leave(first);
    }

    async fn next(&mut self) -> Sent {
        poll_fn(|context| {
            let mut heard = self.heard.iter_mut();
            let next = heard
                .find_map(|(number, heard)| heard.poll_recv(context).is_ready().then_some(*number));
            next.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

fn hear(wanted: Sent) -> io::Result<Signal> {
    signal(SignalKind::from_raw(wanted.as_raw()))
}

/// Stops everything and toolq itself, until it is told to continue.
async fn stop(control: &Control, screen: Option<&Screen>) {
    control.pause();
    let continued = hear(Sent::CONT);
    let stopped = || kill_process(getpid(), Sent::STOP);
    // Bars are taken from the terminal before it is somebody else's, and drawn again after.
    let _ = screen.map_or_else(stopped, |screen| screen.suspend(stopped));
    if let Ok(mut continued) = continued {
        // The stop itself may come a moment later. Where it doesn't, as for the first process of a container, that is
        // no reason to wait for ever.
        let _ = timeout(STOPPING, continued.recv()).await;
    }
    control.resume();
}

/// Ends the process whatever it waits for, as for a reader of its results who doesn't read.
#[expect(
    clippy::disallowed_methods,
    reason = "asked for twice, and all that could be flushed had its time"
)]
fn leave(signal: u8) -> ! {
    std::process::exit(Exit::Signal(signal).code().into())
}

/// The signals that toolq was started to ignore, a bit each, as the system shows them. None where it doesn't.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}
