//! Tools that describe themselves are asked what they take when somebody needs to know it: at most once each. Here is who
//! asks where nothing else runs, and who tells people of tools that said nothing of use.

use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::context::Context;
use crate::output::{Failure, Stderr};
use crate::session::runtime::{build_runtime, settings};
use crate::terminal::Screen;
use toolq_core::types::{Event, Refused, Said, Sink, Tool, Tools};
use toolq_engine::{Asking, Engine};

/// Asks tools for a command that runs nothing else.
pub struct Describer<'a> {
    runtime: Runtime,
    asking: Asking,
    context: &'a Context,
}

impl<'a> Describer<'a> {
    /// Asks those of `tools`. Nothing is started before the first is asked.
    ///
    /// # Errors
    /// There is no runtime for it.
    pub fn new(tools: &Arc<Tools>, context: &'a Context) -> Result<Self, Failure> {
        let mask = Arc::new(context.mask(tools));
        let engine = Engine::new(settings(tools, &mask, context));
        Ok(Self {
            runtime: build_runtime()?,
            asking: engine.asking(),
            context,
        })
    }

    /// Asks `tools`, all at the same time. What they said stands with them.
    pub fn ask(&self, tools: &[Arc<Tool>]) {
        let mut nobody = Nobody;
        let mut sink = Warned::new(&mut nobody, &self.context.stderr, None);
        self.runtime.block_on(self.asking.ask(tools, &mut sink));
    }
}

struct Nobody;

impl Sink for Nobody {
    fn tell(&mut self, _: &[Event<'_>]) -> Result<(), Refused> {
        Ok(())
    }
}

/// Tells people why a tool could not describe itself, and somebody else of everything.
pub struct Warned<'a> {
    sink: &'a mut dyn Sink,
    stderr: &'a Stderr,
    screen: Option<Screen>,
}

impl<'a> Warned<'a> {
    /// `screen` makes room on the terminal.
    pub fn new(sink: &'a mut dyn Sink, stderr: &'a Stderr, screen: Option<Screen>) -> Self {
        Self {
            sink,
            stderr,
            screen,
        }
    }

    fn warn(&self, name: &str, why: &str) {
        let message =
            format!("{name} could not describe itself, and none of its calls runs: {why}");
        let warn = || self.stderr.warning(&message);
        match &self.screen {
            Some(screen) => screen.suspend(warn),
            None => warn(),
        }
    }
}

impl Sink for Warned<'_> {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        let told = self.sink.tell(events);
        for event in events {
            if let Event::Described { tool, .. } = event
                && let Some(Said::Nothing(why)) = tool.said()
            {
                self.warn(&tool.name, why);
            }
        }
        told
    }

    fn settle(&mut self) -> Result<(), Refused> {
        self.sink.settle()
    }
}
