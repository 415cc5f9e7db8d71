//! Answers message after message, with one engine and one log.

use std::mem;
use std::num::NonZeroUsize;
use std::sync::Arc;

use redact::Mask;
use tokio::io::AsyncRead;
use toolq_core::check::CallChecker;
use toolq_core::transcript::{InputError, StreamEvent};
use toolq_core::types::{EmitError, InputLayout, Tool, ToolsConfig, Turn};
use toolq_engine::{MessageSource as _, RememberedWrites};
use toolq_log::SessionLog;

use crate::callback_sink::CallbackSink;
use crate::collector::ReplyCollector;
use crate::error::Error;
use crate::event::EventCallback;
use crate::message::read_message;
use crate::reply::Reply;
use crate::runtime_engine::RuntimeEngine;
use crate::stream_reader::StreamReader;

/// The tools, and what checks their calls and masks what they say.
#[derive(Debug, Clone)]
pub(crate) struct ToolSet {
    pub(crate) tools: Arc<ToolsConfig>,
    pub(crate) checker: Arc<CallChecker>,
    pub(crate) mask: Arc<Mask>,
    /// How many calls may run at the same time.
    pub(crate) jobs: NonZeroUsize,
}

/// The state that messages share.
pub(crate) struct EmbeddedSession {
    set: ToolSet,
    engine: RuntimeEngine,
    log: Option<SessionLog>,
    max_message_bytes: u64,
    /// Turns of earlier messages.
    turns_before: usize,
}

impl EmbeddedSession {
    pub(crate) fn new(
        set: ToolSet,
        engine: RuntimeEngine,
        log: Option<SessionLog>,
        max_message_bytes: u64,
    ) -> Self {
        Self {
            set,
            engine,
            log,
            max_message_bytes,
            turns_before: 0,
        }
    }

    pub(crate) fn max_message_bytes(&self) -> u64 {
        self.max_message_bytes
    }

    /// Answers a message.
    pub(crate) async fn answer(
        &mut self,
        message: Vec<u8>,
        callback: Option<EventCallback<'_>>,
    ) -> Result<Reply, Error> {
        let recording = read_message(message, self.max_message_bytes)?;
        // All turns are read before one runs: an error means that nothing ran.
        let turns = (0..recording.len()).map(|index| recording.turn(index, false));
        let turns = turns.collect::<Result<Vec<Turn>, InputError>>()?;
        // Reserved before anything runs: the caller may drop the future, and its numbers mustn't be used again.
        let first_number = self.turns_before;
        self.turns_before += turns.len();
        let mut callback = callback;
        let mut collector = ReplyCollector::new(recording.layout(), recording.open_turns(false));
        let mut writes = RememberedWrites::default();
        if recording.open_turns(false) > 1 {
            for (index, turn) in turns.iter().enumerate() {
                let turn = turn.clone().with_number(first_number + index);
                let engine = self.engine.current()?;
                let found = engine.find_remembered_writes(turn, &self.set.checker, &mut writes);
                found.await;
            }
        }
        for (index, turn) in turns.into_iter().enumerate() {
            if turn.calls.is_empty() {
                if turn.call_count() == 0 {
                    collector.push_empty_list();
                }
                continue;
            }
            let turn = turn.with_number(first_number + index);
            let known = (turn, &mut writes);
            self.run_turn(known, &mut collector, &mut callback).await?;
        }
        Ok(self.check_log(collector.into_reply()))
    }

    async fn run_turn(
        &mut self,
        (turn, writes): (Turn, &mut RememberedWrites),
        collector: &mut ReplyCollector,
        callback: &mut Option<EventCallback<'_>>,
    ) -> Result<(), Error> {
        let engine = self.engine.current()?;
        let mut sink = CallbackSink::new(self.log.as_mut(), &self.set.mask, callback);
        collector.begin_turn(turn.answer_form);
        let known = (&*self.set.checker, writes);
        engine.answer_turn(turn, known, &mut sink, collector).await;
        Ok(())
    }

