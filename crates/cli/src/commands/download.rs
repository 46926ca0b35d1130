//! `countersign download`

use countersign_core::{
    documents::index::PublishedFile, proof::verify::VerifiedArtifact, values::shown::shown_text,
};
use countersign_forge::download_url::{DownloadPlace, locate_download};

use crate::{
    args::DownloadArgs,
    download::{self, WantedFile},
    error::CliError,
    evidence::{self, ShownEvidence},
    proof::{self, Network},
    report::Report,
    session::Session,
};

pub(crate) async fn run(session: &Session, args: &DownloadArgs) -> Result<(), CliError> {
    let place = locate(&args.url)?;
    let ShownEvidence { evidence, file_name } = evidence::gather(&session.client, &place).await?;
    let accepted = proof::accept(&evidence, args.root.signers_digest, Network::Online).await?;
    let file = listed(&accepted.artifact, file_name.as_str())?;
    let target = download::choose_target(args.output.as_deref(), file)?;
    let max_bytes = file.size.unwrap_or(args.max_size);
    let wanted = WantedFile { url: &place.url, file, max_bytes, target: &target };
    let work = download::download(&wanted, session.output);
    let size = tokio::select! {
        size = work => size?,
        // The temporary file is removed on the way out.
        _ = super::serve::wait_for_signal() => {
            return Err(CliError::other("the download was interrupted", "nothing was kept: run it again"));
        }
    };
    Report { accepted: &accepted, file, size, path: &target, bundled_at: None }.show(session.output)
}

pub(crate) fn locate(url: &str) -> Result<DownloadPlace, CliError> {
    locate_download(url).map_err(|error| {
        CliError::usage(
            error.to_string(),
            "give the URL of a file, as on the forge's release page or file server",
        )
    })
}

pub(crate) fn listed<'a>(artifact: &'a VerifiedArtifact, name: &str) -> Result<&'a PublishedFile, CliError> {
    artifact.file(name).ok_or_else(|| {
        CliError::unverified(
            format!("{} does not list {}", artifact.path, shown_text(name)),
            "it is not a file of this release",
        )
    })
}
