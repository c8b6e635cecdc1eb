//! A body may return any `Result` whose error converts into a boxed one, under any name.

use neuron::{Cx, Error, step};

#[derive(Debug)]
struct Own;
impl std::fmt::Display for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("own")
    }
}
impl std::error::Error for Own {}

type Reply = Result<u32, Own>;

#[step]
async fn read(_: &Cx) -> std::io::Result<String> {
    std::fs::read_to_string("nowhere")
}

#[step]
async fn parse(_: &Cx, text: String) -> neuron::Result<u32> {
    Ok(text.parse()?)
}

#[step]
async fn own(_: &Cx) -> Reply {
    Err(Own)
}

#[step]
async fn ours(cx: &Cx) -> Result<u32, Error> {
    own(cx).await
}

#[step]
async fn text(_: &Cx) -> Result<Result<u32, String>, &'static str> {
    Err("gone")
}

fn main() {}
