use neuron::{Cx, Result, guard, metered, on, step};

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
    validated();
    checked();
}
