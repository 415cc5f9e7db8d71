//! Serves the calls of a connection until it ends, and says why it did.

use std::mem;
use std::pin::pin;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::{ConnectionRequest, ConnectionTask, Phase, Waiters};
use crate::command::ChildExit;
use crate::mcp::incoming::CallReply;
use crate::timing::PROBE_TIMEOUT;
use toolq_core::text::{format_count, format_duration};
use toolq_core::types::{CallEnding, ServerEndCause, TransportError};

/// After this many lines at once, the task yields to others.
const MAX_LINES_AT_ONCE: usize = 64;

/// Why a connection ends.
#[derive(Debug)]
enum ConnectionEnd {
    /// The server has ended, or closed its stdout or stdin. Says which.
    ServerEnded(&'static str),
    /// The run has ended, so no more calls will come.
    RunEnded,
    /// There were no calls for a while.
    Idle,
    /// The connection can't continue. Says why.
    Failed(String),
}

impl ConnectionEnd {
    fn describe(&self) -> &str {
        match self {
            Self::ServerEnded(why) => why,
            Self::RunEnded => "the run has ended",
            Self::Idle => "the server had no calls",
            Self::Failed(why) => why,
        }
    }

    fn cause(&self) -> ServerEndCause {
        match self {
            Self::ServerEnded(_) => ServerEndCause::Exited,
            Self::RunEnded => ServerEndCause::RunEnded,
            Self::Idle => ServerEndCause::Idle,
            Self::Failed(_) => ServerEndCause::GivenUp,
        }
    }

    /// Returns what the log says beside the cause, if that leaves anything open. `detail` is the masked description.
    fn explain(&self, exit: &ChildExit, detail: &str) -> Option<String> {
        match self {
            Self::ServerEnded(_) => Some(describe_exit(exit, detail)),
            Self::RunEnded | Self::Idle => None,
            Self::Failed(_) => Some(detail.to_owned()),
        }
    }
}

impl ConnectionTask {
    /// Serves calls until the server is gone or no more calls can come.
    pub(super) async fn run(mut self, mut requests: mpsc::UnboundedReceiver<ConnectionRequest>) {
        // A caller opens a connection to make a request. The request is taken first, so that its reply can say why the
        // server is unreachable.
        if let Some(first) = requests.recv().await {
            self.handle_request(first);
        }
        let end = self.serve(&mut requests).await;
        let has_ended = matches!(end, ConnectionEnd::ServerEnded(_));
        let was_not_ready = self.falls_back && self.identity.is_none();
        self.state
            .has_failed_probe
            .store(was_not_ready, Ordering::SeqCst);
        if has_ended && (self.phase == Phase::Proven || was_not_ready) {
            self.state.may_be_replaced.store(true, Ordering::SeqCst);
        }
        requests.close();
        self.record_pid().await;
        self.take_last_requests(&mut requests);
        let mut waiters = self.take_waiters();
        // Callers that wait need to know why the server is gone. If there are none, it is ended at once.
        let is_awaited = !waiters.is_empty();
        let stderr = if is_awaited {
            self.transport.read_stderr_tail().await
        } else {
            String::new()
        };
        let stderr = self.mask.apply(&stderr).into_owned();
        let detail = self.mask.apply(end.describe()).into_owned();
        let lost = |detail: String| CallReply::Lost {
            detail,
            stderr: stderr.clone(),
        };
        let has_exited = is_awaited && self.transport.has_exited().await;
        if !has_exited {
            // The callers don't have to wait until it has.
            mem::take(&mut waiters).reply_to_all(|| match &self.failure {
                Some(error) => CallReply::Failed(TransportError {
                    detail: detail.clone(),
                    ..error.clone()
                }),
                None => lost(detail.clone()),
            });
        }
        let strays = self.session.strays();
        let (exit, saved_stderr) = self.transport.end(&self.control).await;
        let why = end.explain(&exit, &detail);
        self.life
            .record_end(end.cause(), why, &exit, strays, saved_stderr);
        waiters.reply_to_all(|| match exit {
            ChildExit::NotStarted(errno) | ChildExit::NotConfined(errno) => {
                CallReply::NotStarted(errno)
            }
            _ => lost(describe_exit(&exit, &detail)),
        });
    }

    /// Records the server's process, and that it was ready if it ever was.
    async fn record_pid(&mut self) {
        if self.life.is_recorded {
            return;
        }
        if self.phase >= Phase::Ready {
            self.record_ready().await;
        } else {
            self.life.set_pid(self.transport.pid().await);
        }
    }

    /// Takes the requests that came before callers could know that the connection has ended.
    fn take_last_requests(&mut self, requests: &mut mpsc::UnboundedReceiver<ConnectionRequest>) {
        while let Ok(request) = requests.try_recv() {
            match request {
                ConnectionRequest::Call(call) => self.waiting.push(call),
                ConnectionRequest::ListTools(reply) => self.listeners.push(reply),
                ConnectionRequest::Cancel { .. } => {}
            }
        }
    }

