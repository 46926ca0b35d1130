//! Fills a repository as years of use would: projects through the decisions, their old releases written directly.

use std::{collections::BTreeMap, sync::Arc};

use countersign_core::{
    auth::sign_request,
    decide::{Proposal, assets, register, sign},
    digest::{Sha256, Sha512},
    index::{AssetName, Digests, PublishedFile, ReleaseIndex},
    key::SecretKey,
    layout,
    metadata::{Origin, OriginKind},
    path::RepoPath,
    registration::SignedRequest,
    signatures::{Collected, SignatureSet},
    snapshot::{Change, Snapshot as _},
    time::Timestamp,
};
use countersign_server::{
    app::{self, App, Opened},
    clock::Clock,
    config::Settings,
    data_dir::DataDir,
    store::{Head, Store},
};
use tokio::task::JoinSet;

use crate::Failure;

const FILES_PER_RELEASE: usize = 3;
/// Projects that get the releases which are signed during the measurement.
const BUSY_PROJECTS: usize = 64;
const MAX_PROJECTS: usize = 1_000;
/// Releases of the signer whose list of pending files is measured; the same few at every size.
const IDLE_RELEASES: usize = 10;

pub(crate) struct Seeded {
    pub(crate) files: usize,
    pub(crate) projects: usize,
    /// Complete indexes, to be read.
    pub(crate) indexes: Vec<RepoPath>,
    pub(crate) signers: Arc<[SecretKey; 3]>,
    /// Has a few files to sign, and signs none.
    pub(crate) idle_signer: SecretKey,
}

/// About `files` files, nearly all of complete releases.
pub(crate) async fn seed(settings: &Settings, files: usize) -> Result<Seeded, Failure> {
    let data_dir = DataDir::lock(&settings.data_dir)?;
    let Opened { store, nonces } =
        app::open_repository(&data_dir, settings.author.clone(), &Clock::system())?;
    let store = Arc::new(store);
    let signers = Arc::new([1, 2, 3].map(|seed| SecretKey::from_seed(&[seed; 32])));
    let releases = files.div_ceil(FILES_PER_RELEASE);
    let projects = (releases / 30).clamp(1, MAX_PROJECTS);
    let mut indexes = Vec::with_capacity(releases);
    let mut tasks = JoinSet::new();
    for p in 0..projects {
        let (store, signers) = (Arc::clone(&store), Arc::clone(&signers));
        let count = releases / projects + usize::from(p < releases % projects);
        tasks.spawn(async move {
            let project = RepoPath::parse(&format!("https/dl.example.org/443/owner{p:04}/app"))?;
            activate_project(&store, &project, &signers[..], 2).await?;
            write_complete_releases(&store, &project, &signers[..2], count).await
        });
    }
    while let Some(done) = tasks.join_next().await {
        indexes.extend(done??);
    }
    indexes.sort();
    let idle_signer = SecretKey::from_seed(&[9; 32]);
    let idle = RepoPath::parse("https/dl.example.org/443/idle/app")?;
    activate_project(&store, &idle, std::slice::from_ref(&idle_signer), 1).await?;
    for i in 0..IDLE_RELEASES {
        add_release(&store, &idle, &format!("v{i}"), &idle_signer).await?;
    }
    let root = RepoPath::parse("https")?;
    let files = store.head().files_below(&root)?.len() + 1;
    drop((store, nonces));
    Ok(Seeded { files, projects, indexes, signers, idle_signer })
}

async fn activate_project(
    store: &Store,
    project: &RepoPath,
    signers: &[SecretKey],
    threshold: usize,
) -> Result<(), Failure> {
    let now = Clock::system().now().to_whole_seconds();
    let proposal = proposal(project, signers, threshold, now)?;
    let expiry = std::time::Duration::from_secs(1_000_000);
    store.transact(move |head| register::register(head, &proposal, expiry, now)).await??;
    let file = layout::pending_signers(project);
    for signer in signers {
        let head = store.head();
        let mut signatures = BTreeMap::new();
        for path in [file.clone(), layout::metadata_of(&file)] {
            let content = head.read(&path)?.ok_or("a proposal without its files")?;
            signatures.insert(path, signer.sign(&Sha512::of(&content)));
        }
        let submission = sign::Submission { file: file.clone(), signer: signer.public_key(), signatures };
        store.transact(move |head| sign::sign(head, &submission, now)).await??;
    }
    Ok(())
}

