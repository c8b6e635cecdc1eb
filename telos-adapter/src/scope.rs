//! Where an event belongs: the world, a region or a zone, addressed upwards or downwards.

use std::{borrow::Cow, fmt, str::FromStr};

use neuron::limits::SCOPE_ID_BYTES_MAX;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{Error, Result};

/// Where an event belongs. Written as telos writes it: `world`, `region:<id>`, `zone:<id>`.
///
/// ```
/// use telos_adapter::Scope;
/// let scope = Scope::region("duskwall")?;
/// assert_eq!(scope.to_string(), "region:duskwall");
/// assert_eq!("region:duskwall".parse::<Scope>()?, scope);
/// # Ok::<(), telos_adapter::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The whole world; there is one.
    World,
    /// A region: a group of zones with a director of its own.
    Region(ScopeId),
    /// One zone: it is told, it directs nothing.
    Zone(ScopeId),
}

/// The id of a region or zone: 1 to 128 bytes of `A-Z a-z 0-9 _ : -`, so that it is always one segment of a subject.
///
/// The `#` of a private copy of a zone is not among them, so no copy ever has a subject of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeId(String);

/// Which way an event goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From a zone to a director: a signal.
    Up,
    /// From a director to zones: a broadcast.
    Down,
}

/// A scope in one direction, written as a subject.
///
/// Up and down are different subjects, so whoever may only signal cannot reach what listens to broadcasts. An address
/// is made from a checked scope alone: it has no wildcard and no empty segment, and no two addresses share a subject.
///
/// ```
/// use telos_adapter::{Address, Direction, Scope};
/// let address: Address = "telos.down.zone.midgaard".parse()?;
/// assert_eq!(address, Scope::zone("midgaard")?.down());
/// assert_eq!(address.direction(), Direction::Down);
/// # Ok::<(), telos_adapter::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    scope: Scope,
    direction: Direction,
}

impl Scope {
    /// The region `id`.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) when `id` is no [`ScopeId`].
    pub fn region(id: &str) -> Result<Self> {
        id.parse().map(Self::Region)
    }

    /// The zone `id`.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) when `id` is no [`ScopeId`].
    pub fn zone(id: &str) -> Result<Self> {
        id.parse().map(Self::Zone)
    }

    /// Where zones signal to this scope's director.
    pub fn up(&self) -> Address {
        self.towards(Direction::Up)
    }

    /// Where this scope's director broadcasts to zones.
    pub fn down(&self) -> Address {
        self.towards(Direction::Down)
    }

    fn towards(&self, direction: Direction) -> Address {
        Address {
            scope: self.clone(),
            direction,
        }
    }

    /// Kind and id with `separator` between them: the one place where either spelling is written.
    fn write(&self, f: &mut fmt::Formatter<'_>, separator: char) -> fmt::Result {
        match self {
            Self::World => f.write_str("world"),
            Self::Region(id) => write!(f, "region{separator}{id}"),
            Self::Zone(id) => write!(f, "zone{separator}{id}"),
        }
    }

    /// The reverse of [`write`](Self::write). Only the first separator splits: an id may hold `:`.
    fn read(text: &str, separator: char) -> Result<Self> {
        match text.split_once(separator) {
            None if text == "world" => Ok(Self::World),
            Some(("region", id)) => Self::region(id),
            Some(("zone", id)) => Self::zone(id),
            _ => Err(Error::malformed(format!(
                "`{text}` is not a scope: expected `world`, `region{separator}<id>` or `zone{separator}<id>`"
            ))),
        }
    }
}

impl ScopeId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Direction {
    /// What every subject of this direction begins with, and what a stream of it is bound to.
    pub const fn root(self) -> &'static str {
        match self {
            Self::Up => "telos.scope.",
            Self::Down => "telos.down.",
        }
    }
}

impl Address {
    /// Where the event belongs.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Which way the event goes.
    pub fn direction(&self) -> Direction {
        self.direction
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, ':')
    }
}

impl fmt::Display for ScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.direction.root())?;
        self.scope.write(f, '.')
    }
}

impl FromStr for Scope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::read(text, ':')
    }
}

