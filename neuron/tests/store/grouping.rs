//! Appends that meet share a commit.

use std::sync::Arc;

use neuron::{
    Append, Millis,
    store::{
        Memory, Store,
        conformance::{self, Breaker},
    },
};

use super::draft;

const TASKS: usize = 64;
const EACH: usize = 40;

/// How many commits it took when all tasks append on the one thread of this test.
async fn commits() -> usize {
    let fault = Arc::<Breaker>::default();
    let clock = Arc::new(neuron::ManualClock::at(Millis(0)));
    let store = Arc::new(Memory::with(clock, Some(fault.clone())).unwrap());
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0..EACH {
                    let append = Append::of([draft(&format!("own.{task}"), &n.to_string())]);
                    let batch = conformance::batch(append, Millis(0)).unwrap();
                    store.append(batch).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.last().unwrap().0, (TASKS * EACH) as u64);
    fault.commits()
}

#[tokio::test]
async fn tasks_of_one_thread_share_their_commits() {
    let commits = commits().await;
    assert!(
        commits * 8 < TASKS * EACH,
        "{commits} commits for {} appends",
        TASKS * EACH
    );
}
