//! `countersign status`: from what the server shows to everybody, so that it needs no key.

mod standing;
mod wait;

use countersign_core::documents::layout::{self, Signable};

use self::standing::{index_status, not_pending, proposal_status};
use crate::{
    args::StatusArgs,
    error::{CliError, ErrorKind},
    release_names::ReleaseName,
    session::{Reader, Session},
    targets::Target,
};

pub(crate) async fn run(session: &Session, args: &StatusArgs) -> Result<(), CliError> {
    let name = ReleaseName::parse_one(&args.names)?;
    let target = session.find_signable(&name, Reader::Signer).await?;
    let Target { client, path } = &target;
    let subject = layout::signable(path).ok_or_else(|| {
        CliError::usage(
            format!("{path} collects no signatures"),
            "name a release, or a project whose signers file is pending",
        )
    })?;
    if args.wait {
        let waited = wait::run(session, &target, &subject, args.timeout).await;
        let state = match &waited {
            Ok(()) => "complete",
            Err(error) if error.kind() == ErrorKind::TimedOut => "waiting",
            Err(_) => return waited,
        };
        args.outputs.append(&[("INDEX", path.as_str()), ("STATE", state)])?;
        return waited;
    }
    let status = match &subject {
        Signable::Index => index_status(client, path).await?,
        Signable::PendingSigners { project } => {
            let status = proposal_status(client, path, project).await?;
            status.ok_or_else(|| not_pending(path))?
        }
    };
    args.outputs.append(&[("INDEX", path.as_str()), ("STATE", status.state.name())])?;
    let name = session.name_of(path, None);
    let you = if session.has_key() { session.public_key().ok() } else { None };
    session.output.answer(&status.text(&name, you, session.output), &status.json(path))
}
