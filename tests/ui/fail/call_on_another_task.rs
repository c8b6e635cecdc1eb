use neuron::{Cx, Result, step};

#[step]
async fn ping(_: &Cx) -> Result<u32> {
    Ok(1)
}

#[step]
async fn away(cx: &Cx) -> Result<u32> {
    let task = tokio::spawn(async move { ping(cx).await });
    Ok(task.await??)
}

fn main() {}
