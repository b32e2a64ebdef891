//! Times and sizes as people write them: 60s, 5m, 64M, 1.5G.

use crate::base::{Refused, refuse};
use std::time::Duration;

/// "500ms", "60s", "5m", "1h", "1d"; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, Refused> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => refuse!("'{unit}' is not a unit of time: ms, s, m, h, d"),
    };
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => refuse!("must be a positive, finite duration"),
    }
}

/// As `duration`, or none: "0".
pub fn duration_or_none(text: &str) -> Result<Duration, Refused> {
    if matches!(text.trim(), "0" | "0s") { Ok(Duration::ZERO) } else { duration(text) }
}

/// "64M", "64MiB", "1.5g"; a bare number is bytes. Powers of 1024, as the JVM takes them.
pub fn bytes(text: &str) -> Result<u64, Refused> {
    let (number, unit) = split(text)?;
    let unit = unit.to_ascii_lowercase();
    let power = match unit.trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => refuse!("'{unit}' is not a unit of memory: K, M, G, T"),
    };
    let bytes = number * 1024f64.powi(power);
    if bytes >= u64::MAX as f64 {
        refuse!("it is too much");
    }
    Ok(bytes as u64)
}

/// "2%", "0.5".
pub fn percent(text: &str) -> Result<f64, Refused> {
    let number = text.trim_end_matches('%').trim().parse().ok();
    number.filter(|number| *number > 0.0 && *number < 100.0).ok_or("above 0, below 100".into())
}

fn split(text: &str) -> Result<(f64, &str), Refused> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let number = text[..end].parse().map_err(|_| "it must begin with a number")?;
    Ok((number, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        for bad in ["", "s", "-1s", "0s", "1x", "1e9s", "999999999999999999999999d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert_eq!(bytes("64mib"), Ok(64 << 20));
        assert_eq!(bytes("1.5G"), Ok(3 << 29));
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("1kB"), Ok(1024));
        for bad in ["", "M", "-1M", "1X", "1e3", "99999999999999999999T"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
