//! The span that a trace context names, as `traceparent` and `tracestate` have it in the W3C recommendation Trace Context.

use std::fmt;

/// The longest `tracestate` that is passed on, in bytes. Every participant is expected to propagate that much.
const MAX_TRACESTATE_BYTES: usize = 512;

/// The span in which toolq was started, according to `TRACEPARENT` and `TRACESTATE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traceparent {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(super) is_sampled: bool,
    /// What other systems keep in the trace, passed on unchanged.
    pub(super) tracestate: Option<String>,
}

impl Traceparent {
    /// Reads the value of a `traceparent`, and of the `tracestate` that belongs to it. An ill-formed `tracestate` is ignored.
    ///
    /// Returns `None` for an ill-formed `traceparent`.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut fields = traceparent.trim().split('-');
        let version = parse_hex(fields.next()?, 2)?;
        let trace_id = parse_hex(fields.next()?, 32)?;
        let span_id = parse_hex(fields.next()?, 16)?;
        let flags = parse_hex(fields.next()?, 2)?;
        // A later version may have more fields.
        let is_complete = version > 0 || fields.next().is_none();
        if version == 0xff || trace_id == 0 || span_id == 0 || !is_complete {
            return None;
        }
        Some(Self {
            trace_id,
            span_id: u64::try_from(span_id).ok()?,
            is_sampled: flags & 1 == 1,
            tracestate: tracestate
                .filter(|state| is_tracestate(state))
                .map(str::to_owned),
        })
    }
}

/// The value of a `traceparent`.
impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        let (trace_id, span_id) = (self.trace_id, self.span_id);
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{flags:02x}")
    }
}

/// Reads as many lowercase hexadecimal digits.
fn parse_hex(digits: &str, count: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_well_formed = digits.len() == count && digits.bytes().all(is_digit);
    let digits = is_well_formed.then_some(digits)?;
    u128::from_str_radix(digits, 16).ok()
}

/// Returns whether this is a list of `key=value` that every participant can propagate.
fn is_tracestate(state: &str) -> bool {
    let is_member = |member: &str| member.trim().is_empty() || member.contains('=');
    !state.trim().is_empty()
        && state.len() <= MAX_TRACESTATE_BYTES
        && state.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && state.split(',').all(is_member)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_as_it_is_written() {
        let parent = Traceparent::parse(PARENT, Some("vendor=a,other=b")).unwrap();
        assert_eq!(parent.to_string(), PARENT);
        assert_eq!(parent.tracestate.as_deref(), Some("vendor=a,other=b"));
        let unsampled = PARENT.replace("-01", "-00");
        assert!(!Traceparent::parse(&unsampled, None).unwrap().is_sampled);
        let later = format!("{}-more", PARENT.replacen("00", "01", 1));
        assert!(Traceparent::parse(&later, None).is_some());
    }

    #[test]
    fn an_ill_formed_traceparent_is_refused() {
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Traceparent::parse(wrong, None), None, "{wrong}");
        }
        let long = format!("a={}", "x".repeat(MAX_TRACESTATE_BYTES));
        for state in ["", "no pairs", "a=\u{7}", &long] {
            let parent = Traceparent::parse(PARENT, Some(state)).unwrap();
            assert_eq!(parent.tracestate, None, "{state}");
        }
    }
}
