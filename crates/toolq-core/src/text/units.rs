//! Durations, sizes, counts and lists: parsing and formatting.

use std::fmt::Display;
use std::time::Duration;

use jiff::Timestamp;

/// Parses a duration of up to a year: `250ms`, `5s`, `1.5s`, `10m`, `2h`, or `30d`; also several parts from the largest
/// to the smallest, such as `1m30s` or `2m 5s`.
///
/// # Errors
/// What is expected, as a message.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    parse_duration_up_to(text, 1.0, "a year")
}

/// Parses an age, which is a duration of up to a century.
///
/// # Errors
/// What is expected, as a message.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    parse_duration_up_to(text, 100.0, "a century")
}

fn parse_duration_up_to(text: &str, years: f64, limit: &str) -> Result<Duration, String> {
    let expected = || {
        format!(
            "`{text}` isn't a duration; write a number with ms, s, m, h or d: `500ms`, `30s`, `10m`"
        )
    };
    let mut rest = text;
    let (mut duration, mut smallest_unit) = (0.0, f64::INFINITY);
    while smallest_unit.is_infinite() || !rest.is_empty() {
        let (number, after) = split_unit(rest).ok_or_else(expected)?;
        let unit_len = after.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, after) = after.split_at(unit_len.unwrap_or(after.len()));
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return Err(expected()),
        };
        if seconds >= smallest_unit {
            return Err(expected());
        }
        smallest_unit = seconds;
        duration += number * seconds;
        rest = after.trim_start();
    }
    if duration > years * 365.0 * 86_400.0 {
        return Err(format!("`{text}` is longer than {limit}"));
    }
    Ok(Duration::from_secs_f64(duration))
}

/// Parses a size: `512`, `64KiB`, `10MiB`, `1GiB`, or the decimal `KB`, `MB`, `GB`.
///
/// # Errors
/// What is expected, as a message.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let expected = || {
        format!(
            "`{text}` isn't a size; write a number, alone or with KiB, MiB or GiB: `64KiB`, `10MiB`"
        )
    };
    let (number, unit) = split_unit(text).ok_or_else(expected)?;
    let factor: u32 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return Err(expected()),
    };
    let bytes = number * f64::from(factor);
    if bytes > 1e15 {
        return Err(format!("`{text}` is more than a petabyte"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 1e15, checked above"
    )]
    Ok(bytes.round() as u64)
}

/// Splits text into a non-negative number and its unit.
fn split_unit(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some((number.parse().ok()?, unit.trim_start()))
}

/// Returns whole milliseconds.
pub fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Formats a duration briefly for people: `850ms`, `4s`, `1.2s`, `2m 5s`.
pub fn format_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    let tenths = (ms + 50) / 100;
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 if tenths.is_multiple_of(10) => format!("{}s", tenths / 10),
        1_000..60_000 => format!("{}.{}s", tenths / 10, tenths % 10),
        _ => {
            let seconds = (ms + 500) / 1_000;
            match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
                (0, minutes, 0) => format!("{minutes}m"),
                (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
                (hours, 0, _) => format!("{hours}h"),
                (hours, minutes, _) => format!("{hours}h {minutes}m"),
            }
        }
    }
}

/// Formats a count with its noun: `1 record`, `2 records`.
pub fn format_count(count: impl Into<u128>, noun: &str) -> String {
    let count = count.into();
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// How many tools a warning or a note about tools.yaml names.
pub const MAX_NAMED_TOOLS: usize = 4;

/// Lists the first names, and says how many are left out: `a, b and 3 more`.
pub fn list_some(names: impl ExactSizeIterator<Item = impl Display>, max: usize) -> String {
    let omitted = names.len().saturating_sub(max);
    let shown: Vec<String> = names.take(max).map(|name| name.to_string()).collect();
    match omitted {
        0 => shown.join(", "),
        omitted => format!("{} and {omitted} more", shown.join(", ")),
    }
}

/// Formats a size for people: `512 bytes`, `64 KiB`, `1.5 MiB`.
pub fn format_bytes(bytes: u64) -> String {
    for (factor, unit) in [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= factor {
            let tenths = u128::from(bytes) * 10 / u128::from(factor);
            return match tenths % 10 {
                0 => format!("{} {unit}", tenths / 10),
                rest => format!("{}.{rest} {unit}", tenths / 10),
            };
        }
    }
    format!("{bytes} {}", if bytes == 1 { "byte" } else { "bytes" })
}

/// Formats a time in milliseconds since 1970: `2026-01-01 12:00:00 UTC`.
pub fn format_time(timestamp: u64) -> String {
    let ms = i64::try_from(timestamp).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_parsed_and_formatted() {
        for (text, ms) in [
            ("250ms", 250),
            ("5s", 5_000),
            ("1.5s", 1_500),
            ("10m", 600_000),
            ("0s", 0),
            ("1m30s", 90_000),
            ("2m 5s", 125_000),
            ("1h 0m 1.5s", 3_601_500),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(ms)),
                "{text}"
            );
        }
        for text in [
            "", "5", "-5s", "s", "5 weeks", "1e9s", "99999d", "1.2.3s", "∞s", "5s 1m", "1m1m",
            "1m 5", "1m,5s",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        for (text, bytes) in [
            ("512", 512),
            ("64KiB", 65_536),
            ("1.5MiB", 1_572_864),
            ("2MB", 2_000_000),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "-1", "64kib", "9999999GiB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        assert_eq!(format_duration(Duration::from_millis(1_240)), "1.2s");
        assert_eq!(format_duration(Duration::from_secs(4)), "4s");
        assert_eq!(format_duration(Duration::from_secs(125)), "2m 5s");
        assert_eq!(format_bytes(65_536), "64 KiB");
        assert_eq!(format_count(1_u32, "record"), "1 record");
        assert_eq!(format_count(0_u64, "record"), "0 records");
    }

    /// People copy durations from toolq's own output into tools.yaml.
    #[test]
    fn every_printed_duration_is_read() {
        for ms in [
            0, 1, 999, 1_000, 1_240, 59_900, 60_000, 125_000, 3_600_000, 3_900_000, 90_061_000,
        ] {
            let printed = format_duration(Duration::from_millis(ms));
            let read = parse_duration(&printed).unwrap();
            assert_eq!(format_duration(read), printed);
        }
    }
}
