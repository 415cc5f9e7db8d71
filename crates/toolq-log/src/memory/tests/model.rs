//! An exhaustive model of one call that writes, with the real decision in it: runs that are killed at any step, a power loss
//! that keeps or loses each thing that wasn't synced, probes, and people who settle doubts by what they see when they look.
//! Every step on the file system is a step of the model, so everything can come between any two.

use std::collections::{HashSet, VecDeque};

use crate::memory::decision::{
    Asker, Attempt, AttemptEnd, Decision, IfDoubtful, LogAccess, ResultKind, decide,
};

const RUNS: usize = 4;
const ATTEMPTS: usize = 3;
const PEOPLE: usize = 2;

/// What a run does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    NotBegun,
    ReadEntries,
    TestLock,
    ReadLog(LogAccess),
    LookAgain,
    WriteStart,
    Claim,
    SyncClaim,
    Spawn,
    AwaitTool,
    WriteResult,
    SyncLog,
    SyncOtherLog,
    AskProbe,
    Settle(bool),
    SyncSettlement,
    Print(Answer),
    /// It goes on, and its log says that the call is in doubt.
    Serving,
    Ended,
    Killed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Answer {
    Ran,
    Memory,
    Settled,
    Doubt,
    Running,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Tool {
    Idle,
    Running,
    Done,
    /// Its run was killed, and it is being ended.
    Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Run {
    step: Step,
    tool: Tool,
    /// The attempt that it makes or has found, and the run that made that.
    attempt: u8,
    found: u8,
    /// A result had been printed before it began.
    began_late: bool,
}

/// The log of a run: a start, then an end. What isn't synced may be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Log {
    records: u8,
    synced: u8,
    is_in_doubt: bool,
    is_entry_synced: bool,
    is_gone: bool,
}

/// Something in the folder of claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Entry<T> {
    seen: Option<T>,
    durable: Option<T>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Person {
    Waiting,
    Looked(bool),
    Syncing,
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct World {
    runs: [Run; RUNS],
    logs: [Log; RUNS],
    claims: [Entry<u8>; ATTEMPTS],
    settlements: [Entry<bool>; ATTEMPTS],
    people: [Person; PEOPLE],
    effects: u8,
    kills: u8,
    power_losses: u8,
    /// The latest attempt that was said to be in doubt.
    doubted: u8,
    was_printed: bool,
}

/// The protocol, and what can happen to it.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a step that a variant leaves out, or something that may happen"
)]
struct Protocol {
    runs: usize,
    people: usize,
    kills: u8,
    power_losses: u8,
    has_probe: bool,
    /// The first run loses its connection to the tool, says so, and goes on.
    loses_connection: bool,
    // What would be wrong to leave out.
    claims: bool,
    claims_before_effect: bool,
    syncs_claim: bool,
    syncs_result: bool,
    tests_lock_first: bool,
    lock_outlives_run: bool,
    syncs_before_deciding: bool,
    syncs_what_it_answers: bool,
    keeps_logs: bool,
}

const RIGHT: Protocol = Protocol {
    runs: 3,
    people: 1,
    kills: 1,
    power_losses: 1,
    has_probe: false,
    loses_connection: false,
    claims: true,
    claims_before_effect: true,
    syncs_claim: true,
    syncs_result: true,
    tests_lock_first: true,
    lock_outlives_run: true,
    syncs_before_deciding: true,
    syncs_what_it_answers: true,
    keeps_logs: true,
};

impl<T: Copy + PartialEq> Entry<T> {
    const NONE: Self = Self {
        seen: None,
        durable: None,
    };

    fn sync(&mut self) {
        self.durable = self.seen;
    }
}

impl World {
    fn new() -> Self {
        let run = Run {
            step: Step::NotBegun,
            tool: Tool::Idle,
            attempt: 0,
            found: 0,
            began_late: false,
        };
        let log = Log {
            records: 0,
            synced: 0,
            is_in_doubt: false,
            is_entry_synced: false,
            is_gone: false,
        };
        Self {
            runs: [run; RUNS],
            logs: [log; RUNS],
            claims: [Entry::NONE; ATTEMPTS],
            settlements: [Entry::NONE; ATTEMPTS],
            people: [Person::Waiting; PEOPLE],
            effects: 0,
            kills: 0,
            power_losses: 0,
            doubted: 0,
            was_printed: false,
        }
    }

