//! What a command that runs calls has beside its engine: threads, a task, who watches stdout, what moves the bars.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::context::Context;
use crate::output::Failure;
use crate::output::stdout;
use crate::terminal::Screen;
use redact::Mask;
use toolq_core::types::{Halt, Tools};
use toolq_engine::{Budgets, Control, EngineSettings, Resolver};

/// Between two pictures of a moving bar.
const FRAME: Duration = Duration::from_millis(100);

/// A task that nobody can resume, since no log tells of it.
pub fn any_task() -> String {
    format!("{:032x}", fastrand::u128(..))
}

/// An engine's settings, where a command says nothing else: without a log, a past, or budgets.
pub fn settings(tools: &Arc<Tools>, mask: &Arc<Mask>, context: &Context) -> EngineSettings {
    EngineSettings {
        tools: Arc::clone(tools),
        jobs: tools.concurrency,
        outputs: None,
        // This very file, also when it was replaced meanwhile.
        supervisor: Some("/proc/self/exe".into()),
        environment: Arc::clone(&context.environment),
        resolver: Resolver::system(),
        mask: Arc::clone(mask),
        task: any_task(),
        budgets: Budgets::default(),
        memory: None,
    }
}

/// The threads that calls run on.
///
/// # Errors
/// There are none.
pub fn build_runtime() -> Result<Runtime, Failure> {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    Builder::new_multi_thread()
        .worker_threads(cores.clamp(2, 8))
        .enable_all()
        .build()
        .map_err(|error| Failure::usage(format!("no threads can be had: {error}")))
}

/// Ends the run once nobody reads its results any more.
pub async fn watch_stdout(control: Control) {
    stdout::abandoned().await;
    control.halt(Halt::OutputLost);
}

/// Moves the bars of `screen` on until it is aborted.
pub fn tick(screen: Screen) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut frames = tokio::time::interval(FRAME);
        loop {
            frames.tick().await;
            screen.tick();
        }
    })
}
