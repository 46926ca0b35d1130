//! Signing for other programs in the same act (D100–D102).

use std::collections::BTreeSet;

use countersign_api::requests::SignaturesBody;
use countersign_core::documents::other_formats::{FormatTexts, OtherFormatsFile};
use countersign_core::proof::to_sign::{FormatsToSign, Subject, ToSign};
use countersign_core::{documents::layout, values::other_format::OtherFormat};

use crate::{args::SignArgs, client::ServerClient, error::CliError, keys::SigningKey, session::Session};

/// The formats of one release, and what is signed in them.
pub(super) struct FormatChoice<'a> {
    pub(super) formats: BTreeSet<OtherFormat>,
    to_sign: Option<FormatsToSign<'a>>,
}

impl<'a> FormatChoice<'a> {
    /// What the signers file in force asks for, and what --also names. Signers files are signed in no other format.
    pub(super) fn of(session: &Session, args: &SignArgs, to_sign: &'a ToSign) -> Result<Self, CliError> {
        let none = Self { formats: BTreeSet::new(), to_sign: None };
        if args.no_formats || matches!(to_sign.subject, Subject::Proposal { .. }) {
            return Ok(none);
        }
        let formats: BTreeSet<OtherFormat> =
            to_sign.asked_formats().iter().chain(&args.also).copied().collect();
        if formats.is_empty() {
            return Ok(none);
        }
        match to_sign.formats() {
            Ok(found) => Ok(Self { formats, to_sign: Some(found) }),
            Err(error) if !args.also.is_empty() => Err(CliError::other(
                format!("{} cannot be signed in other formats", to_sign.path()),
                "leave out --also",
            )
            .because(error)),
            // The server does not require what the signers file asks for.
            Err(error) => {
                session.output.note(&format!("Signing in no other format: {error}."));
                Ok(none)
            }
        }
    }

    pub(super) fn sign(&self, key: &SigningKey) -> Result<FormatTexts, CliError> {
        let Some(to_sign) = &self.to_sign else { return Ok(FormatTexts::new()) };
        let you = key.public_key();
        let sign = |format: &OtherFormat| {
            Ok((*format, to_sign.sign(*format, &you, |message| key.sign_message(message))?))
        };
        self.formats.iter().map(sign).collect()
    }
}

/// The formats of this submission that the server has now. An older server ignores them, and the user is told.
pub(super) async fn check_stored(
    session: &Session,
    client: &ServerClient,
    body: &SignaturesBody,
) -> Vec<OtherFormat> {
    if body.other_formats.is_empty() {
        return Vec::new();
    }
    let path = layout::other_formats_of(&body.file_path);
    let stored = client.parsed(&path, OtherFormatsFile::parse).await.ok().flatten().unwrap_or_default();
    if stored.entries.get(&body.public_key) == Some(&body.other_formats) {
        return body.other_formats.keys().copied().collect();
    }
    session.output.show(&format!(
        "warning: the server {} does not show your signatures in other formats; your own signature counts all the same",
        client.address()
    ));
    Vec::new()
}
