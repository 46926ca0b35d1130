//! Withdrawals and objections again.

use super::{
    rerun::{Between, Replay, Rerun, accept_forgotten, read, refused},
    times::around,
    violation::{ReplayFault, Violation},
};
use countersign_core::{
    documents::{
        layout,
        statement::{SignedStatement, StatementKind},
        withdrawal::Withdrawal,
    },
    rules::{
        decide::{object, withdraw},
        snapshot::Snapshot,
        stored,
    },
    values::{key::PublicKey, path::RepoPath},
};

impl Replay {
    /// The commit stores the request, which says all.
    pub(crate) fn withdraw(
        &mut self,
        between: &Between<'_, impl Snapshot>,
        index: &RepoPath,
        caller: &PublicKey,
    ) -> Result<Rerun, Violation> {
        let Between { before, after, time } = *between;
        let path = layout::withdrawal_of(index);
        let withdrawal = stored::parse_stored(&path, Withdrawal::parse(&read(after, &path)?))?;
        if withdrawal.body.file_path != *index || withdrawal.request.public_key != *caller {
            return Err(Violation::unproven(&path, "it asks for another withdrawal, or in another's name"));
        }
        self.check_request(&path, &withdrawal.request, around(time), time)?;
        let (mut change, ()) = withdraw::repeat_withdrawal(before, &withdrawal).map_err(refused(index))?;
        accept_forgotten(&mut change, between, index)?;
        Ok(Rerun { change, evidence: [path].into(), stated: None, outcome: None })
    }

    pub(crate) fn object(
        between: &Between<'_, impl Snapshot>,
        index: &RepoPath,
        objector: &PublicKey,
    ) -> Result<Rerun, Violation> {
        let Between { before, after, .. } = *between;
        let path = layout::objections_of(index);
        let entry = stored::objections(after, index)?.entries.remove(objector);
        let entry = entry.ok_or_else(|| Violation::at(&path, ReplayFault::NoSignature(*objector)))?;
        let statement = SignedStatement {
            kind: StatementKind::Objection,
            file_path: index.clone(),
            text: entry.text,
            signature: entry.signature,
            public_key: *objector,
        };
        let objected = object::object(before, &statement, entry.collected_at);
        // The message says whether an objection stands, and is compared.
        let (change, _) = objected.map_err(refused(index))?;
        Ok(Rerun {
            change,
            evidence: [path.clone()].into(),
            stated: Some((path, entry.collected_at)),
            outcome: None,
        })
    }
}
