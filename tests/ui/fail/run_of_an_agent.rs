use neuron::{Cx, Result, agent};
use orchestrator::Neuron;

#[agent]
async fn scout(_cx: &Cx, url: String) -> Result<String> {
    Ok(url)
}

async fn begin(neuron: &Neuron) -> Result<String> {
    Ok(neuron.run(scout, "here".to_owned()).await?)
}

fn main() {
    let _ = begin;
}
