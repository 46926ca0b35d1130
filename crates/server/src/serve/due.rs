//! Puts signers into effect whose time has come (D132): before the first request that comes then, and in rounds.
//!
//! While nothing waits, a request looks at one field of the newest head. A failure keeps no request: the rounds try
//! again. However many are held back, a request only learns when the next ones are due that are not ([`HeldBack`]).

use std::sync::{Arc, Mutex, atomic::AtomicU64, atomic::Ordering};
use std::{collections::BTreeSet, io, time::Duration};

use arc_swap::ArcSwapOption;
use countersign_core::rules::decide::activate::{ActivateRefusal, activate_due};
use countersign_core::{documents::layout, values::path::RepoPath, values::time::Timestamp};
use countersign_store::{machine::clock::lock, snapshot::index::WaitingSigners};
use futures_util::future::join_all;
use tokio::{runtime::Handle, time::timeout};

use crate::{api::state::App, follow::background::Rounds};

/// How soon signers take effect when no request comes.
const ROUND: Duration = Duration::from_secs(1);
/// How long a request waits for it.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Projects that are taken on together: as many as fit into a batch of the store.
const TOGETHER: usize = 256;

/// Puts signers into effect when they are due. It is empty for a mirror, which only repeats, and for a server that
/// serves no state.
#[derive(Debug, Clone, Default)]
pub struct DueRotations(Option<Arc<DueParts>>);

#[derive(Debug)]
struct DueParts {
    app: App,
    /// The lock of the one request that works. Others that come meanwhile wait for it.
    working: tokio::sync::Mutex<()>,
    held: HeldBack,
}

/// Signers that wait, with the time at which they take effect and their project.
pub type DueSigners = (Timestamp, RepoPath);

/// Signers that are due and could not be put into effect, or must not. Requests do not try them again.
#[derive(Debug, Default)]
pub struct HeldBack {
    held: Mutex<BTreeSet<DueSigners>>,
    /// What a look at all that wait came to. It is stored and forgotten only while `held` is locked.
    quiet: ArcSwapOption<Quiet>,
    looks: AtomicU64,
}

/// A time before which nothing is due except what is held back.
#[derive(Debug)]
struct Quiet {
    /// The signers that wait. The time holds only while just these wait.
    waiting: Arc<WaitingSigners>,
    /// The time before which nothing else is due, or `None` if everything is held back.
    until: Option<Timestamp>,
}

impl HeldBack {
    /// Whether signers are due that are not held back. Mostly this takes no lock and looks at no signers. While none
    /// wait, it does not even read the clock.
    pub fn has_other_due(&self, waiting: &Arc<WaitingSigners>, clock: impl FnOnce() -> Timestamp) -> bool {
        let Some(next) = waiting.next_due() else { return false };
        let now = clock();
        if next > now {
            return false;
        }
        let known = self.quiet.load();
        let known = known.as_ref().filter(|quiet| Arc::ptr_eq(&quiet.waiting, waiting));
        let until = known.map_or_else(|| self.look(waiting), |quiet| quiet.until);
        until.is_some_and(|until| until <= now)
    }

    /// The signers that are due and not held back.
    pub fn other_due(&self, waiting: &WaitingSigners, now: Timestamp) -> Vec<DueSigners> {
        let held = lock(&self.held);
        waiting.due(now).filter(|signers| !held.contains(signers)).cloned().collect()
    }

    /// Holds these back. Returns whether they were not before.
    pub fn hold(&self, signers: DueSigners) -> bool {
        let mut held = lock(&self.held);
        let is_new = held.insert(signers);
        if is_new {
            self.quiet.store(None);
        }
        is_new
    }

    pub fn release(&self, signers: &DueSigners) {
        let mut held = lock(&self.held);
        if held.remove(signers) {
            self.quiet.store(None);
        }
    }

