//! Answers message after message, with one engine and one log.

use std::mem;
use std::num::NonZeroUsize;
use std::slice;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::runtime::{Handle, Id};

use crate::callbacks::{Event, EventCallback};
use crate::error::Error;
use crate::reply::{CallResult, MAX_MESSAGE_BYTES, Reply, read_message};
use redact::Mask;
use toolq_core::answer::AnswerAssembler;
use toolq_core::check::CallChecker;
use toolq_core::transcript::{InputError, StreamDecoder, StreamEvent};
use toolq_core::types::{
    AnswerForm, Call, CallAnswer, CallRef, EmitError, Event as EngineEvent, EventSink, InputLayout,
    Tool, ToolsConfig, Turn,
};
use toolq_engine::{AnswerDelivery, Engine, EngineSettings, MessageSource, RememberedWrites};
use toolq_log::SessionLog;

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
    /// Turns of earlier messages.
    turns_before: usize,
}

impl EmbeddedSession {
    pub(crate) fn new(set: ToolSet, engine: RuntimeEngine, log: Option<SessionLog>) -> Self {
        Self {
            set,
            engine,
            log,
            turns_before: 0,
        }
    }

    /// Answers a message.
    pub(crate) async fn answer(
        &mut self,
        message: Vec<u8>,
        callback: Option<EventCallback<'_>>,
    ) -> Result<Reply, Error> {
        let recording = read_message(message)?;
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

// Collects the results of a message, in the format of the message.

/// Collects the results of a message.
struct ReplyCollector {
    assembler: AnswerAssembler,
    reply: Reply,
}

impl ReplyCollector {
    /// Collects the results of `turns` turns.
    pub(crate) fn new(layout: InputLayout, turns: usize) -> Self {
        Self {
            assembler: AnswerAssembler::new(None, layout, turns),
            reply: Reply::default(),
        }
    }

    /// Sets the form of the next turn's results.
    fn begin_turn(&mut self, form: AnswerForm) {
        self.assembler.begin_turn(form);
    }

    /// Answers a line without calls.
    fn push_empty_list(&mut self) {
        if self.assembler.answers_empty_lines() {
            self.reply.push_json("[]");
        }
    }

    fn into_reply(self) -> Reply {
        self.reply
    }
}

impl AnswerDelivery for ReplyCollector {
    fn deliver(&mut self, _: &Arc<CallRef>, answer: CallAnswer, _: &mut dyn EventSink) {
        self.reply.results.push(CallResult::new(&answer));
        if self.assembler.push(answer) {
            self.reply.push_json(&self.assembler.take_json());
        }
    }

    fn finish_turn(&mut self, _: &mut dyn EventSink) {
        if self.assembler.finish_turn() {
            self.reply.push_json(&self.assembler.take_json());
        }
    }
}

// Passes the events of a message to the log and to the caller.

/// Writes events to the log first, then calls the callback.
struct CallbackSink<'a, 'c> {
    log: Option<&'a mut SessionLog>,
    mask: &'a Mask,
    callback: Option<&'a mut EventCallback<'c>>,
}

impl<'a, 'c> CallbackSink<'a, 'c> {
    pub(crate) fn new(
        log: Option<&'a mut SessionLog>,
        mask: &'a Mask,
        callback: &'a mut Option<EventCallback<'c>>,
    ) -> Self {
        Self {
            log,
            mask,
            callback: callback.as_mut(),
        }
    }
}

impl EventSink for CallbackSink<'_, '_> {
    fn emit(&mut self, events: &[EngineEvent<'_>]) -> Result<(), EmitError> {
        let result = match &mut self.log {
            Some(log) => log.emit(events),
            None => Ok(()),
        };
        if let Some(callback) = &mut self.callback {
            let events = events
                .iter()
                .filter_map(|event| Event::from_engine(event, self.mask));
            events.for_each(|event| callback(&event));
        }
        result
    }

    fn emit_later(&mut self, event: &EngineEvent<'_>) -> Result<(), EmitError> {
        match &mut self.log {
            Some(log) if self.callback.is_none() => log.emit_later(event),
            _ => self.emit(slice::from_ref(event)),
        }
    }

    fn shows_progress(&self, _: &CallRef) -> bool {
        self.callback.is_some()
    }
}

// The engine of the runtime that answers.

/// An engine whose sockets and processes belong to one runtime. If a message is answered on another runtime, it gets a
/// new engine: the old runtime may be gone, or may not be polled anymore.
pub(crate) struct RuntimeEngine {
    settings: EngineSettings,
    engine: Option<(Id, Engine)>,
}

impl RuntimeEngine {
    /// Starts nothing yet.
    pub(crate) fn new(settings: EngineSettings) -> Self {
        Self {
            settings,
            engine: None,
        }
    }

    /// Returns the engine of the current runtime.
    ///
    /// # Errors
    /// [`Error::NoRuntime`] outside a Tokio runtime.
    fn current(&mut self) -> Result<&mut Engine, Error> {
        let runtime = Handle::try_current().map_err(|_| Error::NoRuntime)?.id();
        if self.engine.as_ref().is_some_and(|(id, _)| *id != runtime) {
            self.close();
        }
        let settings = &self.settings;
        let (_, engine) = self
            .engine
            .get_or_insert_with(|| (runtime, Engine::new(settings.clone())));
        Ok(engine)
    }

    /// Ends the servers, and emits what happened to them.
    ///
    /// # Errors
    /// `sink` refuses the events.
    fn end_servers(&self, sink: &mut dyn EventSink) -> Result<(), EmitError> {
        let engine = self.engine.as_ref();
        engine.map_or(Ok(()), |(_, engine)| engine.end_servers(sink))
    }

    /// Stops the processes that the engine keeps ready.
    pub(crate) fn close(&mut self) {
        if let Some((_, engine)) = self.engine.take() {
            engine.close();
        }
    }
}

/// Decodes a stream as it is read.
pub(crate) struct StreamReader<R> {
    reader: R,
    decoder: StreamDecoder,
    is_at_end: bool,
}

impl<R: AsyncRead + Send + Unpin> StreamReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            decoder: StreamDecoder::new("stream".to_owned(), None, MAX_MESSAGE_BYTES),
            is_at_end: false,
        }
    }

    /// How many messages have begun.
    pub(crate) fn message_count(&self) -> usize {
        self.decoder.message_count()
    }

    async fn read_chunk(&mut self) {
        let mut chunk = vec![0; CHUNK_BYTES];
        match self.reader.read(&mut chunk).await {
            Ok(0) => {
                self.decoder.finish();
                self.is_at_end = true;
            }
            Ok(len) => self.decoder.push(&chunk[..len]),
            Err(error) => {
                self.decoder.fail_with_io_error(&error);
                self.is_at_end = true;
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin> MessageSource for StreamReader<R> {
    async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            let event = self.next_ready();
            if event.is_some() || self.is_at_end {
                return event;
            }
            // A reader that is always ready must not starve the calls that are already running.
            tokio::task::yield_now().await;
            self.read_chunk().await;
        }
    }

    fn next_ready(&mut self) -> Option<StreamEvent> {
        self.decoder.next()
    }

    fn abandon(&mut self) -> Vec<Call> {
        self.decoder.abort()
    }
}

/// How many bytes are read at a time.
const CHUNK_BYTES: usize = 16 << 10;
