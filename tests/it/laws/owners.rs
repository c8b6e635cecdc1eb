//! L11: a stale owner cannot write.

use std::time::Duration;

use neuron::{Append, Author, Draft, ErrorKind, Ledger, Topic, ownership::Ownership, store::Select};
use proptest::{collection::vec, prop_assert, prop_assert_eq, proptest};

use super::{Home, backend, block_on, cases};

const NAME: &str = "run:r";

/// A process: its own view of the store, the epoch it believes in, and perhaps a slot.
struct Process {
    ledger: Ledger,
    owner: Ownership,
    epoch: u64,
}

impl Process {
    fn new(home: &Home) -> Self {
        let ledger = home.another();
        Self {
            owner: Ownership::join(ledger.clone(), Duration::from_secs(9)).unwrap(),
            ledger,
            epoch: 0,
        }
    }
}

fn work() -> Draft {
    Draft::new(Topic::new("law.a").unwrap(), Author::cli(), "worked").unwrap()
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn every_append_under_an_epoch_is_refused_once_a_newer_one_exists(
        backend in backend(), acts in vec((0..3_usize, 0..5_usize), 1..16),
    ) {
        let home = Home::new(backend);
        let mut processes = [Process::new(&home), Process::new(&home), Process::new(&home)];
        let (mut newest, mut holder, mut written) = (0, None, Vec::new());
        for (who, act) in acts {
            match act {
                0 => {
                    let claimed = block_on(processes[who].owner.claim(NAME));
                    match claimed {
                        Ok(claimed) => {
                            prop_assert!(holder.is_none() || holder == Some(who));
                            if holder.is_none() {
                                newest += 1;
                            }
                            prop_assert_eq!(claimed.epoch, newest);
                            (holder, processes[who].epoch) = (Some(who), newest);
                        }
                        Err(error) => {
                            prop_assert_eq!(error.kind(), ErrorKind::Owned);
                            prop_assert!(holder.is_some_and(|other| other != who));
                        }
                    }
                }
                // It dies. What it believed, its successor in this test believes too: a stale owner that lives on.
                1 => {
                    processes[who].owner = Ownership::join(processes[who].ledger.clone(), Duration::from_secs(9)).unwrap();
                    holder = holder.filter(|other| *other != who);
                }
                _ => {
                    let epoch = processes[who].epoch;
                    let append = Append::of([work(), work()]).owner(NAME, epoch);
                    let outcome = processes[who].ledger.append_blocking(append);
                    match outcome {
                        Ok(_) => {
                            prop_assert_eq!(epoch, newest);
                            written.push(epoch);
                        }
                        Err(error) => {
                            prop_assert_eq!(error.kind(), ErrorKind::Fenced);
                            prop_assert!(epoch < newest);
                            let told = error.to_string();
                            prop_assert!(told.contains(NAME) && told.contains(&newest.to_string()), "{}", told);
                        }
                    }
                }
            }
        }
        // Every envelope says under which epoch it was written, and epochs never fall along the log.
        let topic = Select::Topic(Topic::new("law.a").unwrap());
        let epochs: Vec<u64> = home.another().read(topic).envelopes()
            .map(|envelope| envelope.unwrap().headers.decode("epoch").unwrap())
            .collect();
        prop_assert!(epochs.is_sorted());
        prop_assert_eq!(epochs, written.iter().flat_map(|epoch| [*epoch; 2]).collect::<Vec<_>>());
    }
}