    fn sync_entries(&mut self) {
        self.claims.iter_mut().for_each(Entry::sync);
        self.settlements.iter_mut().for_each(Entry::sync);
    }

    fn has_unsynced_entries(&self) -> bool {
        self.claims.iter().any(|entry| entry.seen != entry.durable)
            || self
                .settlements
                .iter()
                .any(|entry| entry.seen != entry.durable)
    }

    fn is_alive(&self, run: usize) -> bool {
        !matches!(
            self.runs[run].step,
            Step::NotBegun | Step::Ended | Step::Killed
        )
    }

    fn is_held(&self, run: usize, protocol: &Protocol) -> bool {
        self.is_alive(run) || protocol.lock_outlives_run && self.runs[run].tool == Tool::Ending
    }

    fn log_end(&self, run: usize) -> AttemptEnd {
        match self.logs[run] {
            Log {
                records: 2,
                is_in_doubt: true,
                ..
            } => AttemptEnd::InDoubt,
            Log { records: 2, .. } => AttemptEnd::Result(ResultKind::Done),
            _ => AttemptEnd::Unknown,
        }
    }

    /// Returns the number of the latest attempt that has an entry, with the run that made it.
    fn latest_claim(&self) -> Option<(u8, u8)> {
        let attempts = (1..).zip(&self.claims);
        attempts
            .filter_map(|(number, entry)| Some((number, entry.seen?)))
            .last()
    }
}

/// A world that may follow, or what is wrong.
type Next = Result<World, &'static str>;

struct Successors<'m> {
    world: &'m World,
    protocol: &'m Protocol,
    next: Vec<Next>,
}

