//! Signatures that are submitted: once, however often the request had to be sent (D63, D218).

use countersign_api::answers::{
    ChangedResponse, RebuildResponse, RevokedResponse, SignedResponse, VetoedResponse,
};
use countersign_api::requests::{SignaturesBody, SignedStatement, WithdrawBody};
use countersign_core::documents::index::ReleaseIndex;
use countersign_core::documents::statement::{StatementKind, Veto};
use countersign_core::documents::{
    history::Agreement, layout, layout::Signable, signatures::SignatureSet, signed_request::Withdrawal,
};
use countersign_core::rules::{reproduction::compare, stored};
use countersign_core::values::{digest::Sha512, key::PublicKey, key::Signature, path::RepoPath};

use crate::client::{ServerCall, ServerClient, state::Shown};
use crate::{keys::SigningKey, words::error::CliError};

/// What became of something that was handed in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Submitted<T> {
    pub(crate) answer: T,
    /// The server refused it or did not answer, and has it already or needs it no longer: an earlier request did it, or
    /// others did.
    pub(crate) was_done: bool,
}

impl<T> Submitted<T> {
    /// `find` looks whether the server has it, which is asked only after a failure.
    async fn of(
        outcome: Result<T, CliError>,
        find: impl Future<Output = Result<Option<T>, CliError>>,
    ) -> Result<Self, CliError> {
        match outcome {
            Ok(answer) => Ok(Self { answer, was_done: false }),
            Err(error) => match find.await {
                Ok(Some(answer)) => Ok(Self { answer, was_done: true }),
                Ok(None) | Err(_) => Err(error),
            },
        }
    }
}

impl ServerClient {
    /// Submits signatures. The answer says whether the file is complete with them, and whether it then waits.
    pub(crate) async fn submit_signatures(
        &self,
        key: &SigningKey,
        body: &SignaturesBody,
    ) -> Result<Submitted<SignedResponse>, CliError> {
        let (anyone, call) = (key.sign_as_anyone()?, ServerCall::signatures(body));
        let outcome = self.ask(anyone.as_ref().unwrap_or(key), call, SignedResponse::parse).await;
        Submitted::of(outcome, self.find_submitted(body)).await
    }

    /// Submits a statement. The answer says whether it is in force, or needs more signatures.
    pub(crate) async fn submit_statement(
        &self,
        key: &SigningKey,
        statement: &SignedStatement,
    ) -> Result<Submitted<bool>, CliError> {
        let parse = |bytes: &[u8]| match statement.kind {
            StatementKind::Revocation => RevokedResponse::parse(bytes).map(|answer| answer.revoked),
            StatementKind::Veto => VetoedResponse::parse(bytes).map(|answer| answer.vetoed),
            StatementKind::Objection => ChangedResponse::parse(bytes).map(|_| true),
            StatementKind::Rebuild => RebuildResponse::parse(bytes).map(|answer| answer.is_same),
        };
        // The request of a revocation is kept, and says who began it.
        let anyone = match statement.kind {
            StatementKind::Revocation => None,
            _ => key.sign_as_anyone()?,
        };
        let outcome = self.ask(anyone.as_ref().unwrap_or(key), ServerCall::state(statement), parse).await;
        Submitted::of(outcome, self.find_statement(statement)).await
    }

