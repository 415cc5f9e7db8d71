//! Puts calls that ran at the same time into different lanes, and an agent's call and those that it made, one after
//! the other, into the same. So within a lane, spans nest or follow each other, as viewers of traces require.

use crate::timeline::log_timeline::LogTimeline;

/// Calls that are open in a lane, the innermost last: each with its end.
type OpenSpans = Vec<(usize, u64)>;

/// Returns the lane of each call, counted from 0.
pub(crate) fn assign_lanes(timeline: &LogTimeline) -> Vec<usize> {
    let calls = &timeline.calls;
    let span = |index: usize| {
        let call = &calls[index];
        let start = call.started_ms().unwrap_or(call.requested_ms);
        let ran = !call.attempts.is_empty();
        (
            start,
            if ran {
                timeline.end_of(call).max(start)
            } else {
                start
            },
        )
    };
    let mut order: Vec<usize> = (0..calls.len()).collect();
    // A call that contains others comes before them.
    order.sort_by_key(|index| {
        let (start, end) = span(*index);
        (start, std::cmp::Reverse(end), *index)
    });
    let mut lanes: Vec<OpenSpans> = Vec::new();
    let mut assigned = vec![0; calls.len()];
    for index in order {
        let (start, end) = span(index);
        for lane in &mut lanes {
            while lane.last().is_some_and(|(_, ended)| *ended <= start) {
                lane.pop();
            }
        }
        let parent = calls[index].parent;
        let fits = |lane: &OpenSpans| match lane.last() {
            None => true,
            Some((outer, outer_end)) => parent == Some(*outer) && end <= *outer_end,
        };
        // Best below its agent, else in a free lane.
        let below = lanes.iter().position(|lane| !lane.is_empty() && fits(lane));
        let lane = below
            .or_else(|| lanes.iter().position(fits))
            .unwrap_or_else(|| {
                lanes.push(OpenSpans::new());
                lanes.len() - 1
            });
        lanes[lane].push((index, end));
        assigned[index] = lane;
    }
    assigned
}
