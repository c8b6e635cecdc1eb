#[neuron::step]
struct Page {
    url: String,
}

fn main() {
    let _ = Page { url: String::new() }.url;
}
