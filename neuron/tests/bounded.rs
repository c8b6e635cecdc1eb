//! Plans that bound how much of a fan-out happens at the same time.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

mod world;

use std::sync::atomic::{AtomicU32, Ordering};

use neuron::{
    Cx, ErrorKind, Json, Node, Plan, Result, agent, plan,
    plan::{Input, write},
    step,
};
use proptest::prelude::*;
use world::World;

static INSIDE: AtomicU32 = AtomicU32::new(0);
static MOST: AtomicU32 = AtomicU32::new(0);

#[step]
async fn guests(_cx: &Cx, count: u32) -> Result<Vec<u32>> {
    Ok((0..count).collect())
}

/// Stays for a while, and the later it came the shorter.
#[step]
async fn visit(_cx: &Cx, guest: u32) -> Result<u32> {
    MOST.fetch_max(INSIDE.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    for _ in guest..40 {
        tokio::task::yield_now().await;
    }
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    Ok(guest * 10)
}

#[plan]
fn visits(plan: &Plan, most: u32, count: Node<u32>) -> Node<Vec<u32>> {
    plan.at_once(most, plan.each(visit, plan.step(guests, count)))
}

#[agent]
async fn host(cx: &Cx, most: u32, count: u32) -> Result<Vec<u32>> {
    let given = [Json::of(&most)?, Json::of(&count)?];
    let inputs = given.clone().map(|json| Input::Value(json.into()));
    let written = write(visits, &inputs)?.ok_or("its values are there")?;
    let scope = neuron::Context::scope(cx).clone();
    Ok(written.run(scope, given.to_vec()).await?.decode()?)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_more_run_at_once_than_the_bound_says_and_a_restart_with_another_bound_repeats_nothing(
        most in 1_u32..6, later in 1_u32..6, count in 0_u32..12,
    ) {
        let want: Vec<u32> = (0..count).map(|guest| guest * 10).collect();
        runtime().block_on(async {
            let world = World::new();
            MOST.store(0, Ordering::SeqCst);
            assert_eq!(world.run(host, (most, count)).await.unwrap(), want);
            assert_eq!(MOST.load(Ordering::SeqCst), most.min(count));
            for cut in 0..=world.len() {
                let cut = world.cut(cut);
                let done = cut.count("step.completed visit");
                let begun = cut.count("step.started visit");
                assert_eq!(cut.run(host, (later, count)).await.unwrap(), want);
                let repeated = cut.count("step.started visit") - begun;
                assert_eq!(repeated, count as usize - done, "{:#?}", cut.log());
            }
        });
    }
}

#[plan]
fn never(plan: &Plan, count: Node<u32>) -> Node<Vec<u32>> {
    plan.at_once(0, plan.each(visit, plan.step(guests, count)))
}

#[plan]
fn elsewhere(plan: &Plan, count: Node<u32>) -> Node<Vec<u32>> {
    plan.at_once(2, plan.step(guests, count))
}

#[test]
fn a_bound_of_nothing_and_a_bound_on_what_is_no_fan_out_are_refused_with_what_to_write() {
    for (refused, want) in [
        (write(never, &[Input::Wire(0)]), "at least 1"),
        (write(elsewhere, &[Input::Wire(0)]), "`plan.each`"),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.to_string().contains(want), "{error}");
    }
}
