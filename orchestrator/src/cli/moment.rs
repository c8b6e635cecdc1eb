//! Moments as a person writes and reads them: in the zone of the machine.

use jiff::{Span, Timestamp, civil, tz::TimeZone};
use neuron::Millis;

use super::outcome::{Failure, Outcome};

/// A moment as it is shown in columns: `2026-11-30 20:53:01.123`.
pub(super) fn full(at: Millis, zone: &TimeZone) -> String {
    shown(at, zone, "%Y-%m-%d %H:%M:%S.%3f")
}

/// A moment in a table where milliseconds would say nothing: `2026-11-30 20:53:01`.
pub(super) fn brief(at: Millis, zone: &TimeZone) -> String {
    shown(at, zone, "%Y-%m-%d %H:%M:%S")
}

/// A moment with its offset from UTC.
pub(super) fn exact(at: Millis, zone: &TimeZone) -> String {
    shown(at, zone, "%Y-%m-%d %H:%M:%S.%3f %:z")
}

/// The day of a moment.
pub(super) fn day(at: Millis, zone: &TimeZone) -> String {
    shown(at, zone, "%Y-%m-%d")
}

/// The time of day of a moment.
pub(super) fn hour(at: Millis, zone: &TimeZone) -> String {
    shown(at, zone, "%H:%M:%S.%3f")
}

fn shown(at: Millis, zone: &TimeZone, format: &str) -> String {
    match Timestamp::from_millisecond(at.0) {
        Ok(time) => time.to_zoned_datetime(zone.clone()).strftime(format).to_string(),
        // Outside the years that calendars speak of, the number is all there is to say.
        Err(_) => at.to_string(),
    }
}

/// Reads a moment: RFC 3339, a day or a local time, how long ago, or milliseconds since the Unix epoch.
pub(super) fn parse(text: &str, now: Millis, zone: &TimeZone) -> Outcome<Millis> {
    read(text.trim(), now, zone).ok_or_else(|| {
        Failure::Usage(format!(
            "`{}` is no moment: give RFC 3339 (2026-11-30T12:00:00Z), a day (2026-11-30) or a local time \
             (2026-11-30T12:00), how long ago (10m, 2h), or milliseconds since the epoch (1790000000000)",
            text.escape_debug()
        ))
    })
}

fn read(text: &str, now: Millis, zone: &TimeZone) -> Option<Millis> {
    let milliseconds = |time: Timestamp| Some(Millis(time.as_millisecond()));
    if let Ok(number) = text.parse() {
        return Some(Millis(number));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return milliseconds(time);
    }
    if let Ok(local) = text.parse::<civil::DateTime>() {
        return milliseconds(local.to_zoned_datetime(zone.clone()).ok()?.timestamp());
    }
    let ago = text.parse::<Span>().ok()?.abs();
    let now = Timestamp::from_millisecond(now.0).ok()?.to_zoned_datetime(zone.clone());
    milliseconds(now.checked_sub(ago).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone() -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }

    fn read(text: &str) -> i64 {
        parse(text, Millis(1_790_000_000_000), &zone()).unwrap().0
    }

    #[test]
    fn every_form_of_a_moment_is_read() {
        assert_eq!(read("1790000000000"), 1_790_000_000_000);
        assert_eq!(read("2026-09-21T14:13:20Z"), 1_790_000_000_000);
        assert_eq!(read("2026-09-21T16:13:20+02:00"), 1_790_000_000_000);
        assert_eq!(read("2026-09-21T16:13:20"), 1_790_000_000_000);
        assert_eq!(read("2026-09-21"), 1_789_941_600_000);
        assert_eq!(read("10m"), 1_790_000_000_000 - 600_000);
        assert_eq!(read("1h30m ago"), 1_790_000_000_000 - 5_400_000);
        assert_eq!(read("2d"), 1_790_000_000_000 - 2 * 86_400_000);
    }

    #[test]
    fn what_is_no_moment_is_refused_with_what_is_one() {
        let Failure::Usage(why) = parse("soon", Millis(0), &zone()).unwrap_err() else {
            panic!("no usage error");
        };
        assert!(why.starts_with("`soon` is no moment: give RFC 3339"));
    }

    #[test]
    fn a_moment_is_shown_in_the_zone_of_the_reader() {
        let at = Millis(1_790_000_000_000);
        assert_eq!(exact(at, &zone()), "2026-09-21 16:13:20.000 +02:00");
        assert_eq!(full(Millis(i64::MAX), &zone()), i64::MAX.to_string());
    }
}
