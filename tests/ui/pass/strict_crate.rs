//! A crate that forbids unsafe code and denies everything else finds nothing to say about an expansion.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, missing_debug_implementations, unreachable_pub, unused)]

use neuron::{Cx, Node, Plan, Result, agent, plan, step};

/// Fetches.
#[step(
    name = "fetch-page",
    uses("net"),
    uses("gpu", 2),
    owns("cache"),
    retry(3, backoff = "200ms"),
    timeout = "30s"
)]
#[must_use]
pub async fn fetch(
    cx: &Cx,
    /** Where it is. */
    mut url: String,
    _trace: u32,
) -> Result<String> {
    let _ = cx;
    url.push('/');
    Ok(url)
}

/// Pays, once.
#[step(once, share, resolve = paid, estimate(tokens = 5, seconds = 1), ignore(trace))]
pub async fn pay(_: &Cx, cents: u64, trace: String) -> Result<u64> {
    Ok(cents + trace.len() as u64)
}

/// Whether it was paid.
#[step]
async fn paid(_: &Cx, _cents: u64, _trace: String) -> std::io::Result<Option<u64>> {
    Ok(None)
}

/// Outlines.
#[plan(name = "short")]
fn outline(
    plan: &Plan,
    /** Where it starts. */
    url: Node<String>,
) -> Node<String> {
    plan.step(fetch, (url, 1))
}

/// Scouts.
#[agent(plan = outline, owns("desk"))]
pub async fn scout(cx: &Cx, url: String) -> Result<String> {
    pay(cx, 1, String::new()).await?;
    Ok(fetch(cx, url, 1).await?)
}

#[deprecated]
#[step]
async fn old(_: &Cx) -> Result<()> {
    Ok(())
}

#[cfg(any())]
#[step]
async fn never(_: &Cx, gone: Gone) -> Result<Gone> {
    Ok(gone)
}

fn main() {
    #[allow(deprecated)]
    let _ = old;
}