impl Successors<'_> {
    fn push(&mut self, change: impl FnOnce(&mut World)) {
        let mut world = *self.world;
        change(&mut world);
        let next = if world.effects > 1 {
            Err("two effects")
        } else {
            Ok(world)
        };
        self.next.push(next);
    }

    /// Adds the worlds in which `run` goes to `step`, once `change` has happened.
    fn go(&mut self, run: usize, step: Step, change: impl FnOnce(&mut World)) {
        self.push(|world| {
            change(world);
            world.runs[run].step = step;
        });
    }

    fn run_steps(&mut self, run: usize) {
        let Run {
            step,
            attempt,
            found,
            tool,
            ..
        } = self.world.runs[run];
        let (protocol, slot) = (self.protocol, usize::from(attempt).saturating_sub(1));
        match step {
            Step::NotBegun => {
                let may_begin = run == 0 || self.world.runs[run - 1].step != Step::NotBegun;
                if run < protocol.runs && may_begin {
                    self.go(run, Step::ReadEntries, |world| {
                        world.runs[run].began_late = world.was_printed;
                    });
                }
            }
            Step::ReadEntries => self.read_entries(run),
            Step::TestLock => self.test_lock(run, usize::from(found)),
            Step::ReadLog(access) => self.read_log(run, access),
            Step::LookAgain => self.look_again(run),
            Step::WriteStart => {
                let next = match (protocol.claims, protocol.claims_before_effect) {
                    (true, true) => Step::Claim,
                    _ => Step::Spawn,
                };
                self.go(run, next, |world| world.logs[run].records = 1);
            }
            Step::Claim => self.claim(run, slot),
            Step::SyncClaim => {
                let next = if protocol.claims_before_effect {
                    Step::Spawn
                } else {
                    Step::WriteResult
                };
                self.go(run, next, World::sync_entries);
            }
            Step::Spawn => self.go(run, Step::AwaitTool, |world| {
                world.runs[run].tool = Tool::Running;
            }),
            Step::AwaitTool => self.await_tool(run, tool),
            Step::WriteResult => {
                let next = if protocol.syncs_result {
                    Step::SyncLog
                } else {
                    Step::Print(Answer::Ran)
                };
                self.go(run, next, |world| world.logs[run].records = 2);
            }
            Step::SyncLog => self.go(run, Step::Print(Answer::Ran), |world| {
                sync_log(&mut world.logs[run]);
            }),
            Step::SyncOtherLog => {
                self.go(run, Step::Print(Answer::Memory), |world| {
                    sync_log(&mut world.logs[usize::from(found)]);
                });
            }
            // A probe says what is so when it looks.
            Step::AskProbe => self.go(run, Step::Settle(self.world.effects > 0), |_| {}),
            Step::Settle(done) => self.go(run, Step::SyncSettlement, |world| {
                world.settlements[slot].seen.get_or_insert(done);
            }),
            Step::SyncSettlement => self.go(run, Step::ReadEntries, World::sync_entries),
            Step::Print(answer) => self.print(run, answer),
            Step::Serving | Step::Ended | Step::Killed => {}
        }
        self.tool_steps(run, tool);
        if self.world.is_alive(run) && self.world.kills < protocol.kills {
            self.go(run, Step::Killed, |world| {
                world.kills += 1;
                let tool = &mut world.runs[run].tool;
                *tool = if *tool == Tool::Running {
                    Tool::Ending
                } else {
                    Tool::Idle
                };
            });
        }
    }

    fn tool_steps(&mut self, run: usize, tool: Tool) {
        if matches!(tool, Tool::Running | Tool::Ending) {
            let ended = if tool == Tool::Running {
                Tool::Done
            } else {
                Tool::Idle
            };
            self.push(|world| {
                world.effects += 1;
                world.runs[run].tool = ended;
            });
        }
        if tool == Tool::Ending {
            self.push(|world| world.runs[run].tool = Tool::Idle);
        }
    }

    fn read_entries(&mut self, run: usize) {
        let world = self.world;
        if !self.protocol.claims {
            return self.go(run, Step::WriteStart, |world| world.runs[run].attempt = 1);
        }
        let Some((attempt, found)) = world.latest_claim() else {
            return self.decide(run, None);
        };
        if self.protocol.syncs_before_deciding && world.has_unsynced_entries() {
            return self.push(World::sync_entries);
        }
        let settled = world.settlements[usize::from(attempt) - 1].seen;
        if settled.is_some() {
            let attempt = Attempt {
                settled,
                ..attempt_found(attempt, LogAccess::Free, AttemptEnd::Unknown)
            };
            return self.decide(run, Some(attempt));
        }
        let first = if self.protocol.tests_lock_first {
            Step::TestLock
        } else {
            Step::ReadLog(LogAccess::Free)
        };
        self.go(run, first, |world| {
            (world.runs[run].attempt, world.runs[run].found) = (attempt, found);
        });
    }

    fn test_lock(&mut self, run: usize, found: usize) {
        let access = match self.world.is_held(found, self.protocol) {
            _ if self.world.logs[found].is_gone => return self.go(run, Step::LookAgain, |_| {}),
            true => LogAccess::Held,
            false => LogAccess::Free,
        };
        if self.protocol.tests_lock_first {
            return self.go(run, Step::ReadLog(access), |_| {});
        }
        // It was read before, and had no result then.
        let attempt = attempt_found(self.world.runs[run].attempt, access, AttemptEnd::Unknown);
        self.decide(run, Some(attempt));
    }

    fn read_log(&mut self, run: usize, access: LogAccess) {
        let found = usize::from(self.world.runs[run].found);
        if self.world.logs[found].is_gone {
            return self.go(run, Step::LookAgain, |_| {});
        }
        let end = self.world.log_end(found);
        if !self.protocol.tests_lock_first && end == AttemptEnd::Unknown {
            return self.go(run, Step::TestLock, |_| {});
        }
        let attempt = attempt_found(self.world.runs[run].attempt, access, end);
        self.decide(run, Some(attempt));
    }

    /// The log is gone. It may have been pruned since the entries were read.
    fn look_again(&mut self, run: usize) {
        let Run { attempt, found, .. } = self.world.runs[run];
        if self.world.latest_claim() != Some((attempt, found)) {
            return self.go(run, Step::ReadEntries, |_| {});
        }
        let attempt = attempt_found(attempt, LogAccess::Gone, AttemptEnd::Unknown);
        self.decide(run, Some(attempt));
    }

    fn decide(&mut self, run: usize, latest: Option<Attempt>) {
        let asker = Asker {
            if_doubtful: if self.protocol.has_probe {
                IfDoubtful::Probe
            } else {
                IfDoubtful::Ask
            },
            ..Asker::default()
        };
        match decide(latest.as_ref(), asker) {
            // The model has no room for more attempts.
            Decision::Run(number) if number as usize > ATTEMPTS => {
                self.go(run, Step::Print(Answer::Doubt), |_| {});
            }
            Decision::Run(number) => self.go(run, Step::WriteStart, |world| {
                world.runs[run].attempt = u8::try_from(number).unwrap();
            }),
            Decision::Answer if self.protocol.syncs_what_it_answers => {
                self.go(run, Step::SyncOtherLog, |_| {});
            }
            Decision::Answer => self.go(run, Step::Print(Answer::Memory), |_| {}),
            Decision::AnswerSettled => self.go(run, Step::Print(Answer::Settled), |_| {}),
            Decision::InDoubt => self.go(run, Step::Print(Answer::Doubt), |_| {}),
            Decision::Probe => self.go(run, Step::AskProbe, |_| {}),
            Decision::Wait => {
                self.go(run, Step::ReadEntries, |_| {});
                self.go(run, Step::Print(Answer::Running), |_| {});
            }
            other => panic!("{other:?}"),
        }
    }

    fn claim(&mut self, run: usize, slot: usize) {
        if self.world.claims[slot].seen.is_some() {
            return self.go(run, Step::ReadEntries, |_| {});
        }
        let next = match (
            self.protocol.syncs_claim,
            self.protocol.claims_before_effect,
        ) {
            (true, _) => Step::SyncClaim,
            (false, true) => Step::Spawn,
            (false, false) => Step::WriteResult,
        };
        self.go(run, next, |world| {
            world.claims[slot].seen = Some(u8::try_from(run).unwrap());
        });
    }

    fn await_tool(&mut self, run: usize, tool: Tool) {
        if self.protocol.loses_connection && run == 0 {
            let attempt = self.world.runs[run].attempt;
            self.go(run, Step::Serving, |world| {
                let log = &mut world.logs[run];
                (log.records, log.is_in_doubt) = (2, true);
                sync_log(log);
                world.runs[run].tool = Tool::Idle;
                world.doubted = attempt;
            });
        }
        if tool == Tool::Done {
            let claims_now = self.protocol.claims && !self.protocol.claims_before_effect;
            let next = if claims_now {
                Step::Claim
            } else {
                Step::WriteResult
            };
            self.go(run, next, |world| world.runs[run].tool = Tool::Idle);
        }
    }

    fn print(&mut self, run: usize, answer: Answer) {
        let world = self.world;
        let Run {
            began_late,
            attempt,
            ..
        } = world.runs[run];
        let is_done = matches!(answer, Answer::Ran | Answer::Memory | Answer::Settled);
        let has_reason =
            world.kills > 0 || world.power_losses > 0 || self.protocol.loses_connection;
        let wrong = match answer {
            _ if is_done && world.effects == 0 => Some("answered as done, and nothing happened"),
            Answer::Ran if began_late => Some("a printed result ran again"),
            Answer::Doubt if began_late => Some("a printed result became a doubt"),
            Answer::Doubt if !has_reason => Some("a doubt without a reason"),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return self.next.push(Err(wrong));
        }
        self.go(run, Step::Ended, |world| {
            world.was_printed |= is_done;
            if answer == Answer::Doubt {
                world.doubted = attempt;
            }
        });
    }

    fn person_steps(&mut self, person: usize) {
        let slot = usize::from(self.world.doubted).saturating_sub(1);
        match self.world.people[person] {
            Person::Waiting if self.world.doubted > 0 => {
                let done = self.world.effects > 0;
                self.push(|world| world.people[person] = Person::Looked(done));
            }
            Person::Looked(done) => self.push(|world| {
                if world.claims[slot].seen.is_some() {
                    world.settlements[slot].seen.get_or_insert(done);
                }
                world.people[person] = Person::Syncing;
            }),
            Person::Syncing => self.push(|world| {
                world.sync_entries();
                world.people[person] = Person::Gone;
            }),
            Person::Waiting | Person::Gone => {}
        }
    }

    /// Removes a log that no run holds, as pruning must not.
    fn remove_logs(&mut self) {
        for run in 0..self.protocol.runs {
            let is_over = matches!(self.world.runs[run].step, Step::Ended | Step::Killed);
            if is_over && !self.world.logs[run].is_gone && !self.world.is_held(run, self.protocol) {
                self.push(|world| world.logs[run].is_gone = true);
            }
        }
    }

    /// Loses the power: each entry and each record that wasn't synced is there afterwards, or isn't.
    fn lose_power(&mut self) {
        let mut worlds = vec![*self.world];
        for slot in 0..ATTEMPTS {
            fork(&mut worlds, |world| {
                [world.claims[slot].seen, world.claims[slot].durable]
                    .map(|kept| {
                        let mut world = *world;
                        world.claims[slot] = Entry {
                            seen: kept,
                            durable: kept,
                        };
                        world
                    })
                    .to_vec()
            });
            fork(&mut worlds, |world| {
                [
                    world.settlements[slot].seen,
                    world.settlements[slot].durable,
                ]
                .map(|kept| {
                    let mut world = *world;
                    world.settlements[slot] = Entry {
                        seen: kept,
                        durable: kept,
                    };
                    world
                })
                .to_vec()
            });
        }
        for run in 0..self.protocol.runs {
            fork(&mut worlds, |world| power_loss_of_log(world, run));
        }
        for world in &mut worlds {
            world.power_losses += 1;
            for run in &mut world.runs {
                if !matches!(run.step, Step::NotBegun | Step::Ended) {
                    run.step = Step::Killed;
                }
                run.tool = Tool::Idle;
            }
            for person in &mut world.people {
                if *person != Person::Waiting {
                    *person = Person::Gone;
                }
            }
        }
        self.next.extend(worlds.into_iter().map(Ok));
    }
}

