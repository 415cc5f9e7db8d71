//! Asks servers that tools.lock doesn't have for their tools, within a run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::discovery::SchemaDiscovery;
use crate::mcp::{ServerAnnouncement, emit_notices};
use toolq_core::types::{Event, EventSink, UnlockedServer};

/// What a server announces, or why that isn't known, and how long it took.
type ServerAnswer = (Result<Arc<ServerAnnouncement>, String>, Duration);

impl SchemaDiscovery {
    /// Asks these servers for their tools, all at the same time, unless they were asked before. Returns when each has answered,
    /// failed, or the run is halted; then nothing is stored for those that are still being asked. Events go to `sink`; if it
    /// refuses the start of a server, that server isn't asked.
    pub async fn list_servers(&self, servers: &[Arc<UnlockedServer>], sink: &mut dyn EventSink) {
        let mut asked: Vec<Arc<UnlockedServer>> = Vec::new();
        for server in servers {
            let is_known = server.listing().is_some()
                || asked.iter().any(|other| Arc::ptr_eq(other, server))
                || self.control.halt_cause().is_some();
            if !is_known && sink.emit(&[Event::ListingTools { server }]).is_ok() {
                asked.push(Arc::clone(server));
            }
        }
        let durations = self.ask_all(&asked).await;
        // If the log can't be written, the next event says so.
        let _ = emit_notices(&self.runner.take_server_notices(), sink);
        for (server, duration) in asked.iter().zip(durations) {
            let _ = sink.emit(&[Event::ToolsListed { server, duration }]);
        }
    }

    /// Asks the servers, stores their answers in the order of the file, and returns how long each took.
    async fn ask_all(&self, servers: &[Arc<UnlockedServer>]) -> Vec<Duration> {
        self.run_budget.start_clock(self.control.now());
        let begin = Instant::now();
        let mut questions = JoinSet::new();
        for (index, server) in servers.iter().enumerate() {
            let (server, runner) = (Arc::clone(server), Arc::clone(&self.runner));
            let control = self.control.clone();
            questions.spawn(async move {
                let answer = runner.list_tools(&server.server, &control).await;
                (index, answer, begin.elapsed())
            });
        }
        let mut answers: Vec<Option<ServerAnswer>> = servers.iter().map(|_| None).collect();
        let all_answers = async {
            while let Some(answered) = questions.join_next().await {
                // A panic has been reported.
                if let Ok((index, answer, duration)) = answered {
                    answers[index] = Some((answer, duration));
                }
            }
        };
        tokio::select! {
            biased;
            () = all_answers => {}
            () = self.control.wait_for_halt() => {}
            () = self.run_budget.wait_for_exhaustion(&self.control) => {}
        }
        let elapsed = begin.elapsed();
        let answers = servers.iter().zip(answers);
        let durations = answers.map(|(server, answer)| match answer {
            Some((answer, duration)) => {
                server.set_announced(answer.map(|announcement| {
                    let lock = announcement.to_lock(None, String::new());
                    (lock, announcement.problems.clone())
                }));
                duration
            }
            None => elapsed,
        });
        durations.collect()
    }
}
