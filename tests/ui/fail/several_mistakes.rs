use neuron::step;

#[step(retires(3), timeout = "soon", once, once)]
fn fetch<T>(url: &str, (a, b): (u8, u8)) {
    let _ = (url, a, b);
}

fn main() {}
