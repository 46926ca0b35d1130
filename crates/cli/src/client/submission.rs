//! Signatures that are submitted: once, however often the request had to be sent (D63).

use countersign_api::{
    answers::{ChangedResponse, RevokedResponse, SignedResponse, VetoedResponse},
    requests::{ObjectBody, RevokeBody, SignaturesBody, VetoBody, WithdrawBody},
};
use countersign_core::{
    documents::{
        agreement::Agreement,
        layout::{self, Signable},
        objections::ObjectionsFile,
        signatures::SignatureSet,
        veto::Veto,
        withdrawal::Withdrawal,
    },
    values::{
        key::{PublicKey, Signature},
        path::RepoPath,
    },
};

use super::{Attempts, ServerCall, ServerClient};
use crate::{error::CliError, keys::SigningKey};

impl ServerClient {
    /// Whether the file is complete with this signature, and whether it waits then.
    pub(crate) async fn submit_signatures(
        &self,
        key: &SigningKey,
        body: &SignaturesBody,
    ) -> Result<SignedResponse, CliError> {
        let mut attempts = Attempts::default();
        let call = ServerCall::Signatures(body);
        match self.ask_counting(key, call, SignedResponse::parse, &mut attempts).await {
            Ok(answer) => Ok(answer),
            // An earlier try may have been taken although its answer was lost.
            Err(error) if attempts.was_repeated() => {
                self.find_submitted(body).await.ok().flatten().ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the revocation is in force with this signature.
    pub(crate) async fn submit_revocation(
        &self,
        key: &SigningKey,
        body: &RevokeBody,
    ) -> Result<bool, CliError> {
        let mut attempts = Attempts::default();
        let call = ServerCall::Revoke(body);
        match self.ask_counting(key, call, RevokedResponse::parse, &mut attempts).await {
            Ok(answer) => Ok(answer.revoked),
            Err(error) if attempts.was_repeated() => {
                let document = layout::revocation_of(&body.file_path);
                self.find_collected(&document, &body.public_key, &body.signature)
                    .await
                    .ok()
                    .flatten()
                    .ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn submit_withdrawal(
        &self,
        key: &SigningKey,
        body: &WithdrawBody,
    ) -> Result<(), CliError> {
        let mut attempts = Attempts::default();
        let call = ServerCall::Withdraw(body);
        match self.ask_counting(key, call, ChangedResponse::parse, &mut attempts).await {
            Ok(_) => Ok(()),
            Err(error) if attempts.was_repeated() => {
                let found = self.parsed(&layout::withdrawal_of(&body.file_path), Withdrawal::parse).await;
                let is_mine =
                    |found: &Withdrawal| found.body == *body && found.request.public_key == key.public_key();
                found.ok().flatten().filter(is_mine).map(drop).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn submit_objection(&self, key: &SigningKey, body: &ObjectBody) -> Result<(), CliError> {
        let mut attempts = Attempts::default();
        let call = ServerCall::Object(body);
        match self.ask_counting(key, call, ChangedResponse::parse, &mut attempts).await {
            Ok(_) => Ok(()),
            Err(error) if attempts.was_repeated() => {
                let found = self.parsed(&layout::objections_of(&body.file_path), ObjectionsFile::parse).await;
                let entry = found.ok().flatten().and_then(|mut file| file.entries.remove(&body.public_key));
                entry.filter(|entry| entry.signature == body.signature).map(drop).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the proposal is gone with this signature.
    pub(crate) async fn submit_veto(&self, key: &SigningKey, body: &VetoBody) -> Result<bool, CliError> {
        let mut attempts = Attempts::default();
        match self.ask_counting(key, ServerCall::Veto(body), VetoedResponse::parse, &mut attempts).await {
            Ok(answer) => Ok(answer.vetoed),
            Err(error) if attempts.was_repeated() => self.find_veto(body).await.ok().flatten().ok_or(error),
            Err(error) => Err(error),
        }
    }

    async fn find_veto(&self, body: &VetoBody) -> Result<Option<bool>, CliError> {
        let begun = layout::veto_of(&body.file_path);
        if let Some(found) = self.find_collected(&begun, &body.public_key, &body.signature).await? {
            return Ok(Some(found));
        }
        let Ok(document) = Veto::parse(body.veto_json.as_bytes()) else { return Ok(None) };
        let record = layout::veto_record(&document.project_id, &document.signers_file_digest);
        self.find_collected(&record, &body.public_key, &body.signature).await
    }

    /// What the server would have answered, if it has exactly this signature.
    pub(crate) async fn find_submitted(
        &self,
        body: &SignaturesBody,
    ) -> Result<Option<SignedResponse>, CliError> {
        let SignaturesBody { file_path, public_key, signatures, .. } = body;
        let Some(signature) = signatures.get(file_path) else { return Ok(None) };
        if let Some(found) = self.find_collected(file_path, public_key, signature).await? {
            let agreement = self.parsed(&layout::agreement_of(file_path), Agreement::parse).await?;
            let waits_until = agreement.map(|agreement| agreement.due_at);
            return Ok(Some(SignedResponse { is_complete: found || waits_until.is_some(), waits_until }));
        }
        let Some(Signable::PendingSigners { project }) = layout::signable(file_path) else { return Ok(None) };
        let history = self.history(&project).await?;
        // If this signature completed it, it is the newest.
        let last = history.entries.last().and_then(|entry| entry.signatures.entries.get(public_key));
        let is_last = last.is_some_and(|last| last.signature == *signature);
        Ok(is_last.then_some(SignedResponse { is_complete: true, waits_until: None }))
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
