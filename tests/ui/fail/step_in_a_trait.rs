use neuron::{Cx, Result, step};

trait Pages {
    #[step]
    async fn fetch(cx: &Cx, url: String) -> Result<String>;
}

fn main() {}
