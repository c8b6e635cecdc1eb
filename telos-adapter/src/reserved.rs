//! Names that only the engine may use: one list, so that both ends refuse the same.
//!
//! A replica applies `scope.state.set` as a delta, so content that could send it would write state past its director.
//! A guard that is too broad breaks as much as one too narrow: `boss.died` is a lawful signal up, which the spawn
//! schedule consumes, and is therefore refused only downwards.

use crate::{Error, Result};

/// The down event that carries a state delta to replicas.
pub const STATE_SET: &str = "scope.state.set";
/// Down events of the content pipeline begin with this.
pub const CONTENT_PREFIX: &str = "content.";
/// The down event by which a schedule has a zone spawn its boss.
pub const SPAWN_BOSS: &str = "spawn.boss";
/// The up event by which a zone reports that its boss has died.
pub const BOSS_DIED: &str = "boss.died";
/// State keys of the scheduler begin with this.
pub const SCHEDULE_PREFIX: &str = "schedule:";

/// Whether only a director or the engine may send `event`; holds in both directions.
///
/// ```
/// use telos_adapter::reserved::is_down_only;
/// assert!(is_down_only("scope.state.set") && is_down_only("content.pull.result"));
/// assert!(!is_down_only("contented") && !is_down_only("boss.died"));
/// ```
pub fn is_down_only(event: &str) -> bool {
    event == STATE_SET || event.starts_with(CONTENT_PREFIX)
}

/// Whether a director's script may not broadcast `event`: what is down-only, and what belongs to schedules.
pub fn is_kept_from_directors(event: &str) -> bool {
    is_down_only(event) || event == SPAWN_BOSS || event == BOSS_DIED
}

/// Whether a director's script may not write the state key `key`. Reading it is free.
pub fn is_engine_key(key: &str) -> bool {
    key.starts_with(SCHEDULE_PREFIX)
}

/// Lets content signal `event` up.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) when it is blank, [`Reserved`](crate::ErrorKind::Reserved) when it is
/// down-only.
pub fn check_signal(event: &str) -> Result<()> {
    check_present(event)?;
    if is_down_only(event) {
        return Err(Error::reserved(format!(
            "event `{event}` cannot be signalled up: only the engine sends `{STATE_SET}` and `{CONTENT_PREFIX}…`; \
             choose another name"
        )));
    }
    Ok(())
}

/// Lets a director's script broadcast `event` down.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) when it is blank, [`Reserved`](crate::ErrorKind::Reserved) when it belongs
/// to the engine or to schedules.
pub fn check_broadcast(event: &str) -> Result<()> {
    check_present(event)?;
    if is_kept_from_directors(event) {
        return Err(Error::reserved(format!(
            "event `{event}` cannot be broadcast by a script: only the engine sends `{STATE_SET}`, \
             `{CONTENT_PREFIX}…`, `{SPAWN_BOSS}` and `{BOSS_DIED}`; choose another name"
        )));
    }
    Ok(())
}

/// Lets a director's script write the state key `key`.
///
/// # Errors
/// [`Reserved`](crate::ErrorKind::Reserved) when it belongs to the scheduler.
pub fn check_state_key(key: &str) -> Result<()> {
    if is_engine_key(key) {
        return Err(Error::reserved(format!(
            "state key `{key}` cannot be written by a script: `{SCHEDULE_PREFIX}…` belongs to the scheduler; \
             choose another key"
        )));
    }
    Ok(())
}

fn check_present(event: &str) -> Result<()> {
    if event.trim().is_empty() {
        return Err(Error::malformed("an event needs a name, this one is blank"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ErrorKind;

    /// Event, may content signal it up, may a director's script broadcast it down.
    const EVENTS: [(&str, bool, bool); 15] = [
        ("scope.state.set", false, false),
        ("content.reload.audit", false, false),
        ("content.pull.request", false, false),
        ("content.pull.result", false, false),
        ("content.", false, false),
        ("content", true, true),
        ("contented", true, true),
        ("my.content.x", true, true),
        ("Content.pull", true, true),
        ("scope.state.sets", true, true),
        ("scope.state", true, true),
        ("spawn.boss", true, false),
        ("boss.died", true, false),
        ("boss.died.twice", true, true),
        ("boss_slain", true, true),
    ];

    #[test]
    fn each_end_refuses_its_own_list_and_no_more() {
        for (event, up, down) in EVENTS {
            assert_eq!(check_signal(event).is_ok(), up, "{event} up");
            assert_eq!(check_broadcast(event).is_ok(), down, "{event} down");
        }
    }

    #[test]
    fn a_blank_event_is_malformed_in_both_directions() {
        for event in ["", " ", "\t\n"] {
            let refusals = [check_signal(event), check_broadcast(event)];
            assert!(
                refusals
                    .iter()
                    .all(|it| it.as_ref().is_err_and(|e| e.kind() == ErrorKind::Malformed))
            );
        }
    }

    #[test]
    fn keys_of_the_scheduler_alone_are_refused() {
        for (key, free) in [
            ("schedule:boss", false),
            ("schedule:", false),
            ("schedule", true),
            ("schedules:x", true),
            ("my.schedule:x", true),
            ("last_boss", true),
        ] {
            assert_eq!(check_state_key(key).is_ok(), free, "{key}");
        }
    }

    #[test]
    fn a_refusal_names_the_event_and_what_is_reserved() {
        let refused = check_signal("content.pull.result").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Reserved);
        assert!(refused.to_string().contains("`content.pull.result`"));
        assert!(refused.to_string().contains("`scope.state.set`"));
    }

    proptest! {
        #[test]
        fn whatever_content_may_not_signal_a_script_may_not_broadcast(event in "(content\\.|scope\\.state\\.set|\\PC{0,3})\\PC{0,8}") {
            prop_assert!(check_signal(&event).is_ok() || check_broadcast(&event).is_err());
        }
    }
}