fn fork(worlds: &mut Vec<World>, split: impl Fn(&World) -> Vec<World>) {
    *worlds = worlds.iter().flat_map(split).collect();
    worlds.dedup();
}

fn power_loss_of_log(world: &World, run: usize) -> Vec<World> {
    let log = world.logs[run];
    let mut kept: Vec<Log> = (log.synced..=log.records)
        .map(|records| Log {
            records,
            synced: records,
            is_entry_synced: true,
            ..log
        })
        .collect();
    if !log.is_entry_synced && world.runs[run].step != Step::NotBegun {
        kept.push(Log {
            is_gone: true,
            ..log
        });
    }
    let with_log = |log| {
        let mut world = *world;
        world.logs[run] = log;
        world
    };
    kept.into_iter().map(with_log).collect()
}

fn sync_log(log: &mut Log) {
    (log.synced, log.is_entry_synced) = (log.records, true);
}

fn attempt_found(number: u8, log: LogAccess, end: AttemptEnd) -> Attempt {
    Attempt {
        number: number.into(),
        settled: None,
        log,
        end,
        is_same_call: true,
        is_expired: false,
    }
}

/// Visits every world that can be reached. Returns their number, or what is wrong in one of them.
fn explore(protocol: &Protocol) -> Result<usize, &'static str> {
    let mut seen = HashSet::from([World::new()]);
    let mut open = VecDeque::from([World::new()]);
    while let Some(world) = open.pop_front() {
        let mut successors = Successors {
            world: &world,
            protocol,
            next: Vec::new(),
        };
        (0..protocol.runs).for_each(|run| successors.run_steps(run));
        (0..protocol.people).for_each(|person| successors.person_steps(person));
        if !protocol.keeps_logs {
            successors.remove_logs();
        }
        let is_waiting = |run| world.is_alive(run) && world.runs[run].step != Step::Serving;
        if successors.next.is_empty() && (0..protocol.runs).any(is_waiting) {
            return Err("a run waits for ever");
        }
        if world.power_losses < protocol.power_losses {
            successors.lose_power();
        }
        for next in successors.next {
            let next = next?;
            if seen.insert(next) {
                open.push_back(next);
            }
        }
    }
    Ok(seen.len())
}

