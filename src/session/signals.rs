//! Signal handling: the first termination signal stops the run gracefully, the second immediately. Ctrl-Z suspends the
//! running programs and toolq. All this happens on a thread of its own, because the others may be blocked.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;
use std::{io, thread};

use rustix::process::{Signal as UnixSignal, getpid, kill_process};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use crate::output::{CommandError, Exit, stdout};
use crate::terminal::ProgressScreen;
use toolq_core::types::HaltCause;
use toolq_engine::RunControl;

/// The signals that stop the run.
const TERMINATION_SIGNALS: [UnixSignal; 4] = [
    UnixSignal::HUP,
    UnixSignal::INT,
    UnixSignal::QUIT,
    UnixSignal::TERM,
];

/// Handles the signals that would otherwise kill toolq.
pub struct SignalHandler {
    run_sender: oneshot::Sender<StoppableRun>,
    termination_signal: Arc<OnceLock<u8>>,
}

/// The run that signals stop, and what is on the terminal meanwhile.
type StoppableRun = (RunControl, Option<ProgressScreen>);

impl SignalHandler {
    /// Installs handlers for all signals except those that were already ignored when toolq started, as under `nohup`.
    /// A signal that comes is kept until [`Self::begin`].
    ///
    /// # Errors
    /// A handler can't be installed, or the thread can't be started.
    pub fn install() -> Result<Self, CommandError> {
        Self::try_install().map_err(|error| {
            let message = format!("failed to install signal handlers: {error}; nothing ran");
            CommandError::resources(message)
        })
    }

    fn try_install() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let listeners = SignalListeners::install()?;
        drop(entered);
        let (run_sender, run_receiver) = oneshot::channel();
        let termination_signal = Arc::<OnceLock<u8>>::default();
        let first_signal = Arc::clone(&termination_signal);
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    if let Ok(run) = run_receiver.await {
                        listeners.handle_signals(run, &first_signal).await;
                    }
                });
            })?;
        Ok(Self {
            run_sender,
            termination_signal,
        })
    }

    /// Returns the cell that will hold the first termination signal.
    pub fn termination_signal(&self) -> Arc<OnceLock<u8>> {
        Arc::clone(&self.termination_signal)
    }

    /// Handles signals from now on, until the program ends.
    pub fn begin(self, control: RunControl, screen: Option<ProgressScreen>) {
        // The thread ends only after this.
        let _ = self.run_sender.send((control, screen));
    }
}

/// What signals arrive at.
struct SignalListeners(Vec<(UnixSignal, Signal)>);

impl SignalListeners {
    fn install() -> io::Result<Self> {
        let wanted = TERMINATION_SIGNALS.into_iter().chain([UnixSignal::TSTP]);
        let listeners = without_ignored(wanted).map(|wanted| Ok((wanted, listen_for(wanted)?)));
        Ok(Self(listeners.collect::<io::Result<_>>()?))
    }

    /// Handles signals until the program ends.
    async fn handle_signals(
        mut self,
        (control, screen): StoppableRun,
        termination_signal: &OnceLock<u8>,
    ) {
        let first = loop {
            match self.next_signal().await {
                UnixSignal::TSTP => suspend_run(&control, screen.as_ref()).await,
                ending => break u8::try_from(ending.as_raw()).unwrap_or_default(),
            }
        };
        let halted_at = Instant::now();
        let _ = termination_signal.set(first);
        control.halt(HaltCause::Signal(first));
        // After Ctrl-C, a pager stays open and may keep reading. The sender of any other signal expects toolq to exit.
        if i32::from(first) != UnixSignal::INT.as_raw() {
            stdout::limit_waiting();
        }
        loop {
            match self.next_signal().await {
                UnixSignal::TSTP => suspend_run(&control, screen.as_ref()).await,
                _ if halted_at.elapsed() < DUPLICATE_SIGNAL_WINDOW => {}
                _ => break,
            }
        }
        control.kill();
        sleep(FORCED_EXIT_TIMEOUT).await;
        exit_now(first);
    }

    async fn next_signal(&mut self) -> UnixSignal {
        poll_fn(|context| {
            let mut listeners = self.0.iter_mut();
            let next = listeners.find_map(|(number, listener)| {
                listener.poll_recv(context).is_ready().then_some(*number)
            });
            next.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

fn listen_for(number: UnixSignal) -> io::Result<Signal> {
    signal(SignalKind::from_raw(number.as_raw()))
}

/// Suspends all running programs and toolq itself until SIGCONT.
async fn suspend_run(control: &RunControl, screen: Option<&ProgressScreen>) {
    control.pause();
    let continued = listen_for(UnixSignal::CONT);
    let stopped = || kill_process(getpid(), UnixSignal::STOP);
    // Remove the bars before the shell gets the terminal, and redraw them afterward.
    let _ = screen.map_or_else(stopped, |screen| screen.suspend(stopped));
    if let Ok(mut continued) = continued {
        // SIGSTOP may take effect a moment later, or never, as for the init process of a container; so don't wait
        // forever.
        let _ = timeout(SUSPEND_TIMEOUT, continued.recv()).await;
    }
    control.resume();
}

/// Exits even if toolq is blocked, for example on a pipe whose reader doesn't read.
#[expect(
    clippy::disallowed_methods,
    reason = "the user asked twice, and there was time to flush"
)]
fn exit_now(signal: u8) -> ! {
    std::process::exit(Exit::Signal(signal).code().into())
}

/// Returns the numbers of the signals that end a command, except those that were already ignored when toolq started, as under
/// `nohup`. To be called before handlers are installed.
#[cfg(feature = "nats")]
pub fn handled_termination_signals() -> Vec<i32> {
    let handled = without_ignored(TERMINATION_SIGNALS.into_iter());
    handled.map(UnixSignal::as_raw).collect()
}

fn without_ignored(signals: impl Iterator<Item = UnixSignal>) -> impl Iterator<Item = UnixSignal> {
    let ignored = ignored_signals();
    signals.filter(move |signal| ignored >> (signal.as_raw() - 1) & 1 == 0)
}

/// Returns a bit mask of the signals that were already ignored when toolq started, from /proc; 0 if that isn't
/// available.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}

// How long a run waits for others when it is stopped.

/// Signals this close together count as one: `timeout` sends TERM to its child and then to the child's process group.
const DUPLICATE_SIGNAL_WINDOW: Duration = Duration::from_millis(50);
/// How long after the second signal toolq may still print results. Then it exits, even if it is blocked.
const FORCED_EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait for our own SIGSTOP to take effect.
const SUSPEND_TIMEOUT: Duration = Duration::from_secs(1);

// Killed attempts return their partial output, and it is printed, before the exit is forced.
const _: () = assert!(FORCED_EXIT_TIMEOUT.as_millis() > toolq_engine::DROP_DEADLINE.as_millis());
