use neuron::{Cx, Result, step};

struct Pages;

impl Pages {
    #[step]
    async fn fetch(&self, cx: &Cx, url: String) -> Result<String> {
        let _ = cx;
        Ok(url)
    }
}

fn main() {
    let _ = Pages::fetch;
}
