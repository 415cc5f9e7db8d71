//! Distributes events to several sinks.

use toolq_core::types::{EmitError, Event, EventSink};

/// A sink that passes events to the session log, whose errors count, and to observers, whose errors don't.
pub struct EventFanout<'a, const N: usize> {
    log: Option<&'a mut dyn EventSink>,
    observers: [Option<&'a mut dyn EventSink>; N],
}

impl<'a, const N: usize> EventFanout<'a, N> {
    /// Creates a sink that emits to `log` before the observers. `None` stands for one that isn't there.
    pub fn new(
        log: Option<&'a mut dyn EventSink>,
        observers: [Option<&'a mut dyn EventSink>; N],
    ) -> Self {
        Self { log, observers }
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
        let recorded = self.log.as_mut().map_or(Ok(()), |log| log.emit(events));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::types::{CallRef, TurnOrigin, Verdict};
    use toolq_testing::call_with_estimate;

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
            claim: None,
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
