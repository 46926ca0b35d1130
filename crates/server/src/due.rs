//! Puts signers into effect whose time has come (D132): before the first request that comes then, and in rounds.
//!
//! While nothing waits, a request looks at one field of the newest head. A failure keeps no request: the rounds try again.

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use countersign_core::{
    documents::layout,
    rules::decide::activate::{ActivateRefusal, activate_due},
    values::path::RepoPath,
};
use futures_util::future::join_all;
use tokio::{runtime::Handle, time::timeout};

use crate::{rounds::Rounds, state::App};

/// How soon signers take effect when no request comes.
const ROUND: Duration = Duration::from_secs(1);
/// How long a request waits for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Projects that are taken on together: as many as fit into a batch of the store.
const TOGETHER: usize = 256;

/// None for a mirror, which only repeats, and for what serves no state.
#[derive(Debug, Clone, Default)]
pub struct DueRotations(Option<Arc<DueParts>>);

#[derive(Debug)]
struct DueParts {
    app: App,
    /// Who comes meanwhile waits for the one who works.
    working: tokio::sync::Mutex<()>,
    /// Projects whose signers could not be put into effect, or must not. Requests do not try them again.
    held: Mutex<BTreeSet<RepoPath>>,
}

impl DueRotations {
    pub fn of(app: &App) -> Self {
        let parts =
            || DueParts { app: Arc::clone(app), working: Default::default(), held: Default::default() };
        Self(app.role.mirror().is_none().then(|| Arc::new(parts())))
    }

    /// Puts everything into effect that is due, as far as it can.
    pub async fn settle(&self) {
        let Some(parts) = &self.0 else { return };
        if parts.is_due() && timeout(PATIENCE, parts.settle()).await.is_err() {
            let late = parts.due();
            parts.hold(late, "the store takes too long");
        }
    }
}

/// Looks each second, and tries again what failed.
pub(crate) fn watch(due: DueRotations, runtime: Handle) -> io::Result<Rounds> {
    Rounds::start("rotations", ROUND, move || {
        let Some(parts) = &due.0 else { return };
        if parts.has_due() {
            runtime.block_on(parts.activate(parts.due()));
        }
        parts.forget_done();
    })
}

impl DueParts {
    fn has_due(&self) -> bool {
        let next = self.app.store.glance().index.next_due();
        next.is_some_and(|next| next <= self.app.now())
    }

    /// Whether there is something that a request should wait for.
    fn is_due(&self) -> bool {
        self.has_due() && !self.unheld().is_empty()
    }

    fn due(&self) -> Vec<RepoPath> {
        self.app.store.head().index.due(self.app.now())
    }

    fn unheld(&self) -> Vec<RepoPath> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.due().into_iter().filter(|project| !held.contains(project)).collect()
    }

    /// A request waits again for what is due the next time.
    fn forget_done(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if !held.is_empty() {
            let due = self.due();
            held.retain(|project| due.contains(project));
        }
    }

    async fn settle(&self) {
        let _turn = self.working.lock().await;
        self.activate(self.unheld()).await;
    }

    async fn activate(&self, projects: Vec<RepoPath>) {
        if let Err(wrong) = self.app.role.check_clock() {
            return self.hold(projects, &wrong.to_string());
        }
        for group in projects.chunks(TOGETHER) {
            join_all(group.iter().map(|project| self.activate_one(project))).await;
        }
    }

    async fn activate_one(&self, project: &RepoPath) {
        if self.app.blocks.check(&[], &layout::pending_signers(project)).is_err() {
            return self.hold([project.clone()], "the operator has blocked the project");
        }
        let subject = project.clone();
        let done = self.app.store.transact(move |head, now| activate_due(head, &subject, now)).await;
        let failure = match done {
            // Another node was first, or a veto.
            Ok(Ok(()) | Err(ActivateRefusal::NothingWaits(_) | ActivateRefusal::NotDue { .. })) => {
                self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(project);
                return;
            }
            Ok(Err(ActivateRefusal::Stored(error))) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.hold([project.clone()], &failure);
    }

    /// Each is told once.
    fn hold(&self, projects: impl IntoIterator<Item = RepoPath>, reason: &str) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for project in projects {
            if held.insert(project.clone()) {
                tracing::warn!(%project, reason, "signers are due and not in force yet");
            }
        }
    }
}
