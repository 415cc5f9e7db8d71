//! Runs the `describe` commands of tools that describe themselves, and asks servers that aren't locked for their tools.
//!
//! Such a command runs like a call of its tool: with the same variables, directory, limits and timeouts, and without
//! leaving processes running. The descriptions are stored with the tools.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::backends::BackendRunner;
use crate::command::program_tool;
use crate::control::RunControl;
use crate::engine::Engine;
use crate::mcp::{ServerAnnouncement, emit_notices};
use crate::result_cache::SharedResultCache;
use crate::scheduler::{CircuitBreakers, SharedStartLimiter};
use crate::settings::EngineSettings;
use crate::state::EngineState;
use toolq_core::check::{CallChecker, MAX_DESCRIPTION_BYTES, parse_description};
use toolq_core::json::Input;
use toolq_core::types::{
    Call, CallAnswer, CallKind, CallRef, DescribeResult, EmitError, Event, EventSink, Outcome,
    ResultContent, ServerConfig, Tool, ToolsConfig, TurnOrigin, UnlockedServer,
};

/// Discovers the schemas of an engine's tools that describe themselves. It shares the engine's limits on calls at once, its
/// control and time budget; the other budgets are for calls only.
pub struct SchemaDiscovery {
    state: EngineState,
}

impl Engine {
    /// Returns a handle that describes this engine's tools, even while the engine runs a turn.
    pub fn schema_discovery(&self) -> SchemaDiscovery {
        SchemaDiscovery {
            state: EngineState {
                settings: Arc::new(EngineSettings {
                    memory: None,
                    ..(*self.state.settings).clone()
                }),
                run_budget: self.state.run_budget.time_only(),
                circuit_breakers: CircuitBreakers::default(),
                start_limiter: SharedStartLimiter::default(),
                result_cache: SharedResultCache::default(),
                outputs: None,
                agent_scope: None,
                turn_origin: TurnOrigin::default(),
                ..self.state.clone()
            },
        }
    }
}

impl SchemaDiscovery {
    /// Runs the `describe` commands of `tools`, or asks their servers, all at the same time, and returns when they have
    /// finished. Events go to `sink`; if it refuses the start of a command, that command doesn't run.
    ///
    /// The results are stored with the tools and the servers. If the run is halted before a tool has been described, nothing is stored
    /// for it, and its calls won't run.
    pub async fn discover(&self, tools: &[Arc<Tool>], sink: &mut dyn EventSink) {
        let (awaiting, tools): (Vec<_>, Vec<_>) =
            tools.iter().cloned().partition(|tool| tool.awaits_list);
        let servers = awaiting
            .iter()
            .flat_map(|tool| self.state.settings.tools.servers_to_ask(tool));
        let servers: Vec<_> = servers.collect();
        self.list_servers(&servers, sink).await;
        self.run_describe_commands(&tools, sink).await;
    }

    async fn run_describe_commands(&self, tools: &[Arc<Tool>], sink: &mut dyn EventSink) {
        if tools.is_empty() {
            return;
        }
        let describe_tools = tools
            .iter()
            .filter_map(|tool| describe_tool(tool))
            .map(Arc::new);
        let describe_tools = Arc::new(ToolsConfig {
            tools: describe_tools.collect(),
            ..(*self.state.settings.tools).clone()
        });
        let checker = CallChecker::new(Arc::clone(&describe_tools));
        let calls = tools.iter().enumerate().map(|(position, tool)| Call {
            turn: 0,
            position,
            id: format!("describe_{}", tool.name),
            name: tool.name.as_str().into(),
            input: Ok(Input::empty()),
            parent: None,
            has_number_id: false,
            kind: CallKind::Function,
        });
        let calls = calls.map(|call| checker.check_call(call)).collect();
        let mut describe_sink = DescribeSink { tools, sink };
        let mut engine = Engine {
            state: EngineState {
                settings: self.state.settings.with_tools(describe_tools),
                ..self.state.clone()
            },
        };
        // The descriptions are stored with the tools, so nobody needs the answers.
        let mut delivery = |_: &Arc<CallRef>, _: CallAnswer, _: &mut dyn EventSink| {};
        engine
            .run_turn(0, calls, &mut describe_sink, &mut delivery)
            .await;
    }
}

