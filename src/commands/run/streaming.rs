//! Answers what still arrives: the messages of a stream, each call as soon as it may start, and lines, one by one.

use std::future::pending;
use std::sync::Mutex;

use tokio::sync::mpsc::{self, UnboundedSender};

use crate::args::Run as Arguments;
use crate::commands::run::session::Session;
use crate::input::files;
use crate::input::{Incoming, Lines, Live};
use crate::output::{Failure, Printer};
use crate::session::{Earlier, Shared, Warned};
use toolq_core::check::{Arriving, unasked};
use toolq_core::transcript::{InputError, Part, Told};
use toolq_core::types::{Arrival, Call, CallRef, Form, Halt, Layout, NotExecuted, Tools};
use toolq_engine::{Asking, Control};

/// Waits until something is asked in one of the inputs; false where nothing is. Lines that ask for nothing are answered at
/// once.
///
/// # Errors
/// A line that can't be read, or a stdout that takes no more.
pub(crate) fn asks(inputs: &mut [Incoming], arguments: &Arguments) -> Result<bool, Failure> {
    let all = arguments.input.all;
    let recorded =
        |input: &Incoming| matches!(input, Incoming::Recording(known) if known.open_calls(all) > 0);
    if inputs.iter().any(recorded) {
        return Ok(true);
    }
    for input in inputs {
        let asks = match input {
            Incoming::Recording(_) => false,
            Incoming::Stream(live) => live.asks(),
            Incoming::Lines(lines) => line_asks(lines, arguments)?,
        };
        if asks {
            return Ok(true);
        }
    }
    Ok(false)
}

fn line_asks(lines: &mut Lines, arguments: &Arguments) -> Result<bool, Failure> {
    let mut printer = Printer::new(arguments.to.map(Into::into), Layout::Lines, 0, None).unfolded();
    while let Some(line) = lines.wait()? {
        if line.open_calls(arguments.input.all) > 0 {
            lines.put_back(line);
            return Ok(true);
        }
        lines.pass(&line);
        printer.nothing_asked();
        printer.check()?;
    }
    Ok(false)
}

impl Session<'_> {
    /// Answers the messages of a stream, one after another.
    pub(crate) async fn answer_stream(&mut self, mut live: Live) -> Result<(), Failure> {
        live.detach().map_err(Failure::usage)?;
        let (control, before) = (self.engine.control(), self.turns);
        loop {
            let told = tokio::select! {
                biased;
                () = ended_from_outside(&control) => None,
                told = live.next() => told,
            };
            self.turns = before + live.messages();
            let broke = match told {
                None => return Ok(()),
                Some(Told::Begun { turn, form }) => {
                    self.answer_message(&mut live, before + turn, form).await?
                }
                Some(Told::Broke { error, .. }) => Some(error),
                Some(Told::Part(_) | Told::Whole(_) | Told::Closed { .. }) => None,
            };
            if let Some(error) = broke {
                // Something ran, if only of another input.
                return Err(files::broken(error, 1));
            }
        }
    }

    /// Answers the calls of a message of which the first has begun; why the stream broke off in it, if it did.
    async fn answer_message(
        &mut self,
        live: &mut Live,
        number: usize,
        form: Form,
    ) -> Result<Option<InputError>, Failure> {
        let mut printer = self.printer(Layout::Document, 1);
        printer.begin(form);
        let (feed, arriving) = mpsc::unbounded_channel();
        let screen = self.observers.screen();
        let observers = Mutex::new(&mut self.observers);
        let (mut of_turn, mut of_pump) = (Shared(&observers), Shared(&observers));
        let pump = Pump {
            live,
            number,
            tools: &self.tools,
            asking: &self.asking,
            sink: Warned::new(&mut of_pump, &self.context.stderr, screen),
            control: self.engine.control(),
            arriving: Arriving::new(&self.checker),
            earlier: &self.earlier,
            refused: None,
            feed,
        };
        let engine = &mut self.engine;
        let ((broke, refused), ()) = tokio::join!(
            pump.run(),
            engine.fed_turn(number, arriving, &mut of_turn, &mut printer)
        );
        self.written(&mut printer)?;
        refused.map_or(Ok(broke), Err)
    }

    /// Answers each line as it comes.
    pub(crate) async fn answer_lines(&mut self, mut lines: Lines) -> Result<(), Failure> {
        lines.detach().map_err(Failure::usage)?;
        let control = self.engine.control();
        self.turns += lines.passed();
        loop {
            let line = tokio::select! {
                biased;
                () = ended_from_outside(&control) => return Ok(()),
                line = lines.next() => line?,
            };
            let Some(line) = line else {
                return Ok(());
            };
            if line.open_calls(self.arguments.input.all) > 0 {
                self.answer_one(&line).await?;
                continue;
            }
            self.turns += line.len();
            let mut printer = self.printer(Layout::Lines, 0);
            printer.nothing_asked();
            self.written(&mut printer)?;
        }
    }
}

