use neuron::{Cx, Result, guard, metered, on, step};

#[on("sensor.**")]
fn heard() {}

#[on(stages::validate)]
fn validated() {}

#[step]
#[metered]
async fn fetch(cx: &Cx) -> Result<()> {
    let _ = cx;
    Ok(())
}

#[guard(admin)]
fn checked() {}

fn main() {
    heard();
    validated();
    checked();
}
