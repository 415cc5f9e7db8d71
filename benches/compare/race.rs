//! The rounds of a row: everybody runs once in each, and each round judges for itself.

use crate::Result;
use crate::bar::Bar;
use crate::contestant::{Contestant, Sample};

/// What toolq is held against in one line of the table.
#[derive(Debug)]
pub struct Rival {
    /// Nobody, where the bar is a figure of toolq's own.
    pub contestant: Option<Contestant>,
    /// What is asked.
    pub bar: Bar,
}

/// A line of the table.
#[derive(Debug)]
pub struct Line {
    /// The row's work.
    pub work: &'static str,
    /// The rival's name.
    pub against: &'static str,
    /// What was asked.
    pub bar: Bar,
    /// What was found.
    pub found: Found,
}

/// What the rounds said of one rival.
#[derive(Debug)]
pub enum Found {
    /// They were run.
    Measured(Medians),
    /// The rival is not installed; how to get it.
    Missing(&'static str),
}

/// The medians of the rounds.
#[derive(Debug)]
pub struct Medians {
    /// Toolq's time in ms.
    pub ours: f64,
    /// The rival's time in ms.
    pub theirs: Option<f64>,
    /// The bar's figure.
    pub figure: f64,
    /// Toolq's processor time as a multiple of the rival's: what other work on the machine changes least.
    pub processor: Option<f64>,
}

impl Rival {
    /// Another program.
    pub fn new(contestant: Contestant, bar: Bar) -> Self {
        Self {
            contestant: Some(contestant),
            bar,
        }
    }

    /// Nobody.
    pub fn none(bar: Bar) -> Self {
        Self {
            contestant: None,
            bar,
        }
    }
}

/// A rival in its race.
struct Runner<'a> {
    rival: &'a Rival,
    /// How to get it, where it is not installed.
    missing: Option<&'static str>,
    samples: Vec<Sample>,
}

/// Runs toolq and those of its rivals that are installed `rounds` times, after one round to warm up; a line for each rival.
///
/// # Errors
/// A contestant failed: what it should have done was not done.
pub fn race(
    work: &'static str,
    rounds: usize,
    toolq: &Contestant,
    rivals: &[Rival],
) -> Result<Vec<Line>> {
    let mut ours = Vec::with_capacity(rounds + 1);
    let mut runners: Vec<Runner<'_>> = rivals.iter().map(Runner::new).collect();
    for _ in 0..=rounds {
        ours.push(toolq.run()?);
        for runner in &mut runners {
            runner.run()?;
        }
    }
    Ok(runners
        .iter()
        .map(|runner| runner.line(work, &ours[1..]))
        .collect())
}

impl<'a> Runner<'a> {
    fn new(rival: &'a Rival) -> Self {
        Self {
            rival,
            missing: rival.contestant.as_ref().and_then(Contestant::missing),
            samples: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<()> {
        if let (Some(contestant), None) = (&self.rival.contestant, self.missing) {
            self.samples.push(contestant.run()?);
        }
        Ok(())
    }

    /// What the rounds say, the first one left out on both sides.
    fn line(&self, work: &'static str, ours: &[Sample]) -> Line {
        let Rival { contestant, bar } = self.rival;
        let found = match self.missing {
            Some(cure) => Found::Missing(cure),
            None => Found::Measured(self.medians(ours)),
        };
        Line {
            work,
            against: contestant
                .as_ref()
                .map_or("–", |contestant| contestant.name),
            bar: *bar,
            found,
        }
    }

    fn medians(&self, ours: &[Sample]) -> Medians {
        let theirs = self.samples.get(1..);
        // Where there is no rival, the bar looks at toolq alone.
        let rounds = || ours.iter().zip(theirs.unwrap_or(ours));
        let bar = &self.rival.bar;
        let processor = |sample: &Sample| sample.usage.processor.as_secs_f64();
        Medians {
            ours: median(ours.iter().map(Sample::ms)),
            theirs: theirs.map(|theirs| median(theirs.iter().map(Sample::ms))),
            figure: median(rounds().map(|(ours, theirs)| bar.figure(ours, theirs))),
            processor: theirs.map(|_| {
                median(rounds().map(|(ours, theirs)| processor(ours) / processor(theirs)))
            }),
        }
    }
}

/// The middle one, or the mean of the two in the middle.
pub fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = figures.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    }
}
