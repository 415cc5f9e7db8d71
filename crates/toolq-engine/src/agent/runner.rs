//! An agent: a model is asked, its calls run in a queue of their own, and the results are sent back, until it has an
//! answer. Answers are read, calls checked and run, and results put into words by the same stages as those of the input.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::agent::conversation::Conversation;
use crate::agent::error::Broken;
use crate::agent::scope::Around;
use crate::agent::toolset::Kits;
use crate::attempt::{Attempt, End, Written};
use crate::http::Clients;
use crate::output::Output;
use crate::run_budget::Meter;
use crate::settings::EngineSettings;
use redact::Mask;
use toolq_core::os::Environment;
use toolq_core::types::{AgentFault, AgentInvocation, Backing, Ending, Memory, Outcome, Tool};

/// Runs the agents of a tools.yaml.
pub(crate) struct Agents {
    pub(crate) clients: Clients,
    pub(crate) environment: Arc<Environment>,
    pub(crate) mask: Arc<Mask>,
    outputs: Option<PathBuf>,
    kits: Kits,
    pub(crate) memory: Option<Arc<dyn Memory>>,
}

impl Agents {
    pub(crate) fn new(settings: &EngineSettings) -> Self {
        Self {
            clients: Clients::new(settings.jobs, settings.resolver.clone()),
            environment: Arc::clone(&settings.environment),
            mask: Arc::clone(&settings.mask),
            outputs: settings.outputs.clone(),
            kits: Kits::new(Arc::clone(&settings.tools)),
            memory: settings.memory.clone(),
        }
    }

    /// Runs an agent to its end, within its limit.
    pub(crate) async fn run(&self, task: &AgentInvocation, attempt: Attempt) -> End {
        let Attempt {
            job,
            limit,
            cancel,
            meter,
            control,
            voice,
            desk: Some(desk),
            around,
            key,
            probe: _,
        } = attempt
        else {
            return Outcome::Broken("an agent without a desk".to_owned()).into();
        };
        let tool = &job.accepted.tool;
        let Some(Backing::Agent(backing)) = &tool.backing else {
            return Outcome::NoBacking.into();
        };
        let around = Arc::new(Around::of(
            tool,
            backing,
            job.accepted.safe,
            around.as_deref(),
        ));
        // What the model said last belongs to this function, so that an agent that is ended does not lose it.
        let mut spoken = String::new();
        let busy = desk.busy();
        let conversation = Conversation {
            agents: self,
            job: &job,
            backing,
            kit: self.kits.of(tool, backing),
            around,
            desk,
            voice,
            until: control.now().saturating_add(limit.after),
            control: control.clone(),
            seed: u64::from_str_radix(key.get(..16).unwrap_or_default(), 16).unwrap_or_default(),
            messages: Vec::new(),
        };
        let ended = tokio::select! {
            ended = conversation.hold(task, &mut spoken) => ended,
            Ok(()) = cancel => {
                let written = Written::new(self.output(tool, meter, &spoken), String::new());
                return End::midway(written);
            }
            () = control.sleep(limit.after) => {
                let (output, captured) = self.output(tool, meter, &spoken).into_text();
                let late = Outcome::TimedOut {
                    limit: limit.named,
                    idle: !busy.load(Relaxed),
                    output,
                    stderr: String::new(),
                    captured,
                };
                return late.into();
            }
        };
        let outcome = match ended {
            Ok((text, ending)) => self.output(tool, meter, &text).succeed(ending, String::new),
            Err(Broken::Outcome(outcome)) => outcome,
            Err(Broken::Fault(fault)) => {
                let (output, captured) = self.output(tool, meter, &spoken).into_text();
                Outcome::AgentFailed {
                    fault: self.masked(fault),
                    output,
                    captured,
                }
            }
        };
        outcome.into()
    }

    /// The answer that `attempt_completion` is.
    pub(crate) fn complete(&self, result: &str, attempt: &Attempt) -> Outcome {
        let tool = &attempt.job.accepted.tool;
        let output = self.output(tool, attempt.meter.clone(), result);
        output.succeed(Ending::Answered, String::new)
    }

    /// A text as the output of a tool: capped like any other.
    fn output(&self, tool: &Tool, meter: Meter, text: &str) -> Output {
        let output = Output::of_response(tool, self.outputs.as_ref(), &self.mask, None);
        let mut output = output.metered(meter);
        output.push(text.as_bytes());
        output
    }

    /// What an API says may repeat what it was sent.
    fn masked(&self, fault: AgentFault) -> AgentFault {
        let mask = |text: String| self.mask.text(&text).into_owned();
        match fault {
            AgentFault::Api { status, said, wait } => AgentFault::Api {
                status,
                said: mask(said),
                wait,
            },
            AgentFault::NoEndpoint { declared, value } => AgentFault::NoEndpoint {
                declared,
                value: mask(value),
            },
            AgentFault::Unreadable(why) => AgentFault::Unreadable(mask(why)),
            AgentFault::BrokeOff(why) => AgentFault::BrokeOff(mask(why)),
            other => other,
        }
    }
}