fn assert_right(protocol: &Protocol) {
    let worlds = explore(protocol).unwrap_or_else(|wrong| panic!("{wrong}: {protocol:?}"));
    assert!(worlds > 500, "{worlds}");
}

#[test]
fn a_call_has_its_effect_once_whatever_happens() {
    assert_right(&Protocol { runs: 2, ..RIGHT });
    assert_right(&Protocol {
        runs: 2,
        power_losses: 0,
        kills: 2,
        ..RIGHT
    });
    assert_right(&Protocol {
        runs: 2,
        has_probe: true,
        ..RIGHT
    });
    assert_right(&Protocol {
        runs: 2,
        kills: 0,
        power_losses: 0,
        loses_connection: true,
        people: 2,
        ..RIGHT
    });
}

/// The same with more runs and people: millions of worlds.
#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "takes minutes")]
fn a_call_has_its_effect_once_whatever_happens_to_many_runs() {
    assert_right(&RIGHT);
    assert_right(&Protocol {
        has_probe: true,
        ..RIGHT
    });
    assert_right(&Protocol {
        power_losses: 0,
        people: 2,
        ..RIGHT
    });
    assert_right(&Protocol {
        power_losses: 0,
        kills: 2,
        ..RIGHT
    });
    assert_right(&Protocol {
        power_losses: 0,
        runs: 4,
        ..RIGHT
    });
    assert_right(&Protocol {
        power_losses: 0,
        loses_connection: true,
        ..RIGHT
    });
}

