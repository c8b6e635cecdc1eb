use neuron::{Cx, Error, ErrorKind, Event, Result, on, step};

fn by_kind(kind: ErrorKind) -> bool {
    kind == ErrorKind::Timeout
}

fn without_an_answer(_error: &Error) {}

#[step(retry(3, on = by_kind))]
async fn fetch(_: &Cx, url: String) -> Result<String> {
    Ok(url)
}

#[step(retry(3, on = without_an_answer))]
async fn store(_: &Cx, page: String) -> Result<String> {
    Ok(page)
}

#[on("orders.placed", retry(3, on = by_kind))]
async fn ship(_event: &Event) -> Result<()> {
    Ok(())
}

#[step(retry(3, on = by_kind, on = without_an_answer))]
async fn twice(_: &Cx) -> Result<()> {
    Ok(())
}

fn main() {}