    /// Forgets those that no longer wait.
    pub fn forget_done(&self, waiting: &WaitingSigners) {
        let mut held = lock(&self.held);
        let before = held.len();
        held.retain(|signers| waiting.contains(signers));
        if held.len() < before {
            self.quiet.store(None);
        }
    }

    /// How often it went through what waits.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// When the first are due that are not held back.
    fn look(&self, waiting: &Arc<WaitingSigners>) -> Option<Timestamp> {
        let held = lock(&self.held);
        self.looks.fetch_add(1, Ordering::Relaxed);
        let until = waiting.iter().find(|signers| !held.contains(signers)).map(|(due, _)| *due);
        self.quiet.store(Some(Arc::new(Quiet { waiting: Arc::clone(waiting), until })));
        until
    }
}

impl DueRotations {
    pub fn of(app: &App) -> Self {
        let parts =
            || DueParts { app: Arc::clone(app), working: Default::default(), held: HeldBack::default() };
        Self(app.role.mirror().is_none().then(|| Arc::new(parts())))
    }

    /// Puts everything into effect that is due, as far as it can.
    pub async fn settle(&self) {
        let Some(parts) = &self.0 else { return };
        if parts.is_due() && timeout(TIMEOUT, parts.settle()).await.is_err() {
            let late = parts.due();
            parts.hold(late, "the store takes too long");
        }
    }
}

/// Looks each second, and tries again what failed.
pub(crate) fn watch(due: DueRotations, runtime: Handle) -> io::Result<Rounds> {
    Rounds::start("rotations", ROUND, move || {
        let Some(parts) = &due.0 else { return };
        let due = parts.due();
        if !due.is_empty() {
            runtime.block_on(parts.activate(due));
        }
        parts.held.forget_done(&parts.waiting());
    })
}

impl DueParts {
    /// Whether there is something that a request should wait for.
    fn is_due(&self) -> bool {
        self.held.has_other_due(self.app.store.glance().index.waiting_signers(), || self.app.now())
    }

    fn waiting(&self) -> Arc<WaitingSigners> {
        Arc::clone(self.app.store.glance().index.waiting_signers())
    }

    fn due(&self) -> Vec<DueSigners> {
        let waiting = self.waiting();
        let now = waiting.next_due().map(|_| self.app.now());
        now.map_or_else(Vec::new, |now| waiting.due(now).cloned().collect())
    }

    async fn settle(&self) {
        let _turn = self.working.lock().await;
        if self.is_due() {
            self.activate(self.held.other_due(&self.waiting(), self.app.now())).await;
        }
    }

    async fn activate(&self, due: Vec<DueSigners>) {
        if let Err(wrong) = self.app.role.check_clock() {
            return self.hold(due, &wrong.to_string());
        }
        for group in due.chunks(TOGETHER) {
            join_all(group.iter().map(|signers| self.activate_one(signers))).await;
        }
    }

    async fn activate_one(&self, signers: &DueSigners) {
        let (_, project) = signers;
        if self.app.blocks.check(&[], &layout::pending_signers(project)).is_err() {
            return self.hold([signers.clone()], "the operator has blocked the project");
        }
        let subject = project.clone();
        let done = self.app.store.transact(move |head, now| activate_due(head, &subject, now)).await;
        let failure = match done {
            // Another node was first, or a veto.
            Ok(Ok(()) | Err(ActivateRefusal::NothingWaits(_) | ActivateRefusal::NotDue { .. })) => {
                return self.held.release(signers);
            }
            Ok(Err(ActivateRefusal::Stored(error))) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.hold([signers.clone()], &failure);
    }

    /// Holds these signers back, and logs each of them once.
    fn hold(&self, due: impl IntoIterator<Item = DueSigners>, reason: &str) {
        for signers in due {
            let project = signers.1.clone();
            if self.held.hold(signers) {
                tracing::warn!(%project, reason, "signers are due and not in force yet");
            }
        }
    }
}