    /// What the server would have answered, if it has exactly this signature, or needs it no longer. A revocation or a
    /// veto for another reason does what this one would.
    async fn find_statement(&self, statement: &SignedStatement) -> Result<Option<bool>, CliError> {
        let SignedStatement { kind, file_path, text, signature, public_key } = statement;
        let shown = self.state_at(file_path).await?;
        let statement_path = kind.path_of(file_path);
        match kind {
            StatementKind::Revocation if shown.contains(&statement_path) => return Ok(Some(true)),
            StatementKind::Objection => {
                let file = shown.read(|files| stored::objections(files, file_path))?;
                let entry = file.entries.get(public_key);
                return Ok(entry.filter(|entry| entry.signature == *signature).map(|_| true));
            }
            StatementKind::Rebuild => {
                let file = shown.read(|files| stored::rebuilds(files, file_path))?;
                let entry = file.entries.get(public_key).filter(|entry| entry.signature == *signature);
                let index = shown.parsed(file_path, ReleaseIndex::parse)?;
                let is_same = |(_, is_same): &(_, Option<bool>)| *is_same == Some(true);
                return Ok(entry
                    .zip(index)
                    .map(|(entry, index)| compare(&index, &entry.document).iter().all(is_same)));
            }
            StatementKind::Revocation | StatementKind::Veto => {}
        }
        if let Some(found) = find_collected(&shown, &statement_path, public_key, signature)? {
            return Ok(Some(found));
        }
        let document = Veto::parse(text.as_bytes()).ok().filter(|_| *kind == StatementKind::Veto);
        let Some(document) = document else { return Ok(None) };
        // The state has the newest veto alone.
        let record = layout::veto_record(&document.project_id, &document.signers_file_digest);
        Ok(self.parsed(&record, Veto::parse).await?.map(|_| true))
    }

    pub(crate) async fn submit_withdrawal(
        &self,
        key: &SigningKey,
        body: &WithdrawBody,
    ) -> Result<(), CliError> {
        let outcome = self.ask(key, ServerCall::withdraw(body), ChangedResponse::parse).await.map(drop);
        let find = async {
            let found = self.parsed(&layout::withdrawal_of(&body.file_path), Withdrawal::parse).await?;
            let is_mine =
                |found: &Withdrawal| found.body == *body && found.request.public_key == key.public_key();
            Ok(found.filter(is_mine).map(drop))
        };
        Submitted::of(outcome, find).await.map(|done| done.answer)
    }

    /// What the server would have answered, if it has exactly this signature, or what was signed is complete without
    /// it.
    async fn find_submitted(&self, body: &SignaturesBody) -> Result<Option<SignedResponse>, CliError> {
        let SignaturesBody { file_path, public_key, signatures, .. } = body;
        let Some(signature) = signatures.get(file_path) else { return Ok(None) };
        let shown = self.state_at(file_path).await?;
        if let Some(found) = find_collected(&shown, file_path, public_key, signature)? {
            let agreement = shown.parsed(&layout::agreement_of(file_path), Agreement::parse)?;
            let waits_until = agreement.map(|agreement| agreement.due_at);
            return Ok(Some(SignedResponse { is_complete: found || waits_until.is_some(), waits_until }));
        }
        let is_signed = |text: &str| public_key.verify(&Sha512::of(text.as_bytes()), signature).is_ok();
        let is_complete = match layout::signable(file_path) {
            None => false,
            Some(Signable::Index) => {
                shown.contains(&layout::signatures_of(file_path))
                    && shown.document(file_path).is_some_and(|text| is_signed(&text))
            }
            // If these signers are in force, a later file may be pending by now.
            Some(Signable::PendingSigners { .. }) => {
                shown.history().entries.iter().any(|entry| is_signed(&entry.signers_config))
            }
        };
        Ok(is_complete.then_some(SignedResponse { is_complete: true, waits_until: None }))
    }
}

/// Looks for a signature among the complete ones (true) and the collected ones (false).
fn find_collected(
    shown: &Shown,
    file: &RepoPath,
    key: &PublicKey,
    signature: &Signature,
) -> Result<Option<bool>, CliError> {
    for (path, is_complete) in
        [(layout::signatures_of(file), true), (layout::pending_signatures_of(file), false)]
    {
        let set = shown.parsed(&path, SignatureSet::parse)?;
        let found = set.as_ref().and_then(|set| set.entries.get(key));
        if found.is_some_and(|found| found.signature == *signature) {
            return Ok(Some(is_complete));
        }
    }
    Ok(None)
}
