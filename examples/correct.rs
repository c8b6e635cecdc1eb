//! Nothing is overwritten: a word on a recorded envelope is a header injected later, a new version of a text supersedes the
//! old one, and of two versions that differ one is settled on. What was there stays readable, also as of back then.
//!
//! ```text
//! $ cargo run --example correct -- correct.db
//! grade of the essay: B
//! current: “The log is the truth.” and “The log is the only truth.”
//! settled: “The log is the only truth.”
//! as it stood before the grade: none
//! the first version still says: “The logg is the truth.”
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::io::Read as _;

use neuron::{
    Author, Contract, Digest, Draft, Ledger, Pattern, Result, Topic,
    store::{Options, Select},
};

fn text(ledger: &Ledger, hash: &Digest) -> Result<String> {
    let mut text = String::new();
    ledger.blob(hash)?.read_to_string(&mut text)?;
    Ok(format!("“{text}”"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "correct.db".into());
    let ledger = Ledger::open(store, Options::default())?;
    let (pupil, teacher) = (Author::human("ada")?, Author::human("grace")?);

    ledger
        .declare(&Pattern::new("school.*")?, Contract::Durable, &teacher)
        .await?;

    // What was handed in is an envelope; the grade comes later, beside it.
    let topic = Topic::new("school.essays")?;
    let essay = Draft::new(topic, pupil.clone(), "essay.handed_in")?.payload(&"On logs".to_owned())?;
    let handed_in = ledger.publish(essay).await?;
    let mut said = ledger.read(Select::Topic(handed_in.topic)).envelopes();
    let essay = said.next().ok_or("it was handed in")??;
    ledger.inject(&essay, "grade", "C", "first reading", &teacher).await?;
    ledger
        .inject(&essay, "grade", "B", "read again, with the sources", &teacher)
        .await?;
    let now = ledger.headers(&essay, None)?;
    println!(
        "grade of the essay: {}",
        now.decode::<String>("grade").unwrap_or_default()
    );

    // Two people mend the same text without knowing of one another: a fork, which is legal, and settled by a third word.
    let first = ledger.store_blob("The logg is the truth.".as_bytes())?;
    let spelled = ledger.store_blob("The log is the truth.".as_bytes())?;
    let stronger = ledger.store_blob("The log is the only truth.".as_bytes())?;
    ledger.supersede(&first, &spelled, "spelling", &pupil).await?;
    ledger
        .supersede(&first, &stronger, "spelling, and a stronger claim", &teacher)
        .await?;
    let mut current = Vec::new();
    for head in [spelled, stronger] {
        if ledger.lineage()?.heads(&first).contains(&head) {
            current.push(text(&ledger, &head)?);
        }
    }
    println!("current: {}", current.join(" and "));
    ledger.settle(&stronger, "we agreed", &pupil).await?;
    for head in ledger.lineage()?.heads(&first) {
        println!("settled: {}", text(&ledger, &head)?);
    }

    let before = ledger.headers(&essay, Some(handed_in.pos))?;
    println!(
        "as it stood before the grade: {}",
        before.decode::<String>("grade").unwrap_or_else(|| "none".into())
    );
    println!("the first version still says: {}", text(&ledger, &first)?);
    Ok(())
}
