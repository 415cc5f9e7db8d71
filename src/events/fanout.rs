use toolq_core::types::{Event, Refused, Sink};

/// One sink made of many: the session log, which may refuse, and readers, which may not.
pub struct Fanout<'a> {
    log: Option<&'a mut dyn Sink>,
    readers: Vec<&'a mut dyn Sink>,
    /// A reader hands results on, so that they must be durable before.
    hands_on: bool,
}

impl<'a> Fanout<'a> {
    /// Tells `log` before all `readers`.
    pub fn new(log: Option<&'a mut dyn Sink>, readers: Vec<&'a mut dyn Sink>) -> Self {
        Self {
            log,
            readers,
            hands_on: false,
        }
    }

    /// The same where readers hand on the results that they are told of, if `hands_on`: before that, the log makes them
    /// durable.
    #[must_use]
    pub fn handing_on(self, hands_on: bool) -> Self {
        Self { hands_on, ..self }
    }

    fn record(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        log.tell(events)?;
        let ends = |event: &Event<'_>| matches!(event, Event::Finished { .. });
        if self.hands_on && events.iter().any(ends) {
            log.settle()
        } else {
            Ok(())
        }
    }

    fn tell_readers(&mut self, events: &[Event<'_>]) {
        for reader in &mut self.readers {
            // A reader that can't go on says so itself, at the end.
            let _ = reader.tell(events);
        }
    }
}

impl Sink for Fanout<'_> {
    /// What the log says. Nobody hears of a start that it refused, since there will be none.
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        let recorded = self.record(events);
        if recorded.is_ok() {
            self.tell_readers(events);
        } else {
            let starts = |event: &&Event<'_>| matches!(event, Event::Started { .. });
            let others: Vec<_> = events
                .iter()
                .filter(|event| !starts(event))
                .cloned()
                .collect();
            self.tell_readers(&others);
        }
        recorded
    }

    fn settle(&mut self) -> Result<(), Refused> {
        self.log.as_mut().map_or(Ok(()), |log| log.settle())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    use toolq_core::testing::{finish, succeeded, timed};
    use toolq_core::types::{CallRef, Verdict};

    #[derive(Default)]
    struct Reader(Vec<String>, bool);

    impl Sink for Reader {
        fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
            let told = events.iter().map(|event| format!("{event:?}"));
            let names =
                told.map(|told| told.split([' ', '{']).next().unwrap_or_default().to_owned());
            self.0.extend(names);
            if self.1 {
                Err(Refused("no".to_owned()))
            } else {
                Ok(())
            }
        }
    }

    /// A log and a reader that write into one list.
    struct Notes(&'static str, Arc<Mutex<Vec<String>>>);

    impl Sink for Notes {
        fn tell(&mut self, _: &[Event<'_>]) -> Result<(), Refused> {
            self.1.lock().unwrap().push(format!("{} told", self.0));
            Ok(())
        }

        fn settle(&mut self) -> Result<(), Refused> {
            self.1.lock().unwrap().push(format!("{} settles", self.0));
            Ok(())
        }
    }

    /// Who hands a result on does so when it is durable; who only shows it needs not wait.
    #[test]
    fn what_is_handed_on_is_durable() {
        let call = CallRef::new(&timed(0, "get", 1, true).call, Some(0));
        for (hands_on, expected) in [
            (true, &["log told", "log settles", "reader told"][..]),
            (false, &["log told", "reader told"]),
        ] {
            let notes = Arc::default();
            let mut log = Notes("log", Arc::clone(&notes));
            let mut reader = Notes("reader", Arc::clone(&notes));
            let all = Fanout::new(Some(&mut log), vec![&mut reader]);
            finish(
                &mut all.handing_on(hands_on),
                &call,
                &succeeded("x"),
                "x",
                (1, 1),
            )
            .unwrap();
            assert_eq!(*notes.lock().unwrap(), expected);
        }
    }

    #[test]
    fn the_log_may_refuse_and_a_reader_may_not() {
        let checked = timed(0, "get", 1, true);
        let call = CallRef::new(&checked.call, Some(0));
        let Verdict::Accepted(accepted) = &checked.verdict else {
            unreachable!()
        };
        let started = Event::Started {
            call: &call,
            accepted,
            attempt: 1,
            idempotency_key: "key",
        };
        let events = [
            Event::TurnStarted {
                turn: 0,
                within: None,
            },
            started,
        ];
        for refusing in [false, true] {
            let (mut log, mut broken, mut reader) = (
                Reader(vec![], refusing),
                Reader(vec![], true),
                Reader::default(),
            );
            let mut all = Fanout::new(Some(&mut log), vec![&mut broken, &mut reader]);
            assert_eq!(all.tell(&events).is_err(), refusing);
            assert_eq!(log.0, ["TurnStarted", "Started"]);
            let heard: &[&str] = if refusing {
                &["TurnStarted"]
            } else {
                &["TurnStarted", "Started"]
            };
            assert_eq!(reader.0, heard);
        }
    }
}
