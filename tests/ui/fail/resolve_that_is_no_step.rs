use neuron::{Cx, Result, step};

async fn paid(_: &Cx, _cents: u64) -> Result<Option<u64>> {
    Ok(None)
}

#[step(once, resolve = paid)]
async fn pay(_: &Cx, cents: u64) -> Result<u64> {
    Ok(cents)
}

fn main() {}
