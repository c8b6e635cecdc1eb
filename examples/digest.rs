//! The program of the README, word for word. Abort it whenever you like and run it again: it goes on where its log ends.
//!
//! ```text
//! $ cargo run --example digest
//! 68
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use orchestrator::prelude::*;

/// Fetches one page.
#[step(uses("net"), retry(3))]
async fn fetch(cx: &Cx, url: String) -> Result<String> {
    Ok(format!("attempt {} at {url}", cx.attempt()))
}

/// Reads one page and says what it is about.
#[agent]
async fn researcher(cx: &Cx, url: String) -> Result<usize> {
    let page = fetch(cx, url).await?;
    Ok(page.len())
}

#[orchestrator]
async fn digest(board: &Board, urls: Vec<String>) -> Result<usize> {
    let parts: Vec<_> = urls.into_iter().map(|url| board.assign(researcher, url)).collect();
    let mut total = 0;
    for part in parts {
        total += part.await?;
    }
    Ok(total)
}

#[tokio::main]
async fn main() -> Result<()> {
    let neuron = Neuron::open("digest.db").await?;
    let urls = vec!["https://example.org/a".to_owned(), "https://example.org/b".to_owned()];
    let total = neuron.run(digest, urls).id("digest-1").await?; // run it again after a crash: it resumes
    println!("{total}");
    Ok(())
}