// Servers that aren't locked are asked for their tools within a run.

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
                || self.state.control.halt_cause().is_some();
            if !is_known && sink.emit(&[Event::ListingTools { server }]).is_ok() {
                asked.push(Arc::clone(server));
            }
        }
        let durations = self.ask_all(&asked).await;
        // If the log can't be written, the next event says so.
        let _ = emit_notices(&self.state.backends.take_server_notices(), sink);
        for (server, duration) in asked.iter().zip(durations) {
            let _ = sink.emit(&[Event::ToolsListed { server, duration }]);
        }
    }

    /// Asks the servers, stores their answers in the order of the file, and returns how long each took.
    async fn ask_all(&self, servers: &[Arc<UnlockedServer>]) -> Vec<Duration> {
        self.state.run_budget.start_clock(self.state.control.now());
        let begin = Instant::now();
        let mut questions = JoinSet::new();
        for (index, server) in servers.iter().enumerate() {
            let (server, backends) = (Arc::clone(server), Arc::clone(&self.state.backends));
            let control = self.state.control.clone();
            questions.spawn(async move {
                let answer = backends.list_tools(&server.server, &control).await;
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
            () = self.state.control.wait_for_halt() => {}
            () = self.state.run_budget.wait_for_exhaustion(&self.state.control) => {}
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

/// Returns a tool whose only function is to describe `tool`. `None` if `tool` doesn't describe itself.
fn describe_tool(tool: &Tool) -> Option<Tool> {
    let describe = tool.describe.as_ref()?;
    let command = describe.command.clone();
    Some(program_tool(tool, command, MAX_DESCRIPTION_BYTES))
}

/// Stores the descriptions that the tools print, and turns the events of their calls into events of descriptions.
struct DescribeSink<'a> {
    tools: &'a [Arc<Tool>],
    sink: &'a mut dyn EventSink,
}

impl EventSink for DescribeSink<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let tools = self.tools;
        let tool = |call: &CallRef| tools.get(call.position).map(|tool| &**tool);
        let mut forwarded = Vec::new();
        for event in events {
            match event {
                Event::Started {
                    call, attempt: 1, ..
                } => {
                    forwarded.extend(tool(call).map(|tool| Event::Describing { tool }));
                }
                Event::Finished {
                    call,
                    outcome,
                    answer,
                    duration,
                    attempts,
                    ..
                } if *attempts > 0 => {
                    let Some(tool) = tool(call) else {
                        continue;
                    };
                    store_description(tool, outcome, answer);
                    forwarded.push(Event::Described {
                        tool,
                        outcome,
                        duration: *duration,
                        attempts: *attempts,
                    });
                }
                Event::ServerStarted(_) | Event::ServerEnded(_) => forwarded.push(event.clone()),
                _ => {}
            }
        }
        if forwarded.is_empty() {
            return Ok(());
        }
        self.sink.emit(&forwarded)
    }
}

fn store_description(tool: &Tool, outcome: &Outcome, answer: &CallAnswer) {
    let Some(describe) = &tool.describe else {
        return;
    };
    // The run was halted. That says nothing about the tool.
    if matches!(
        outcome,
        Outcome::Interrupted { .. } | Outcome::NotExecuted(_)
    ) {
        return;
    }
    let result = match printed_text(outcome, answer).and_then(|printed| parse_description(&printed))
    {
        Ok(description) => DescribeResult::Ok(description),
        Err(why) => DescribeResult::Err(why),
    };
    // A tool is described only once, so the result isn't set yet.
    let _ = describe.result.set(result);
}

/// Returns the text that a `describe` command printed.
///
/// # Errors
/// Why there is no usable text: the command failed or printed too much.
fn printed_text(outcome: &Outcome, answer: &CallAnswer) -> Result<String, String> {
    if outcome
        .captured()
        .is_some_and(|captured| captured.cut_bytes > 0)
    {
        return Err(format!(
            "its output is larger than {} KiB",
            MAX_DESCRIPTION_BYTES >> 10
        ));
    }
    match &answer.content {
        ResultContent::Text(text) if answer.is_error => Err(without_hint(text)),
        ResultContent::Text(text) => Ok(text.clone()),
        ResultContent::Blocks(_) => Err("its output isn't text".to_owned()),
    }
}

/// Returns an error text on one line, without the hints that are only for models.
fn without_hint(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("Hint: "));
    lines.collect::<Vec<_>>().join(" ")
}

/// Starts servers and lists their tools.
pub struct ServerLister {
    backends: Arc<BackendRunner>,
    control: RunControl,
}

impl ServerLister {
    /// Creates a lister. Nothing is started yet.
    pub fn new(settings: &EngineSettings) -> Self {
        let control = RunControl::new();
        Self {
            backends: Arc::new(BackendRunner::new(&Arc::new(settings.clone()), &control)),
            control,
        }
    }

    /// Starts a server, unless it is running, and asks for its tools. Returns how long that took, too.
    ///
    /// # Errors
    /// Why there is no list, without secrets.
    pub async fn list(
        &self,
        server: &Arc<ServerConfig>,
    ) -> Result<(Arc<ServerAnnouncement>, Duration), String> {
        let begin = Instant::now();
        let announcement = self.backends.list_tools(server, &self.control).await?;
        Ok((announcement, begin.elapsed()))
    }

    /// Ends all servers, and waits until they have ended.
    pub fn close(&self) {
        self.backends.close();
    }
}
