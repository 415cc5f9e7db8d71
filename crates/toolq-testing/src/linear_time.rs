//! Growth of work, which says more than a limit in seconds: machines differ by far more than what a limit could tell.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Asserts that work that is linear in `count` is so: four times as much takes about four times the processor time, and not
/// sixteen times.
///
/// # Panics
/// It takes more than nine times as long.
pub fn assert_linear_time(what: &str, count: usize, mut work: impl FnMut(usize)) {
    let mut fastest = |tries, count| {
        let times = std::iter::repeat_with(|| {
            let began = processor_time();
            work(count);
            processor_time().saturating_sub(began)
        });
        times.take(tries).min().unwrap_or_default()
    };
    let (small, large) = (fastest(3, count), fastest(2, 4 * count));
    assert!(
        large < 9 * small,
        "{what}: {small:?} for {count}, {large:?} for four times as many"
    );
}

/// Returns the time that this thread had a processor, which other programs don't change.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
