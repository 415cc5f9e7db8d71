//! The requirement of a row: a figure computed from two samples, and the bound that it must meet.

use std::fmt;

use crate::bench_program::RunSample;

/// A figure and the bound that it must meet.
#[derive(Debug, Clone, Copy)]
pub struct PerformanceBar {
    kind: FigureKind,
    bound: f64,
    /// A value that would be good to reach, beyond the bound.
    aim: Option<f64>,
}

/// How the figure is computed from the samples of toolq and its rival.
#[derive(Debug, Clone, Copy)]
enum FigureKind {
    /// toolq's rate as a multiple of the rival's. More is better.
    Rate,
    /// toolq's time as a multiple of the rival's.
    Time,
    /// toolq's time, in ms.
    OwnTime,
    /// toolq's peak memory, in MB.
    Memory,
    /// Calls that toolq answers per second; the value is the number of calls.
    CallRate(f64),
}

impl PerformanceBar {
    /// Requires at least `bound` times the rival's rate. `aim` is a value that would be good to reach.
    pub fn rate(bound: f64, aim: f64) -> Self {
        Self {
            aim: Some(aim),
            ..Self::new(FigureKind::Rate, bound)
        }
    }

    /// Requires at most `bound` times the rival's time.
    pub fn time(bound: f64) -> Self {
        Self::new(FigureKind::Time, bound)
    }

    /// Requires at most `bound` ms, with no rival.
    pub fn own_time(bound: f64) -> Self {
        Self::new(FigureKind::OwnTime, bound)
    }

    /// Requires at most `bound` MB of peak memory, with no rival.
    pub fn memory(bound: f64) -> Self {
        Self::new(FigureKind::Memory, bound)
    }

    /// Requires at least `bound` calls per second, in a run of `calls` calls.
    pub fn call_rate(calls: u32, bound: f64) -> Self {
        Self::new(FigureKind::CallRate(calls.into()), bound)
    }

    fn new(kind: FigureKind, bound: f64) -> Self {
        Self {
            kind,
            bound,
            aim: None,
        }
    }

    /// Computes the figure of one round.
    pub fn measure(&self, ours: &RunSample, theirs: &RunSample) -> f64 {
        match self.kind {
            FigureKind::Rate => theirs.ms() / ours.ms(),
            FigureKind::Time => ours.ms() / theirs.ms(),
            FigureKind::OwnTime => ours.ms(),
            FigureKind::Memory => ours.usage.peak_memory_mb,
            FigureKind::CallRate(calls) => calls / ours.time.as_secs_f64(),
        }
    }

    /// Formats a figure for the table.
    pub fn format_figure(&self, figure: f64) -> String {
        match self.kind {
            FigureKind::Rate | FigureKind::Time => {
                format!("{figure:.2} ×")
            }
            FigureKind::OwnTime => format!("{figure:.1} ms"),
            FigureKind::Memory => format!("{figure:.0} MB"),
            FigureKind::CallRate(_) => format!("{figure:.0} calls/s"),
        }
    }

    /// Returns whether `figure` meets the bound.
    pub fn holds(&self, figure: f64) -> bool {
        self.reaches(figure, self.bound)
    }

    /// Returns whether `figure` reaches the aim.
    pub fn reaches_aim(&self, figure: f64) -> bool {
        self.aim.is_some_and(|aim| self.reaches(figure, aim))
    }

    fn reaches(&self, figure: f64, bound: f64) -> bool {
        if self.kind.is_more_better() {
            figure >= bound
        } else {
            figure <= bound
        }
    }
}

impl FigureKind {
    fn is_more_better(self) -> bool {
        matches!(self, Self::Rate | Self::CallRate(_))
    }
}

/// Formats the bound for the table, such as `≥ 0.80 ×, aim 0.95 ×`.
impl fmt::Display for PerformanceBar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relation = if self.kind.is_more_better() {
            "≥"
        } else {
            "≤"
        };
        write!(f, "{relation} {}", self.format_figure(self.bound))?;
        self.aim
            .map_or(Ok(()), |aim| write!(f, ", aim {}", self.format_figure(aim)))
    }
}