impl FromStr for ScopeId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-');
        let fault = match text.chars().find(|&c| !allowed(c)) {
            Some(other) => format!("it holds {other:?}"),
            None if text.is_empty() => "it is empty".to_owned(),
            None if text.len() > SCOPE_ID_BYTES_MAX => format!("it has {} bytes", text.len()),
            None => return Ok(Self(text.to_owned())),
        };
        Err(Error::malformed(format!(
            "`{text}` is not the id of a region or zone: {fault}; allowed are 1 to {SCOPE_ID_BYTES_MAX} of \
             `A-Z a-z 0-9 _ : -`"
        )))
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let read = |direction: Direction| Some((direction, text.strip_prefix(direction.root())?));
        let Some((direction, rest)) = read(Direction::Up).or_else(|| read(Direction::Down)) else {
            return Err(Error::malformed(format!(
                "`{text}` is not the subject of a scope: expected `{}…` or `{}…`",
                Direction::Up.root(),
                Direction::Down.root()
            )));
        };
        Ok(Scope::read(rest, '.')?.towards(direction))
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ErrorKind;

    fn scope() -> impl Strategy<Value = Scope> {
        let id = || "[A-Za-z0-9_:-]{1,128}";
        prop_oneof![
            Just(Scope::World),
            id().prop_map(|id| Scope::region(&id).unwrap()),
            id().prop_map(|id| Scope::zone(&id).unwrap()),
        ]
    }

    fn address() -> impl Strategy<Value = Address> {
        (scope(), any::<bool>()).prop_map(|(scope, up)| if up { scope.up() } else { scope.down() })
    }

    proptest! {
        #[test]
        fn a_scope_is_read_back_as_it_was_written(scope in scope()) {
            prop_assert_eq!(scope.to_string().parse::<Scope>(), Ok(scope.clone()));
            prop_assert_eq!(serde_json::from_value::<Scope>(serde_json::to_value(&scope).unwrap()).unwrap(), scope);
        }

        #[test]
        fn a_subject_names_exactly_one_address(a in address(), b in address()) {
            prop_assert_eq!(a.to_string().parse::<Address>(), Ok(a.clone()));
            prop_assert_eq!(a.to_string() == b.to_string(), a == b);
        }

        #[test]
        fn ids_that_differ_by_their_separators_alone_keep_apart(id in "[a-z]{1,3}[_:-][a-z]{1,3}", to in "[_:-]") {
            let other = id.replace(['_', ':', '-'], &to);
            let (a, b) = (Scope::region(&id).unwrap(), Scope::region(&other).unwrap());
            prop_assert_eq!(a.up().to_string() == b.up().to_string(), id == other);
        }

        #[test]
        fn no_text_makes_a_subject_with_a_wildcard_or_an_empty_segment(text in "\\PC{0,12}|[a-z.*>:# ]{0,12}") {
            for scope in [Scope::region(&text), Scope::zone(&text), text.parse()].into_iter().flatten() {
                for subject in [scope.up().to_string(), scope.down().to_string()] {
                    prop_assert!(subject.split('.').all(|it| !it.is_empty() && !it.contains(['*', '>', ' '])));
                    prop_assert!(subject.split('.').count() <= 4 && subject.len() <= neuron::limits::TOPIC_BYTES_MAX);
                }
            }
        }

        #[test]
        fn up_and_down_never_meet(a in scope(), b in scope()) {
            prop_assert_ne!(a.up().to_string(), b.down().to_string());
        }
    }

    #[test]
    fn subjects_are_those_of_telos() {
        assert_eq!(Scope::World.up().to_string(), "telos.scope.world");
        let subject = |scope: Result<Scope>| scope.unwrap().up().to_string();
        assert_eq!(subject(Scope::region("duskwall")), "telos.scope.region.duskwall");
        assert_eq!(subject(Scope::zone("midgaard")), "telos.scope.zone.midgaard");
    }

    #[test]
    fn a_scope_that_telos_refuses_is_refused_here() {
        let long = format!("zone:{}", "a".repeat(129));
        for text in [
            "",
            "world:",
            "world:1",
            "World",
            "region",
            "region:",
            "region:dusk wall",
            "region:dusk!",
            "region:a.b",
            "zone:cave#0123",
            "zone:*",
            "zone:>",
            "zone:é",
            "room:1",
            " world",
            &long,
        ] {
            let refused = text.parse::<Scope>().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Malformed, "{text}");
            assert!(serde_json::from_value::<Scope>(text.into()).is_err(), "{text}");
        }
        assert!(Scope::zone("cave").is_ok() && Scope::zone(&"a".repeat(128)).is_ok());
    }

    #[test]
    fn a_subject_that_is_no_address_is_refused() {
        for text in [
            "telos.scope",
            "telos.scope.",
            "telos.scope.world.1",
            "telos.scope.region",
            "telos.scope.region.",
            "telos.scope.region.a.b",
            "telos.down.*",
            "telos.down.>",
            "telos.up.world",
            "telos.scope.zone:a",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
