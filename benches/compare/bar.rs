//! What a row asks for: a figure made of two samples, and the bound that it must keep.

use std::fmt;
use std::time::Duration;

use crate::contestant::Sample;

/// A figure and its bound.
#[derive(Debug, Clone, Copy)]
pub struct Bar {
    figure: Figure,
    bound: f64,
    aim: Option<f64>,
}

/// What is compared of toolq and its rival.
#[derive(Debug, Clone, Copy)]
enum Figure {
    /// Toolq's rate as a multiple of the rival's: the more the better.
    Rate,
    /// Toolq's time as a multiple of the rival's.
    Time,
    /// The same of what either takes beyond the time that the work itself takes.
    Overhead(Duration),
    /// What toolq takes longer, in ms.
    Longer,
    /// What toolq takes by itself, in ms.
    Alone,
    /// The most memory that toolq held, in MB.
    Memory,
    /// How many of these MB toolq passes in a second of processor time.
    Speed(f64),
}

impl Bar {
    /// At least `bound` times the rival's rate; `aim` is what would be good.
    pub fn rate(bound: f64, aim: f64) -> Self {
        Self {
            aim: Some(aim),
            ..Self::new(Figure::Rate, bound)
        }
    }

    /// At most `bound` times the rival's time.
    pub fn time(bound: f64) -> Self {
        Self::new(Figure::Time, bound)
    }

    /// At most `bound` times the rival's overhead over `work`, the time that the work takes by itself.
    pub fn overhead(work: Duration, bound: f64) -> Self {
        Self::new(Figure::Overhead(work), bound)
    }

    /// At most `bound` ms more than the rival.
    pub fn longer(bound: f64) -> Self {
        Self::new(Figure::Longer, bound)
    }

    /// At most `bound` ms, whatever others take.
    pub fn alone(bound: f64) -> Self {
        Self::new(Figure::Alone, bound)
    }

    /// At most `bound` MB, whatever others hold.
    pub fn memory(bound: f64) -> Self {
        Self::new(Figure::Memory, bound)
    }

    /// At least `bound` MB a second of toolq's processor time, of `megabytes` in all.
    pub fn speed(megabytes: f64, bound: f64) -> Self {
        Self::new(Figure::Speed(megabytes), bound)
    }

    fn new(figure: Figure, bound: f64) -> Self {
        Self {
            figure,
            bound,
            aim: None,
        }
    }

    /// The figure of one round.
    pub fn figure(&self, ours: &Sample, theirs: &Sample) -> f64 {
        match self.figure {
            Figure::Rate => theirs.ms() / ours.ms(),
            Figure::Time => ours.ms() / theirs.ms(),
            Figure::Overhead(work) => {
                let work = work.as_secs_f64() * 1e3;
                (ours.ms() - work) / (theirs.ms() - work)
            }
            Figure::Longer => ours.ms() - theirs.ms(),
            Figure::Alone => ours.ms(),
            Figure::Memory => ours.usage.memory_mb,
            Figure::Speed(megabytes) => megabytes / ours.usage.processor.as_secs_f64(),
        }
    }

    /// A figure in the words of the table.
    pub fn show(&self, figure: f64) -> String {
        match self.figure {
            Figure::Rate | Figure::Time | Figure::Overhead(_) => format!("{figure:.2} ×"),
            Figure::Longer => format!("{figure:+.1} ms"),
            Figure::Alone => format!("{figure:.1} ms"),
            Figure::Memory => format!("{figure:.0} MB"),
            Figure::Speed(_) => format!("{figure:.0} MB/s"),
        }
    }

    /// Whether `figure` keeps the bound.
    pub fn holds(&self, figure: f64) -> bool {
        self.reaches(figure, self.bound)
    }

    /// Whether `figure` is as good as it should one day be.
    pub fn reaches_aim(&self, figure: f64) -> bool {
        self.aim.is_some_and(|aim| self.reaches(figure, aim))
    }

    fn reaches(&self, figure: f64, bound: f64) -> bool {
        match self.figure {
            Figure::Rate | Figure::Speed(_) => figure >= bound,
            _ => figure <= bound,
        }
    }
}

/// `at least 0.80 ×, aim 0.95 ×`.
impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sense = if matches!(self.figure, Figure::Rate | Figure::Speed(_)) {
            "≥"
        } else {
            "≤"
        };
        write!(f, "{sense} {}", self.show(self.bound))?;
        self.aim
            .map_or(Ok(()), |aim| write!(f, ", aim {}", self.show(aim)))
    }
}
