//! Asks a server for changes.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
        mpsc,
    },
    time::Duration,
};

use countersign_core::rules::snapshot::Change;
use countersign_store::{Head, ObjectId, Store, StoreError};
use futures_util::{future::join_all, task::noop_waker_ref};

use super::Machine;
use crate::{expected::AskedChange, wish::ChangeWish};

/// The answer that a caller got.
#[derive(Debug)]
pub struct ChangeAnswer {
    /// The commit on top of which it was decided.
    pub seen: ObjectId,
    /// The reason why nothing changes.
    pub refusal: Option<String>,
}

impl ChangeAnswer {
    /// Tells the answer in one line.
    pub fn tell(attempt: &AskedChange, answer: &Result<Self, StoreError>) -> String {
        let told = match answer {
            Ok(answer) => answer.refusal.clone().unwrap_or_else(|| "done".to_owned()),
            Err(StoreError::Io(_)) => "the disk has failed".to_owned(),
            Err(error) => error.to_string(),
        };
        let asked = attempt.change.as_ref().map_or("", |change| change.message.as_str());
        format!("  {}: {told}", asked.lines().next().unwrap_or_default())
    }
}

impl Machine {
    /// Offers all wishes at once if the writer can be held until they are there, else one after the other.
    pub fn change(&self, wishes: &[ChangeWish]) -> Vec<(AskedChange, Result<ChangeAnswer, StoreError>)> {
        let store = self.store();
        let decided: Vec<Arc<Mutex<Option<Change>>>> = wishes.iter().map(|_| Arc::default()).collect();
        let jobs: Vec<_> = wishes
            .iter()
            .zip(&decided)
            .map(|(wish, decided)| {
                let (wish, decided) = (wish.clone(), Arc::clone(decided));
                let (clock, jump) = (self.clock.clone(), AtomicI64::new(wish.jump));
                let decide = move |head: &Head, now| {
                    let change = wish.decide(head, now);
                    clock.set_by(jump.swap(0, Ordering::Relaxed));
                    *decided.lock().expect("no one panics with it") = change.clone().ok();
                    let seen = head.commit;
                    match change {
                        Ok(change) => Ok((change, ChangeAnswer { seen, refusal: None })),
                        Err(refusal) => Err(ChangeAnswer { seen, refusal: Some(refusal) }),
                    }
                };
                store.transact(decide)
            })
            .collect();
        let answers = self.runtime.block_on(async {
            let release = if wishes.len() > 1 { hold_writer(store).await } else { None };
            match release {
                Some(release) => {
                    let release = async { drop(release) };
                    futures_util::future::join(join_all(jobs), release).await.0
                }
                None => {
                    let mut answers = Vec::new();
                    for job in jobs {
                        answers.push(job.await);
                    }
                    answers
                }
            }
        });
        self.await_writer();
        self.await_folder();
        self.await_log();
        let attempts = answers.into_iter().zip(decided).map(|(answer, decided)| {
            let change = decided.lock().expect("no one panics with it").take();
            let answer = answer.map(|outcome| outcome.unwrap_or_else(|refused| refused));
            let is_change = change.as_ref().is_some_and(|change| !change.is_empty());
            let is_answered = answer.is_ok() && is_change;
            (AskedChange { change: change.filter(|_| is_change), is_answered }, answer)
        });
        attempts.collect()
    }
}

/// Keeps the writer from taking the next job until the sender is dropped. `None` if the writer does nothing at present.
async fn hold_writer(store: &Store) -> Option<mpsc::Sender<()>> {
    let (arrived, has_arrived) = mpsc::channel();
    let (release, is_released) = mpsc::channel::<()>();
    let is_released = Mutex::new(is_released);
    let decide = move |_: &Head, _| {
        let _ = arrived.send(());
        let _ = is_released.lock().expect("no one panics with it").recv();
        Err::<(Change, ()), ()>(())
    };
    let mut held = Box::pin(store.transact(decide));
    let mut context = std::task::Context::from_waker(noop_waker_ref());
    loop {
        if held.as_mut().poll(&mut context).is_ready() {
            return None;
        }
        if has_arrived.recv_timeout(Duration::from_micros(500)).is_ok() {
            return Some(release);
        }
    }
}