/// Only four runs show this mistake: one is killed, one says that it is in doubt, one trusts the settlement, and one comes after
/// a power loss.
#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "takes minutes")]
fn a_settlement_that_is_not_durable_is_found() {
    let protocol = Protocol {
        syncs_before_deciding: false,
        runs: 4,
        ..RIGHT
    };
    assert_eq!(explore(&protocol), Err("a printed result became a doubt"));
}

/// Each of these would be a mistake. The model finds it.
#[test]
fn mistakes_are_found() {
    let unattended = Protocol {
        runs: 2,
        people: 0,
        ..RIGHT
    };
    let calm = Protocol {
        kills: 0,
        power_losses: 0,
        ..unattended
    };
    let without_power_loss = Protocol {
        power_losses: 0,
        ..unattended
    };
    for (mistake, protocol) in [
        (
            "no claim",
            Protocol {
                claims: false,
                ..calm
            },
        ),
        (
            "a claim after the effect",
            Protocol {
                claims_before_effect: false,
                ..without_power_loss
            },
        ),
        (
            "a claim that isn't synced",
            Protocol {
                syncs_claim: false,
                kills: 0,
                ..unattended
            },
        ),
        (
            "a result that is printed before it is synced",
            Protocol {
                syncs_result: false,
                kills: 0,
                ..unattended
            },
        ),
        (
            "a log that is read before its lock is tested",
            Protocol {
                tests_lock_first: false,
                ..calm
            },
        ),
        (
            "a lock that ends before the tool",
            Protocol {
                lock_outlives_run: false,
                has_probe: true,
                ..without_power_loss
            },
        ),
        (
            "a person who trusts such a lock",
            Protocol {
                lock_outlives_run: false,
                people: 1,
                runs: 3,
                ..without_power_loss
            },
        ),
        (
            "another run's result before it is synced",
            Protocol {
                syncs_what_it_answers: false,
                runs: 3,
                kills: 0,
                ..unattended
            },
        ),
        (
            "a log that is removed",
            Protocol {
                keeps_logs: false,
                ..calm
            },
        ),
    ] {
        assert!(explore(&protocol).is_err(), "{mistake} isn't found");
    }
}
