use neuron::{Result, step};

struct App;

#[step]
async fn fetch(app: &App, url: String) -> Result<String> {
    let _ = app;
    Ok(url)
}

fn main() {}
