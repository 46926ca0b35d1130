//! `countersign verify`

use std::{fs::File, io::Read as _, path::Path};

use countersign_core::{
    documents::index::{AssetName, PublishedFile},
    proof::{bundle::Bundle, verify::VerifiedArtifact},
    values::{bounds::BUNDLE_BYTES, shown::shown_text},
};

use super::download::{listed, locate};
use crate::{
    args::VerifyArgs,
    download,
    error::CliError,
    evidence::{self, ShownEvidence},
    paths::shown_path,
    proof::{self, Network},
    report::Report,
    session::Session,
};

pub(crate) async fn run(session: &Session, args: &VerifyArgs) -> Result<(), CliError> {
    let digest = args.root.signers_digest;
    match (&args.url, &args.bundle) {
        (Some(url), _) => {
            let ShownEvidence { evidence, file_name } =
                evidence::gather(&session.client, &locate(url)?).await?;
            let accepted = proof::accept(&evidence, digest, Network::Online).await?;
            let file = listed(&accepted.artifact, file_name.as_str())?;
            let size = download::check_local(&args.file, file, session.output)?;
            Report { accepted: &accepted, file, size, path: &args.file, bundled_at: None }
                .show(session.output)
        }
        (None, Some(path)) => {
            // A file that is not there is no failed verification.
            File::open(&args.file).map_err(|error| CliError::file("read", &args.file, error))?;
            let bundle = read_bundle(path)?;
            let accepted = proof::accept(&bundle.evidence, digest, Network::Offline).await?;
            let file = find_by_name(&accepted.artifact, &args.file)?;
            let size = download::check_local(&args.file, file, session.output)?;
            let bundled_at = Some(bundle.bundled_at.to_string());
            Report { accepted: &accepted, file, size, path: &args.file, bundled_at }.show(session.output)
        }
        (None, None) => {
            Err(CliError::usage("nothing to verify against", "pass --url URL, or --bundle BUNDLE"))
        }
    }
}

fn read_bundle(path: &Path) -> Result<Bundle, CliError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BUNDLE_BYTES as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| CliError::file("read", path, error))?;
    let unusable = |reason: String| {
        let message = format!("{} is not a bundle", shown_path(path));
        CliError::unverified(message, "make one with `countersign bundle URL -o FILE`").because(reason)
    };
    Bundle::parse(&bytes).map_err(|error| unusable(error.to_string()))
}

/// The listed file that a local one claims to be, by its name; or by what it is, if it was renamed.
fn find_by_name<'a>(artifact: &'a VerifiedArtifact, path: &Path) -> Result<&'a PublishedFile, CliError> {
    let files = &artifact.index.published_files;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let last = |name: &AssetName| name.as_str().rsplit('/').next().map(str::to_owned);
    let mut same_name = files.iter().filter(|file| last(&file.file_name).as_deref() == Some(name));
    if let (Some(file), None) = (same_name.next(), same_name.next()) {
        return Ok(file);
    }
    let quiet = crate::output::Output::silent();
    let found = files.iter().find(|file| download::check_local(path, file, quiet).is_ok());
    found.ok_or_else(|| {
        let names: Vec<&str> = files.iter().take(10).map(|file| file.file_name.as_str()).collect();
        CliError::unverified(
            format!("{} is not a file of the release in the bundle", shown_path(path)),
            format!("the bundle is for {}", shown_text(&names.join(", "))),
        )
    })
}
