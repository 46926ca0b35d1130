//! Signatures that are submitted: once, however often the request had to be sent (D63, D218).

use countersign_api::{
    answers::{ChangedResponse, RevokedResponse, SignedResponse, VetoedResponse},
    requests::{ObjectBody, RevokeBody, SignaturesBody, VetoBody, WithdrawBody},
};
use countersign_core::{
    documents::{
        agreement::Agreement,
        layout::{self, Signable},
        objections::ObjectionsFile,
        revocation::Revocation,
        signatures::SignatureSet,
        veto::Veto,
        withdrawal::Withdrawal,
    },
    values::{
        bounds::FILE_BYTES,
        digest::Sha512,
        key::{PublicKey, Signature},
        path::RepoPath,
    },
};

use super::{ServerCall, ServerClient};
use crate::{error::CliError, keys::SigningKey};

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
    /// Whether the file is complete with this signature, and whether it waits then.
    pub(crate) async fn submit_signatures(
        &self,
        key: &SigningKey,
        body: &SignaturesBody,
    ) -> Result<Submitted<SignedResponse>, CliError> {
        let outcome = self.ask(key, ServerCall::Signatures(body), SignedResponse::parse).await;
        Submitted::of(outcome, self.find_submitted(body)).await
    }

    /// Whether the revocation is in force with this signature.
    pub(crate) async fn submit_revocation(
        &self,
        key: &SigningKey,
        body: &RevokeBody,
    ) -> Result<Submitted<bool>, CliError> {
        let outcome = self.ask(key, ServerCall::Revoke(body), RevokedResponse::parse).await;
        Submitted::of(outcome.map(|answer| answer.revoked), self.find_revocation(body)).await
    }

    /// A revocation for another reason revokes as well. A begun one counts only with exactly this signature.
    async fn find_revocation(&self, body: &RevokeBody) -> Result<Option<bool>, CliError> {
        let document = layout::revocation_of(&body.file_path);
        if self.parsed(&document, Revocation::parse).await?.is_some() {
            return Ok(Some(true));
        }
        self.find_collected(&document, &body.public_key, &body.signature).await
    }

    pub(crate) async fn submit_withdrawal(
        &self,
        key: &SigningKey,
        body: &WithdrawBody,
    ) -> Result<(), CliError> {
        let outcome = self.ask(key, ServerCall::Withdraw(body), ChangedResponse::parse).await.map(drop);
        let find = async {
            let found = self.parsed(&layout::withdrawal_of(&body.file_path), Withdrawal::parse).await?;
            let is_mine =
                |found: &Withdrawal| found.body == *body && found.request.public_key == key.public_key();
            Ok(found.filter(is_mine).map(drop))
        };
        Submitted::of(outcome, find).await.map(|done| done.answer)
    }

    pub(crate) async fn submit_objection(&self, key: &SigningKey, body: &ObjectBody) -> Result<(), CliError> {
        let outcome = self.ask(key, ServerCall::Object(body), ChangedResponse::parse).await.map(drop);
        let find = async {
            let found = self.parsed(&layout::objections_of(&body.file_path), ObjectionsFile::parse).await?;
            let entry = found.and_then(|mut file| file.entries.remove(&body.public_key));
            Ok(entry.filter(|entry| entry.signature == body.signature).map(drop))
        };
        Submitted::of(outcome, find).await.map(|done| done.answer)
    }

    /// Whether the proposal is gone with this signature.
    pub(crate) async fn submit_veto(
        &self,
        key: &SigningKey,
        body: &VetoBody,
    ) -> Result<Submitted<bool>, CliError> {
        let outcome = self.ask(key, ServerCall::Veto(body), VetoedResponse::parse).await;
        Submitted::of(outcome.map(|answer| answer.vetoed), self.find_veto(body)).await
    }

    /// A veto of the same proposal for another reason stops it as well.
    async fn find_veto(&self, body: &VetoBody) -> Result<Option<bool>, CliError> {
        let begun = layout::veto_of(&body.file_path);
        if let Some(found) = self.find_collected(&begun, &body.public_key, &body.signature).await? {
            return Ok(Some(found));
        }
        let Ok(document) = Veto::parse(body.veto_json.as_bytes()) else { return Ok(None) };
        let record = layout::veto_record(&document.project_id, &document.signers_file_digest);
        Ok(self.parsed(&record, Veto::parse).await?.map(|_| true))
    }

    /// What the server would have answered, if it has exactly this signature, or what was signed is complete without it.
    async fn find_submitted(&self, body: &SignaturesBody) -> Result<Option<SignedResponse>, CliError> {
        let SignaturesBody { file_path, public_key, signatures, .. } = body;
        let Some(signature) = signatures.get(file_path) else { return Ok(None) };
        if let Some(found) = self.find_collected(file_path, public_key, signature).await? {
            let agreement = self.parsed(&layout::agreement_of(file_path), Agreement::parse).await?;
            let waits_until = agreement.map(|agreement| agreement.due_at);
            return Ok(Some(SignedResponse { is_complete: found || waits_until.is_some(), waits_until }));
        }
        let is_signed = |text: &str| public_key.verify(&Sha512::of(text.as_bytes()), signature).is_ok();
        let is_complete = match layout::signable(file_path) {
            None => false,
            Some(Signable::Index) => {
                let signatures = layout::signatures_of(file_path);
                self.file(&signatures, FILE_BYTES).await?.is_some()
                    && self.document(file_path).await?.is_some_and(|text| is_signed(&text))
            }
            // If these signers are in force, a later file may be pending by now.
            Some(Signable::PendingSigners { .. }) => {
                let shown = self.state_at(file_path).await?;
                shown.history().entries.iter().any(|entry| is_signed(&entry.signers_config))
            }
        };
        Ok(is_complete.then_some(SignedResponse { is_complete: true, waits_until: None }))
    }

    /// Whether a signature is among the complete ones (true) or the collected ones (false).
    async fn find_collected(
        &self,
        file: &RepoPath,
        key: &PublicKey,
        signature: &Signature,
    ) -> Result<Option<bool>, CliError> {
        for (path, is_complete) in
            [(layout::signatures_of(file), true), (layout::pending_signatures_of(file), false)]
        {
            let set = self.parsed(&path, SignatureSet::parse).await?;
            let found = set.as_ref().and_then(|set| set.entries.get(key));
            if found.is_some_and(|found| found.signature == *signature) {
                return Ok(Some(is_complete));
            }
        }
        Ok(None)
    }
}
