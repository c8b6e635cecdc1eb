//! A step takes no parameter, or up to eight; a plan hands them over as `()`, bare, or as a tuple.
#![allow(clippy::too_many_arguments)]

use neuron::{Cx, Node, Plan, Result, plan, step};

#[step]
async fn none(_: &Cx) -> Result<u8> {
    Ok(0)
}

#[step]
async fn one(_: &Cx, a: u8) -> Result<u8> {
    Ok(a)
}

#[step]
async fn two(_: &Cx, a: u8, b: u8) -> Result<u8> {
    Ok(a + b)
}

#[step]
async fn three(_: &Cx, a: u8, b: u8, c: u8) -> Result<u8> {
    Ok(a + b + c)
}

#[step]
async fn four(_: &Cx, a: u8, b: u8, c: u8, d: u8) -> Result<u8> {
    Ok(a + b + c + d)
}

#[step]
async fn eight(_: &Cx, a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8) -> Result<u8> {
    Ok(a + b + c + d + e + f + g + h)
}

#[plan]
fn outline(plan: &Plan) -> Node<u8> {
    let a = plan.step(none, ());
    let b = plan.step(one, a);
    let c = plan.step(two, (b, 1));
    let d = plan.step(three, (1, c, 2));
    let e = plan.step(four, (1, 2, 3, d));
    plan.step(eight, (1, 2, 3, 4, 5, 6, e, 7))
}

fn main() {}
