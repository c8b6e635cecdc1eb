//! Handlers as they are registered: what is wrong with one is told when a program begins, with its place.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use neuron::{
    Error, ErrorKind, Event,
    def::{Body, Registry, body},
    limits,
    on::{Handler, On, OnMeta},
};

/// A handler as the attribute would write it, with a setup of its own.
macro_rules! handler {
    ($name:ident, $meta:expr) => {{
        struct $name;
        impl On for $name {
            type Event = Event;
            type Payload = ();
            type Effect = ();
            const META: OnMeta = $meta;
            fn body(_: &Event, (): ()) -> Body<'_, ()> {
                body(async { Ok::<_, Error>(()) })
            }
        }
        &const { Handler::of::<$name>() }
    }};
}

#[test]
fn two_handlers_of_one_name_are_refused_with_both_places_and_the_same_one_twice_is_once() {
    let mut registry = Registry::new();
    let first = handler!(First, OnMeta::new("ship", "orders.*", "", "one.rs", 3));
    registry.register_handler(first).unwrap();
    registry.register_handler(first).unwrap();
    let second = handler!(Second, OnMeta::new("ship", "orders.*", "", "two.rs", 7));
    let refused = registry.register_handler(second).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misuse);
    assert!(refused.message().contains("one.rs:3 and two.rs:7"), "{refused}");
    assert_eq!(registry.handlers().count(), 1);
}

#[test]
fn what_no_consumer_may_be_is_refused_with_the_place_of_the_handler() {
    let most = limits::CONSUMER_IN_FLIGHT_MAX;
    let cases = [
        (
            handler!(Name, OnMeta::new("a b", "orders", "", "a.rs", 1)),
            ErrorKind::Malformed,
            "a b",
        ),
        (
            handler!(Pattern, OnMeta::new("a", "orders..x", "", "a.rs", 1)),
            ErrorKind::Malformed,
            "orders..x",
        ),
        (
            handler!(Kinds, OnMeta::new("a", "orders", "", "a.rs", 1).kinds(&[""])),
            ErrorKind::Malformed,
            "type",
        ),
        (
            handler!(Own, OnMeta::new("a", "$consumer.*", "", "a.rs", 1)),
            ErrorKind::Misuse,
            "its own position",
        ),
        (
            handler!(
                Many,
                OnMeta::new("a", "orders", "", "a.rs", 1).in_flight(limits::CONSUMER_IN_FLIGHT_MAX + 1)
            ),
            ErrorKind::Misuse,
            &format!("use 1 to {most}"),
        ),
    ];
    for (handler, kind, why) in cases {
        let refused = Registry::new().register_handler(handler).unwrap_err();
        assert_eq!(refused.kind(), kind, "{refused}");
        let text = refused.to_string();
        assert!(text.contains(why) && text.contains("(a.rs:1)"), "{text}");
    }
}