    /// Runs the `describe` commands of tools that have one, and asks the servers that aren't locked, unless that was done
    /// before.
    pub(crate) async fn describe_tools(&mut self) -> Result<(), Error> {
        let undescribed = self
            .set
            .tools
            .tools
            .iter()
            .filter(|tool| tool.needs_describe());
        let undescribed: Vec<Arc<Tool>> = undescribed.cloned().collect();
        if !undescribed.is_empty() || !self.set.tools.unlocked.is_empty() {
            let discovery = self.engine.current()?.schema_discovery();
            let mut callback = None;
            let mut sink = CallbackSink::new(self.log.as_mut(), &self.set.mask, &mut callback);
            discovery
                .list_servers(&self.set.tools.unlocked, &mut sink)
                .await;
            discovery.discover(&undescribed, &mut sink).await;
        }
        Ok(())
    }

    /// Answers the messages of a stream, one after another.
    pub(crate) async fn answer_stream<R: AsyncRead + Send + Unpin>(
        &mut self,
        source: &mut StreamReader<R>,
        callback: Option<EventCallback<'_>>,
    ) -> Result<Reply, Error> {
        let mut callback = callback;
        let mut reply = Reply::default();
        let turns_before = self.turns_before;
        while let Some(event) = source.next().await {
            // Reserved before anything runs, as for a message that is known as a whole.
            self.turns_before = turns_before + source.message_count();
            let stream_error = match event {
                StreamEvent::CallStarted { turn, form, origin } => {
                    self.engine.current()?.set_turn_origin(origin);
                    let mut collector = ReplyCollector::new(InputLayout::Document, 1);
                    collector.begin_turn(form);
                    let (error, broken) = self
                        .run_message(turns_before + turn, source, &mut collector, &mut callback)
                        .await?;
                    reply.append(collector.into_reply());
                    if let Some(broken) = broken {
                        reply.problem.get_or_insert(broken.to_string());
                    }
                    error
                }
                StreamEvent::Aborted { error, .. } => Some(error),
                StreamEvent::Broken { error, .. } => {
                    reply.problem.get_or_insert(error.to_string());
                    None
                }
                StreamEvent::PartialInput(_)
                | StreamEvent::CallComplete(_)
                | StreamEvent::MessageEnd { .. } => None,
            };
            match stream_error {
                // The results say which calls didn't run, so they must not be lost.
                Some(error) if !reply.results.is_empty() => {
                    reply.problem = Some(error.to_string());
                    break;
                }
                Some(error) => return Err(error.into()),
                None => {}
            }
        }
        Ok(self.check_log(reply))
    }

    async fn run_message<R: AsyncRead + Send + Unpin>(
        &mut self,
        number: usize,
        source: &mut StreamReader<R>,
        collector: &mut ReplyCollector,
        callback: &mut Option<EventCallback<'_>>,
    ) -> Result<(Option<InputError>, Option<InputError>), Error> {
        let engine = self.engine.current()?;
        let mut sink = CallbackSink::new(self.log.as_mut(), &self.set.mask, callback);
        let checker = &self.set.checker;
        let end = engine
            .run_message(number, source, checker, &mut sink, collector)
            .await;
        Ok((end.stream_error, end.broken))
    }

    /// Notes in `reply` that the log can no longer be written.
    fn check_log(&self, mut reply: Reply) -> Reply {
        let error = self.log.as_ref().and_then(SessionLog::write_error);
        if let Some(error) = error {
            reply.problem = Some(error.to_string());
        }
        reply
    }

    /// Ends the log and the engine.
    pub(crate) fn close(mut self) -> Result<(), Error> {
        self.finish().map_err(|error| Error::Log {
            message: error.to_string(),
            hint: None,
        })
    }

    fn finish(&mut self) -> Result<(), EmitError> {
        let mut log = mem::take(&mut self.log);
        // If the log can't be written, finishing it says so.
        let _ = log.as_mut().map(|log| self.engine.end_servers(log));
        let result = log.map_or(Ok(()), |log| log.finish(0));
        self.engine.close();
        result
    }
}

impl Drop for EmbeddedSession {
    fn drop(&mut self) {
        // Callers who want to know about an error call `close`.
        let _ = self.finish();
    }
}
