//! Limits on when calls start: how many run at once, and how far their starts are apart.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use crate::types::http_backing::HostPattern;

/// The limits of a tool, a server or a host on its calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StartLimits {
    /// Maximum number of calls that run at once.
    pub max_parallel: Option<NonZeroUsize>,
    /// How often calls start.
    pub rate: Option<StartRate>,
}

/// The limits of the hosts that match a pattern, which share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostLimits {
    /// The hosts.
    pub pattern: HostPattern,
    /// Their limits.
    pub limits: StartLimits,
}

/// How often calls start: `10/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartRate {
    /// Starts in each period.
    pub starts: NonZeroU32,
    /// The period.
    pub period: RatePeriod,
    /// How many starts may be saved up while fewer calls start.
    pub burst: NonZeroU32,
}

/// The period of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatePeriod {
    /// `s`.
    Second,
    /// `m`.
    Minute,
    /// `h`.
    Hour,
}

impl StartLimits {
    /// Returns whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.max_parallel.is_none() && self.rate.is_none()
    }
}

impl StartRate {
    /// Returns how far two starts are apart that aren't saved up.
    pub fn interval(&self) -> Duration {
        self.period.duration() / self.starts.get()
    }

    /// `10/s`.
    pub fn per_period(&self) -> String {
        format!("{}/{}", self.starts, self.period.name())
    }
}

impl RatePeriod {
    /// Returns the period with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Second, Self::Minute, Self::Hour]
            .into_iter()
            .find(|period| period.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "m",
            Self::Hour => "h",
        }
    }

    fn duration(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        })
    }
}

/// `at most 2 at once, 10/s`.
impl fmt::Display for StartLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(max_parallel) = self.max_parallel {
            write!(f, "at most {max_parallel} at once")?;
        }
        let Some(rate) = self.rate else {
            return Ok(());
        };
        let comma = if self.max_parallel.is_some() {
            ", "
        } else {
            ""
        };
        write!(f, "{comma}{rate}")
    }
}

/// `10/s`, or `10/s with bursts of 20`.
impl fmt::Display for StartRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.per_period())?;
        if self.burst > NonZeroU32::MIN {
            write!(f, " with bursts of {}", self.burst)?;
        }
        Ok(())
    }
}