    fn take_waiters(&mut self) -> Waiters {
        let running = mem::take(&mut self.running).into_values();
        Waiters {
            calls: mem::take(&mut self.waiting)
                .into_iter()
                .chain(running)
                .collect(),
            listeners: mem::take(&mut self.listeners),
        }
    }

    /// Serves calls, and returns why the connection ends.
    async fn serve(
        &mut self,
        requests: &mut mpsc::UnboundedReceiver<ConnectionRequest>,
    ) -> ConnectionEnd {
        let begin = Instant::now();
        let mut is_probing = true;
        let control = self.control.clone();
        let mut killed = pin!(control.wait_for_kill());
        loop {
            if self.phase >= Phase::Ready && !self.life.is_recorded {
                self.record_ready().await;
            }
            self.transport.send_output(&mut self.session);
            let idle = self.idle.filter(|_| self.is_unused());
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => {
                        self.handle_request(request);
                        // Calls that have come together leave together.
                        while let Ok(request) = requests.try_recv() {
                            self.handle_request(request);
                        }
                    }
                    None if self.state.is_expired.load(Ordering::SeqCst) => {
                        return ConnectionEnd::Failed(self.expiry.to_owned());
                    }
                    None => return ConnectionEnd::RunEnded,
                },
                incoming = self.transport.next() => {
                    let Some(incoming) = incoming else {
                        return ConnectionEnd::ServerEnded(self.transport.describe_end());
                    };
                    let is_flood = incoming.len() >= MAX_LINES_AT_ONCE;
                    for item in incoming {
                        if let Err(why) = self.receive(item) {
                            return ConnectionEnd::Failed(why);
                        }
                    }
                    if is_flood {
                        yield_now().await;
                    }
                }
                () = sleep_until(begin + PROBE_TIMEOUT.min(self.startup / 2)), if is_probing && self.identity.is_none() => {
                    is_probing = false;
                    self.session.give_up_probe();
                }
                () = sleep_until(begin + self.startup), if self.phase < Phase::Ready => {
                    let startup = format_duration(self.startup);
                    let strays = self.session.strays();
                    let strays = match strays.late_answers + strays.unknown_answers {
                        0 => String::new(),
                        count => format!("; {} had the id of no open request", format_count(count, "answer")),
                    };
                    let why = format!("the server wasn't ready after {startup}{strays}");
                    return ConnectionEnd::Failed(why);
                }
                () = sleep_until(self.last_use + idle.unwrap_or_default()), if idle.is_some() => {
                    let mut was_idle = self.state.was_idle.lock();
                    if requests.is_empty() {
                        *was_idle = true;
                        return ConnectionEnd::Idle;
                    }
                }
                () = &mut killed => {
                    return ConnectionEnd::Failed("the run was killed".to_owned());
                }
            }
        }
    }

    /// Records that the server is ready.
    async fn record_ready(&mut self) {
        self.life.set_pid(self.transport.pid().await);
        let announcement = self.announcement.as_deref();
        self.life
            .record_ready(self.identity.as_ref(), announcement, &self.mask);
    }

    fn handle_request(&mut self, request: ConnectionRequest) {
        match request {
            ConnectionRequest::Call(call) => self.begin_call(call),
            ConnectionRequest::Cancel { ticket, reason } => self.cancel_call(ticket, &reason),
            ConnectionRequest::ListTools(reply) => self.begin_listing(reply),
        }
    }

    /// Remembers that a call came or ended. Only a server that may be idle for a limited time needs to know when.
    pub(super) fn note_use(&mut self) {
        if self.idle.is_some() {
            self.last_use = Instant::now();
        }
    }

    /// Returns whether no caller waits for anything.
    fn is_unused(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty() && self.listeners.is_empty()
    }
}

/// Says what the server ended with, or `otherwise` if that isn't known.
fn describe_exit(exit: &ChildExit, otherwise: &str) -> String {
    match exit {
        ChildExit::Exited { ending, .. } => describe_ending(*ending),
        ChildExit::NotStarted(_) | ChildExit::NotConfined(_) | ChildExit::Unknown => {
            otherwise.to_owned()
        }
    }
}

fn describe_ending(ending: CallEnding) -> String {
    match ending {
        CallEnding::ExitCode(code) => format!("the server exited with code {code}"),
        CallEnding::Signal(signal) => format!("the server was killed by signal {signal}"),
        CallEnding::LimitExceeded(limit) => {
            format!("the server exceeded limits.{}", limit.name())
        }
        _ => "the server has ended".to_owned(),
    }
}