fn proposal(
    project: &RepoPath,
    signers: &[SecretKey],
    threshold: usize,
    now: Timestamp,
) -> Result<Proposal, Failure> {
    let listed: Vec<String> = signers
        .iter()
        .map(|key| format!(r#"{{"kind":"key","data":{{"pubkey":"{}"}}}}"#, key.public_key()))
        .collect();
    let listed = listed.join(",");
    let file = format!(
        r#"{{"version":1,"timestamp":"{now}","artifact_signers":[{{"threshold":{threshold},"signers":[{listed}]}}]}}"#
    );
    let url = format!("https://dl.example.org/{}/svc.signers.json", project.file_name());
    let (nonce, submitter) = ("00000000-0000-4000-8000-000000000000".to_owned(), &signers[0]);
    Ok(Proposal {
        project: project.clone(),
        signers_bytes: file.into_bytes().into(),
        origin: Origin {
            kind: OriginKind::FileServer,
            url: url.clone(),
            retrieval_url: url,
            retrieved_at: now,
        },
        submitter: submitter.public_key(),
        request: SignedRequest {
            timestamp: now.to_header(),
            payload: String::new(),
            public_key: submitter.public_key(),
            signature: sign_request(submitter, now, &nonce, b""),
            nonce,
        },
    })
}

async fn write_complete_releases(
    store: &Store,
    project: &RepoPath,
    signers: &[SecretKey],
    count: usize,
) -> Result<Vec<RepoPath>, Failure> {
    let now = Clock::system().now().to_whole_seconds();
    let active = layout::active_signers(project);
    let active = store.head().read(&active)?.ok_or("a project without signers")?;
    let mut change = Change::new(format!("Add {count} releases to {project}"));
    let mut indexes = Vec::with_capacity(count);
    for i in 0..count {
        let path = layout::index_in(&RepoPath::parse(&format!("{project}/v{i}"))?);
        let index = ReleaseIndex {
            project_id: project.clone(),
            release_url: None,
            mirrored_on: now,
            published_on: None,
            published_files: published_files(&path)?,
        };
        let content = index.write();
        let digest = Sha512::of(&content);
        let mut set = SignatureSet::default();
        for signer in signers {
            set.add(signer.public_key(), Collected { signature: signer.sign(&digest), collected_at: now });
        }
        change.write(layout::signers_copy_of(&path), active.clone());
        change.write(layout::signatures_of(&path), set.write());
        change.write(path.clone(), content);
        indexes.push(path);
    }
    store.transact(move |_: &Head| Ok::<_, Failure>((change.clone(), ()))).await??;
    Ok(indexes)
}

/// Indexes that collect, with their content, in projects of their own; many at once, to share rounds of fsync.
pub(crate) async fn add_collecting(
    app: &App,
    signers: &Arc<[SecretKey; 3]>,
    count: usize,
) -> Result<Vec<(RepoPath, Arc<[u8]>)>, Failure> {
    let mut tasks = JoinSet::new();
    for p in 0..BUSY_PROJECTS {
        let (app, signers) = (app.clone(), Arc::clone(signers));
        tasks.spawn(async move {
            let project = RepoPath::parse(&format!("https/dl.example.org/443/busy{p:04}/app"))?;
            activate_project(app.store(), &project, &signers[..], 2).await?;
            let mut added = Vec::new();
            for i in 0..count.div_ceil(BUSY_PROJECTS) {
                let path = add_release(app.store(), &project, &format!("v{i}"), &signers[0]).await?;
                let content = app.store().head().read(&path)?.ok_or("an index that is not there")?;
                added.push((path, content));
            }
            Ok::<_, Failure>(added)
        });
    }
    let mut collecting = Vec::with_capacity(count);
    while let Some(added) = tasks.join_next().await {
        collecting.extend(added??);
    }
    // Neighbours in time are then of different projects, as with many callers.
    collecting.sort_by_key(|(path, _)| Sha256::of(path.as_str().as_bytes()));
    Ok(collecting)
}

async fn add_release(
    store: &Store,
    project: &RepoPath,
    version: &str,
    caller: &SecretKey,
) -> Result<RepoPath, Failure> {
    let dir = RepoPath::parse(&format!("{project}/{version}"))?;
    let release = assets::Release {
        published_files: published_files(&layout::index_in(&dir))?,
        dir,
        release_url: None,
        published_on: None,
    };
    let (caller, now) = (caller.public_key(), Clock::system().now());
    let decide = move |head: &Head| assets::register_assets(head, &release, &caller, usize::MAX, now);
    Ok(store.transact(decide).await??)
}

fn published_files(index: &RepoPath) -> Result<Vec<PublishedFile>, Failure> {
    ["app.tar.gz", "app.zip"]
        .into_iter()
        .map(|name| {
            let source = format!("{index}/{name}");
            let digests = Digests { sha256: Some(Sha256::of(source.as_bytes())), sha512: None };
            Ok(PublishedFile { file_name: AssetName::parse(name)?, size: None, source, digests })
        })
        .collect()
}
