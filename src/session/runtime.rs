//! What commands need to run calls in addition to the engine: their setup, the tokio runtime, and background tasks.

use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{io, thread};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::context::CommandContext;
use crate::output::{CommandError, stdout};
use crate::settings::CallSetup;
use crate::terminal::ProgressScreen;
use toolq_core::types::{HaltCause, ToolsConfig};
use toolq_engine::{RunControl, SUPERVISOR_PROGRAM, check_machine};

/// Threads that a run may start in addition to its workers: for signals, stdin, event files and blocking operations.
const OTHER_THREADS: usize = 5;
/// Threads that `--otlp` starts in addition: one for spans, one for metrics, and one that waits for both at the end.
const EXPORT_THREADS: usize = 3;
/// The number of descriptors that the runtimes of calls and of signals open, and some that the first call needs.
const RUNTIME_DESCRIPTORS: usize = 12;
/// Time between two frames of a progress bar.
const FRAME_INTERVAL: Duration = Duration::from_millis(100);

/// Sets up how the calls of a command run. Warns if a sandbox isn't applied as a whole, as its `missing: warn` allows.
///
/// # Errors
/// The processes of a tool couldn't all be ended.
pub fn set_up_calls(
    tools: Arc<ToolsConfig>,
    jobs: Option<NonZeroUsize>,
    context: &CommandContext,
) -> Result<CallSetup, CommandError> {
    if let Some(warning) = check_machine(&tools)? {
        context.stderr.print_warning(&warning);
    }
    Ok(new_call_setup(tools, jobs, context))
}

/// Returns how the calls of a command run, for one that has no calls.
pub fn new_call_setup(
    tools: Arc<ToolsConfig>,
    jobs: Option<NonZeroUsize>,
    context: &CommandContext,
) -> CallSetup {
    let supervisor = Some(SUPERVISOR_PROGRAM.into());
    CallSetup::new(tools, jobs, &context.environment, supervisor)
}

/// Builds the tokio runtime that calls run on, and checks that what `is_traced` needs can be started, too.
///
/// # Errors
/// The system has no threads or descriptors left.
pub fn build_runtime(is_traced: bool) -> Result<Runtime, CommandError> {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let workers = cores.clamp(2, 8);
    let others = OTHER_THREADS + if is_traced { EXPORT_THREADS } else { 0 };
    check_descriptors()
        .and_then(|()| check_threads(workers + others))
        .and_then(|()| {
            Builder::new_multi_thread()
                .worker_threads(workers)
                .enable_all()
                .build()
        })
        .map_err(|error| {
            let message = format!("failed to start worker threads: {error}; nothing ran");
            CommandError::resources(message)
        })
}

/// Checks that the descriptors of a runtime can be opened. Tokio panics if it can't open the pipe for signals.
fn check_descriptors() -> io::Result<()> {
    let mut opened = Vec::with_capacity(RUNTIME_DESCRIPTORS);
    for _ in 0..RUNTIME_DESCRIPTORS {
        opened.push(File::open("/dev/null")?);
    }
    Ok(())
}

/// Checks that this many threads can be started, by starting them. Tokio panics if it can't start one of its own, and
/// would leave the others running.
fn check_threads(count: usize) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel::<()>();
    let receiver = Arc::new(Mutex::new(receiver));
    let mut threads = Vec::with_capacity(count);
    let started = (0..count).try_for_each(|_| {
        let receiver = Arc::clone(&receiver);
        // Each thread lives until the sender is dropped, so that all of them exist at once.
        let thread = thread::Builder::new().stack_size(64 << 10).spawn(move || {
            let receiver = receiver.lock();
            // The sender never sends, so this ends with its drop.
            let _ = receiver.recv();
        })?;
        threads.push(thread);
        Ok(())
    });
    drop(sender);
    for thread in threads {
        // These threads don't panic.
        let _ = thread.join();
    }
    started
}

/// Halts the run when the reader of stdout is gone.
pub async fn halt_when_stdout_closes(control: RunControl) {
    stdout::wait_until_closed().await;
    control.halt(HaltCause::OutputLost);
}

/// Starts a task that redraws the bars of `screen` at intervals, until it is aborted.
pub fn spawn_ticker(screen: ProgressScreen) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut frames = tokio::time::interval(FRAME_INTERVAL);
        loop {
            frames.tick().await;
            screen.tick();
        }
    })
}