/// Waits until the run is ended by somebody else than its budgets, under which all is answered that comes.
async fn ended_from_outside(control: &Control) {
    control.ending().await;
    if let Some(Halt::OverBudget(_)) = control.halted() {
        pending::<()>().await;
    }
}

/// Carries what is told of one message to the dispatcher of its turn.
struct Pump<'p> {
    live: &'p mut Live,
    /// The number of the turn, over all inputs.
    number: usize,
    tools: &'p Tools,
    asking: &'p Asking,
    /// Is told which tools are asked.
    sink: Warned<'p>,
    control: Control,
    arriving: Arriving<'p>,
    earlier: &'p Earlier,
    /// Why the run can't go on with what arrived: the log has another call in its place.
    refused: Option<Failure>,
    feed: UnboundedSender<Arrival>,
}

/// How a message ended.
enum End {
    Closed,
    Broke(InputError),
}

impl Pump<'_> {
    /// Carries all of it; why the stream broke off, if it did, and why the run can't go on, if it can't.
    async fn run(mut self) -> (Option<InputError>, Option<Failure>) {
        let broke = self.carry_all().await;
        (broke, self.refused)
    }

    async fn carry_all(&mut self) -> Option<InputError> {
        self.arriving.begun();
        loop {
            let told = tokio::select! {
                biased;
                () = ended_from_outside(&self.control) => return self.give_up(),
                told = self.live.next() => told?,
            };
            if let Told::Whole(call) = &told {
                self.describe(call).await;
            }
            match self.carry(told) {
                None => {}
                Some(End::Closed) => return None,
                Some(End::Broke(error)) => return Some(error),
            }
        }
    }

    /// Asks the tools what they take that a call needs and that were not asked yet. Meanwhile the stream waits.
    async fn describe(&mut self, call: &Call) {
        // Behind a call that is another than the log's nothing runs.
        if self.refused.is_some() {
            return;
        }
        let call = [self.numbered(call.clone())];
        let unasked = unasked(self.tools, self.earlier.open(&call));
        self.asking.ask(&unasked, &mut self.sink).await;
    }

    /// Carries what is known by now, and no more.
    fn give_up(&mut self) -> Option<InputError> {
        while let Some(told) = self.live.known() {
            if let Some(end) = self.carry(told) {
                return match end {
                    End::Closed => None,
                    End::Broke(error) => Some(error),
                };
            }
        }
        let unfinished = self.live.abandon();
        self.break_off(unfinished);
        None
    }

    /// Carries one thing that was told; how the message ended, if it did.
    fn carry(&mut self, told: Told) -> Option<End> {
        let end = match told {
            Told::Part(part) => {
                self.send(self.part(part));
                None
            }
            Told::Begun { .. } => {
                self.arriving.begun();
                None
            }
            Told::Whole(call) => {
                self.arriving.whole(self.numbered(call));
                None
            }
            Told::Closed { cut_off, .. } => {
                self.arriving.closed(cut_off);
                Some(End::Closed)
            }
            Told::Broke { unfinished, error } => {
                self.break_off(unfinished);
                return Some(End::Broke(error));
            }
        };
        self.pass_on();
        end
    }

    fn break_off(&mut self, unfinished: Vec<Call>) {
        let unfinished = unfinished.into_iter().map(|call| self.numbered(call));
        let unfinished = unfinished.collect();
        self.arriving.broke_off(unfinished);
        self.pass_on();
    }

    fn pass_on(&mut self) {
        for mut arrival in self.arriving.take() {
            if let Arrival::Call(checked) = &mut arrival {
                match self.earlier.past(checked, false) {
                    Ok(past) => checked.past = past,
                    // This one and what comes behind it is answered, and does not run.
                    Err(failure) => {
                        self.refused.get_or_insert(failure);
                        let _ = self.feed.send(Arrival::Over(NotExecuted::BrokeOff));
                    }
                }
            }
            // The dispatcher listens until this sender is gone.
            let _ = self.feed.send(arrival);
        }
    }

    fn send(&self, arrival: Arrival) {
        let _ = self.feed.send(arrival);
    }

    fn part(&self, part: Part) -> Arrival {
        let call = CallRef {
            turn: self.number,
            position: part.position,
            tool_use_id: part.id,
            tool_name: part.name,
            batch: None,
            within: None,
        };
        Arrival::Part {
            call,
            text: part.text,
        }
    }

    fn numbered(&self, call: Call) -> Call {
        Call {
            turn: self.number,
            ..call
        }
    }
}
