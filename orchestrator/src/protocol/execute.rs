//! Beat 4: what is cleared runs as soon as all its edges are satisfied.

use neuron::{Error, Result};

use super::{beat::Beat, command::Command, state::Stage};
use crate::package::Claims;

impl Beat<'_> {
    /// Carries the run as far as it goes by itself: plans that can be written now, rulings, starts, the end.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        self.fail_dependants()?;
        self.ask();
        self.clear()?;
        self.fail_dependants()?;
        self.start()?;
        self.conclude()
    }

    /// Asks those for their plan whose values are all there by now.
    fn ask(&mut self) {
        let ready = |place: &usize| {
            let live = &self.state.live[place];
            live.stage == Stage::Waiting && !live.waits_for_value()
        };
        let ready: Vec<usize> = self.state.woken.iter().copied().filter(ready).collect();
        for place in ready {
            self.request(place);
        }
    }

    fn start(&mut self) -> Result<(), Error> {
        while let Some(place) = self.state.woken.pop_first() {
            let live = &self.state.live[&place];
            let ready = live.stage == Stage::Cleared && live.needs.is_empty();
            if !ready || self.state.is_held(place) || self.yield_to_holder(place)? {
                continue;
            }
            let live = self.state.live(place);
            live.stage = Stage::Running;
            let (package, claims) = (live.key.clone(), live.claims.clone());
            self.hold(place, &claims);
            self.commands.push(Command::Start { package });
        }
        Ok(())
    }

    /// Clearance ordered all claims it knew of. One that came later, by an amendment or by an edge whose end failed
    /// early, is ordered here, so that no two ever hold what one of them owns.
    fn yield_to_holder(&mut self, place: usize) -> Result<bool, Error> {
        let claims = &self.state.live[&place].claims;
        let wanted = claims.owns.iter().chain(claims.uses.keys());
        let clash = wanted.filter_map(|resource| {
            let mut holders = self.state.held.get(resource)?.iter();
            let alone = claims.owns.contains(resource);
            let holder = holders.find(|other| alone || self.state.live[other].claims.owns.contains(resource))?;
            Some((*holder, resource.clone()))
        });
        let Some((holder, resource)) = clash.min() else {
            return Ok(false);
        };
        let (package, first) = (
            self.state.live[&place].key.clone(),
            self.state.live[&holder].key.clone(),
        );
        let name = &self.state.package(holder).assigned.name;
        let because = format!("`{resource}` is held by `{name}`, which runs");
        self.order(&package, &first, resource, because)?;
        Ok(true)
    }

    pub(super) fn hold(&mut self, place: usize, claims: &Claims) {
        for resource in claims.owns.iter().chain(claims.uses.keys()) {
            self.state.held.entry(resource.clone()).or_default().insert(place);
        }
    }

    pub(super) fn let_go(&mut self, place: usize) {
        let claims = std::mem::take(&mut self.state.live(place).claims);
        for resource in claims.owns.iter().chain(claims.uses.keys()) {
            if let Some(holders) = self.state.held.get_mut(resource) {
                holders.remove(&place);
                if holders.is_empty() {
                    self.state.held.remove(resource);
                }
            }
        }
    }
}
