//! `countersign status`: from what the server shows to everybody, so that it needs no key.

mod standing;
mod wait;

use countersign_core::documents::layout::{self, Signable};

use self::standing::{index_status, not_pending, proposal_status};
use crate::{args::StatusArgs, error::CliError, session::Session};

pub(crate) async fn run(session: &Session, args: &StatusArgs) -> Result<(), CliError> {
    let path = &args.path;
    let subject = layout::signable(path).ok_or_else(|| {
        CliError::usage(
            format!("{path} collects no signatures"),
            "give the path of an index (…/svc.index.json) or of a pending signers file",
        )
    })?;
    if args.wait {
        return wait::run(session, path, &subject, args.timeout).await;
    }
    let status = match &subject {
        Signable::Index => index_status(&session.client, path).await?,
        Signable::PendingSigners { project } => {
            let status = proposal_status(&session.client, path, project).await?;
            status.ok_or_else(|| not_pending(path))?
        }
    };
    session.output.answer(&status.text(path, session.output), &status.json(path))
}
