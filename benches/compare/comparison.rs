//! The rounds of a row. Each program runs once per round, and the figure is computed per round.

use crate::Result;
use crate::bar::PerformanceBar;
use crate::bench_program::{BenchProgram, RunSample};

/// What toolq is compared with in one line of the table.
#[derive(Debug)]
pub struct Baseline {
    /// The rival; `None` if the bar is about toolq alone.
    pub program: Option<BenchProgram>,
    /// The bar that toolq must meet.
    pub bar: PerformanceBar,
}

/// A line of the table.
#[derive(Debug)]
pub struct ComparisonLine {
    /// What is measured.
    pub work: &'static str,
    /// Name of the rival.
    pub against: &'static str,
    /// The bar that toolq must meet.
    pub bar: PerformanceBar,
    /// The result of the comparison.
    pub outcome: ComparisonOutcome,
}

/// The result of comparing with one rival.
#[derive(Debug)]
pub enum ComparisonOutcome {
    /// The rounds were run.
    Measured(RoundMedians),
    /// The rival isn't installed; the text says how to install it.
    NotInstalled(&'static str),
}

/// The medians of the rounds.
#[derive(Debug)]
pub struct RoundMedians {
    /// toolq's time, in ms.
    pub ours: f64,
    /// The rival's time, in ms.
    pub theirs: Option<f64>,
    /// The bar's figure.
    pub figure: f64,
    /// toolq's CPU time as a multiple of the rival's. Other work on the machine affects it less than the times.
    pub cpu_ratio: Option<f64>,
}

impl ComparisonLine {
    /// Returns the line of a baseline that isn't measured; `hint` says what to install.
    pub fn skipped(work: &'static str, baseline: &Baseline, hint: &'static str) -> Self {
        Self {
            work,
            against: baseline.rival_name(),
            bar: baseline.bar,
            outcome: ComparisonOutcome::NotInstalled(hint),
        }
    }
}

impl Baseline {
    /// Compares with another program.
    pub fn new(program: BenchProgram, bar: PerformanceBar) -> Self {
        Self {
            program: Some(program),
            bar,
        }
    }

    /// Measures toolq alone.
    pub fn absolute(bar: PerformanceBar) -> Self {
        Self { program: None, bar }
    }

    fn rival_name(&self) -> &'static str {
        self.program.as_ref().map_or("–", |program| program.name)
    }
}

/// A baseline and its samples so far.
struct BaselineRunner<'a> {
    baseline: &'a Baseline,
    /// How to install it, if it isn't installed.
    missing_hint: Option<&'static str>,
    samples: Vec<RunSample>,
}

/// Runs toolq and the installed rivals for one warm-up round and `rounds` measured ones. Returns a line per baseline.
///
/// # Errors
/// A program failed, or didn't do its work.
pub fn compare_rounds(
    work: &'static str,
    rounds: usize,
    toolq: &BenchProgram,
    baselines: &[Baseline],
) -> Result<Vec<ComparisonLine>> {
    let mut ours = Vec::with_capacity(rounds + 1);
    let mut runners: Vec<BaselineRunner<'_>> = baselines.iter().map(BaselineRunner::new).collect();
    for _ in 0..=rounds {
        ours.push(toolq.run()?);
        for runner in &mut runners {
            runner.run_round()?;
        }
    }
    Ok(runners
        .iter()
        .map(|runner| runner.to_line(work, &ours[1..]))
        .collect())
}

/// As [`compare_rounds`], but nothing is run if a rival isn't installed, since toolq needs the same.
///
/// # Errors
/// A program failed, or didn't do its work.
pub fn compare_if_installed(
    work: &'static str,
    rounds: usize,
    toolq: &BenchProgram,
    baselines: &[Baseline],
) -> Result<Vec<ComparisonLine>> {
    let mut rivals = baselines.iter().filter_map(|line| line.program.as_ref());
    match rivals.find_map(BenchProgram::missing_hint) {
        None => compare_rounds(work, rounds, toolq, baselines),
        Some(hint) => {
            let lines = baselines.iter();
            let lines = lines.map(|line| ComparisonLine::skipped(work, line, hint));
            Ok(lines.collect())
        }
    }
}

impl<'a> BaselineRunner<'a> {
    fn new(baseline: &'a Baseline) -> Self {
        Self {
            baseline,
            missing_hint: baseline
                .program
                .as_ref()
                .and_then(BenchProgram::missing_hint),
            samples: Vec::new(),
        }
    }

    fn run_round(&mut self) -> Result<()> {
        if let (Some(program), None) = (&self.baseline.program, self.missing_hint) {
            self.samples.push(program.run()?);
        }
        Ok(())
    }

    /// Summarizes the rounds. `ours` doesn't include the warm-up round.
    fn to_line(&self, work: &'static str, ours: &[RunSample]) -> ComparisonLine {
        let outcome = match self.missing_hint {
            Some(hint) => ComparisonOutcome::NotInstalled(hint),
            None => ComparisonOutcome::Measured(self.to_medians(ours)),
        };
        ComparisonLine {
            work,
            against: self.baseline.rival_name(),
            bar: self.baseline.bar,
            outcome,
        }
    }

    fn to_medians(&self, ours: &[RunSample]) -> RoundMedians {
        let theirs = self.samples.get(1..);
        // Without a rival, the bar only uses toolq's samples.
        let rounds = || ours.iter().zip(theirs.unwrap_or(ours));
        let bar = &self.baseline.bar;
        let cpu_secs = |sample: &RunSample| sample.usage.cpu_time.as_secs_f64();
        RoundMedians {
            ours: median(ours.iter().map(RunSample::ms)),
            theirs: theirs.map(|theirs| median(theirs.iter().map(RunSample::ms))),
            figure: median(rounds().map(|(ours, theirs)| bar.measure(ours, theirs))),
            cpu_ratio: theirs
                .map(|_| median(rounds().map(|(ours, theirs)| cpu_secs(ours) / cpu_secs(theirs)))),
        }
    }
}

/// Returns the median: the middle figure, or the mean of the two in the middle.
fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = figures.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    }
}
