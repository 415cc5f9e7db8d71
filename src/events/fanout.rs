//! Distributes events to several sinks.

use toolq_core::types::{EmitError, Event, EventSink};

/// A sink that passes events to the session log, whose errors count, and to observers, whose errors don't.
pub struct EventFanout<'a, const N: usize> {
    log: Option<&'a mut dyn EventSink>,
    observers: [Option<&'a mut dyn EventSink>; N],
    /// Results must be durable before the observers get them.
    flush_results_first: bool,
}

impl<'a, const N: usize> EventFanout<'a, N> {
    /// Creates a sink that emits to `log` before the observers. `None` stands for one that isn't there.
    pub fn new(
        log: Option<&'a mut dyn EventSink>,
        observers: [Option<&'a mut dyn EventSink>; N],
    ) -> Self {
        Self {
            log,
            observers,
            flush_results_first: false,
        }
    }

    /// Sets whether the log must be flushed before observers get results, because one of them passes results on to
    /// other programs.
    #[must_use]
    pub fn flush_results_first(self, flush_results_first: bool) -> Self {
        Self {
            flush_results_first,
            ..self
        }
    }

    fn emit_to_log(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        log.emit(events)?;
        let is_finished = |event: &Event<'_>| matches!(event, Event::Finished { .. });
        if self.flush_results_first && events.iter().any(is_finished) {
            log.flush()
        } else {
            Ok(())
        }
    }

    fn emit_to_observers(&mut self, events: &[Event<'_>]) {
        for observer in self.observers.iter_mut().flatten() {
            // An observer that fails reports that itself at the end of the run.
            let _ = observer.emit(events);
        }
    }
}

impl<const N: usize> EventSink for EventFanout<'_, N> {
    /// Returns the result of the log. If the log refuses the events, observers don't get the starts among them, because
    /// those calls won't run.
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let recorded = self.emit_to_log(events);
        if recorded.is_ok() {
            self.emit_to_observers(events);
        } else {
            let is_started = |event: &&Event<'_>| matches!(event, Event::Started { .. });
            let others: Vec<_> = events
                .iter()
                .filter(|event| !is_started(event))
                .cloned()
                .collect();
            self.emit_to_observers(&others);
        }
        recorded
    }

    fn flush(&mut self) -> Result<(), EmitError> {
        self.log.as_mut().map_or(Ok(()), |log| log.flush())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    use toolq_core::types::{CallRef, TurnOrigin, Verdict};
    use toolq_testing::{call_with_estimate, emit_finished, success_outcome};

    #[derive(Default)]
    struct RecordingSink(Vec<String>, bool);

    impl EventSink for RecordingSink {
        fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
            let debug_texts = events.iter().map(|event| format!("{event:?}"));
            let names = debug_texts.map(|debug_text| {
                debug_text
                    .split([' ', '{'])
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            });
            self.0.extend(names);
            if self.1 {
                Err(EmitError("no".to_owned()))
            } else {
                Ok(())
            }
        }
    }

    /// A sink that records its steps in a list that it shares with others.
    struct StepSink(&'static str, Arc<Mutex<Vec<String>>>);

    impl EventSink for StepSink {
        fn emit(&mut self, _: &[Event<'_>]) -> Result<(), EmitError> {
            self.1.lock().unwrap().push(format!("{} emits", self.0));
            Ok(())
        }

        fn flush(&mut self) -> Result<(), EmitError> {
            self.1.lock().unwrap().push(format!("{} flushes", self.0));
            Ok(())
        }
    }

    /// Observers that pass results on wait until they are durable; those that only show them don't have to.
    #[test]
    fn results_are_flushed_before_observers_that_pass_them_on() {
        let call = CallRef::new(&call_with_estimate(0, "get", 1, true).call, Some(0));
        for (flush_results_first, expected) in [
            (true, &["log emits", "log flushes", "observer emits"][..]),
            (false, &["log emits", "observer emits"]),
        ] {
            let steps = Arc::default();
            let mut log = StepSink("log", Arc::clone(&steps));
            let mut observer = StepSink("observer", Arc::clone(&steps));
            let fanout = EventFanout::new(Some(&mut log), [Some(&mut observer)]);
            emit_finished(
                &mut fanout.flush_results_first(flush_results_first),
                &call,
                &success_outcome("x"),
                "x",
                (1, 1),
            )
            .unwrap();
            assert_eq!(*steps.lock().unwrap(), expected);
        }
    }

    #[test]
    fn the_log_may_fail_an_emit_and_an_observer_may_not() {
        let checked = call_with_estimate(0, "get", 1, true);
        let call = CallRef::new(&checked.call, Some(0));
        let Verdict::Accepted(accepted) = &checked.verdict else {
            unreachable!()
        };
        let started = Event::Started {
            call: &call,
            accepted,
            attempt: 1,
            idempotency_key: "key",
            waited: None,
        };
        let events = [
            Event::TurnStarted {
                turn: 0,
                parent: None,
                origin: &TurnOrigin::default(),
            },
            started,
        ];
        for log_fails in [false, true] {
            let (mut log, mut failing_observer, mut observer) = (
                RecordingSink(vec![], log_fails),
                RecordingSink(vec![], true),
                RecordingSink::default(),
            );
            let observers: [Option<&mut dyn EventSink>; 2] =
                [Some(&mut failing_observer), Some(&mut observer)];
            let mut fanout = EventFanout::new(Some(&mut log), observers);
            assert_eq!(fanout.emit(&events).is_err(), log_fails);
            assert_eq!(log.0, ["TurnStarted", "Started"]);
            let expected: &[&str] = if log_fails {
                &["TurnStarted"]
            } else {
                &["TurnStarted", "Started"]
            };
            assert_eq!(observer.0, expected);
        }
    }
}
