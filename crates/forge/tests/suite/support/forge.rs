//! A fake forge of each kind, with one release of two assets and one signers file.

use std::{sync::Arc, time::Duration};

use countersign_forge::fetch::{FetchError, Fetcher, Timeouts};
use countersign_forge::forges::{FetchedSigners, ForgeConfig, ForgeKind, Forges, Token};
use countersign_forge::release::{HashedAsset, ReleaseError, ReleaseMetadata};
use countersign_forge::{file_server::FileServers, guard::Guard, url::SourceUrl};

use super::{Answers, Routes, Server, reply};

pub(crate) const KINDS: [ForgeKind; 3] = [ForgeKind::Github, ForgeKind::Gitlab, ForgeKind::Forgejo];
pub(crate) const SECRET: &str = "s3cret-t0ken";
pub(crate) const SIGNERS: &str = "{\"version\": 1}";

pub(crate) fn config(host: &str, kind: ForgeKind) -> ForgeConfig {
    ForgeConfig { host: host.to_owned(), kind, api: None, raw: None, token: None }
}

/// A fake forge, and a server's view of it.
pub(crate) struct Fake {
    pub(crate) server: Server,
    pub(crate) kind: ForgeKind,
    pub(crate) forges: Forges,
    pub(crate) fetcher: Fetcher,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Access {
    Public,
    WithToken,
}

pub(crate) fn json(text: &str) -> String {
    let headers =
        format!("Content-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\n", text.len());
    reply("200 OK", &headers, text)
}

pub(crate) fn plain(text: &str) -> String {
    let headers = format!("Content-Type: text/plain\r\nContent-Length: {}\r\n", text.len());
    reply("200 OK", &headers, text)
}

pub(crate) fn redirect(to: &str) -> String {
    reply("302 Found", &format!("Location: {to}\r\nContent-Length: 0\r\n"), "")
}

pub(crate) fn document(kind: ForgeKind, port: u16) -> String {
    fixture_text(kind, &format!("http://127.0.0.1:{port}"))
}

/// What a forge at this address says of its release.
pub(crate) fn fixture_text(kind: ForgeKind, server: &str) -> String {
    let text = match kind {
        ForgeKind::Github => include_str!("../../fixtures/github.json"),
        ForgeKind::Gitlab => include_str!("../../fixtures/gitlab.json"),
        ForgeKind::Forgejo => include_str!("../../fixtures/forgejo.json"),
    };
    text.replace("{server}", server)
}

pub(crate) fn release_api(kind: ForgeKind) -> &'static str {
    match kind {
        ForgeKind::Github => "/api/v3/repos/acme/app/releases/tags/v1.0",
        ForgeKind::Gitlab => "/api/v4/projects/acme%2Fapp/releases/v1.0",
        ForgeKind::Forgejo => "/api/v1/repos/acme/app/releases/tags/v1.0",
    }
}

/// What the first asset is read from.
pub(crate) fn first_asset(kind: ForgeKind, access: Access) -> &'static str {
    match (kind, access) {
        (ForgeKind::Github, Access::WithToken) => "/api/v3/repos/acme/app/releases/assets/51",
        (ForgeKind::Gitlab, _) => "/acme/app/-/releases/v1.0/downloads/app-linux.tar.gz",
        (ForgeKind::Github | ForgeKind::Forgejo, _) => "/acme/app/releases/download/v1.0/app-linux.tar.gz",
    }
}

pub(crate) fn second_asset(kind: ForgeKind, access: Access) -> &'static str {
    match (kind, access) {
        (ForgeKind::Github, Access::WithToken) => "/api/v3/repos/acme/app/releases/assets/52",
        (ForgeKind::Github, Access::Public) => "/acme/app/releases/download/v1.0/app-old.zip",
        (ForgeKind::Gitlab, _) => "/files/app%20old.zip",
        (ForgeKind::Forgejo, _) => "/files/app-old.zip",
    }
}

/// The request for a signers file on a branch with a slash: through the API, with or without a token.
pub(crate) fn signers_request(kind: ForgeKind) -> &'static str {
    match kind {
        ForgeKind::Github => {
            "/api/v3/repos/acme/app/contents/svc.signers.json?ref=refs%2Fheads%2Frelease%2F1"
        }
        ForgeKind::Gitlab => {
            "/api/v4/projects/acme%2Fapp/repository/files/svc.signers.json/raw?ref=refs%2Fheads%2Frelease%2F1"
        }
        ForgeKind::Forgejo => "/api/v1/repos/acme/app/raw/svc.signers.json?ref=refs%2Fheads%2Frelease%2F1",
    }
}

/// The request for the signers file on the branch `main`, without a token.
pub(crate) fn raw_request(kind: ForgeKind) -> &'static str {
    match kind {
        ForgeKind::Github => "/acme/app/raw/refs/heads/main/svc.signers.json",
        ForgeKind::Gitlab => "/acme/app/-/raw/main/svc.signers.json?ref_type=heads",
        ForgeKind::Forgejo => "/acme/app/raw/branch/main/svc.signers.json",
    }
}

pub(crate) fn auth_header(kind: ForgeKind) -> String {
    match kind {
        ForgeKind::Github => format!("authorization: Bearer {SECRET}\r\n"),
        ForgeKind::Gitlab => format!("private-token: {SECRET}\r\n"),
        ForgeKind::Forgejo => format!("authorization: token {SECRET}\r\n"),
    }
}

const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    idle: Duration::from_millis(500),
    total: Duration::from_secs(5),
    pace: Duration::from_millis(700),
};

impl Fake {
    /// A forge with one release of two assets and one signers file, changed by the test.
    pub(crate) async fn start(kind: ForgeKind, access: Access, change: impl FnOnce(&mut Routes)) -> Self {
        let server = Server::start_with(|port| {
            let mut routes = Routes::from([
                (release_api(kind).to_owned(), json(&document(kind, port))),
                (first_asset(kind, access).to_owned(), plain("hello")),
                (second_asset(kind, access).to_owned(), plain("world")),
                (signers_request(kind).to_owned(), plain(SIGNERS)),
                (raw_request(kind).to_owned(), plain(SIGNERS)),
            ]);
            change(&mut routes);
            routes
        })
        .await;
        let token = (access == Access::WithToken).then(|| Token::new(SECRET.to_owned()).unwrap());
        let host = format!("127.0.0.1:{}", server.port);
        let forges = Forges::new(vec![ForgeConfig { token, ..config(&host, kind) }]).unwrap();
        let guard = Guard { allow: forges.exceptions(), ..Guard::default() };
        let answers = Answers::default().with("internal.example", &["127.0.0.1"]);
        let fetcher = Fetcher::new(guard, TIMEOUTS, Arc::new(answers)).unwrap();
        Self { server, kind, forges, fetcher }
    }

    /// Lets requests go to this place as well.
    pub(crate) fn allow(&mut self, place: &str) {
        let mut guard = Guard { allow: self.forges.exceptions(), ..Guard::default() };
        guard.allow.push(place.parse().unwrap());
        self.fetcher = Fetcher::new(guard, TIMEOUTS, Arc::new(Answers::default())).unwrap();
    }

    pub(crate) async fn with_first_asset(kind: ForgeKind, answer: String) -> Self {
        let access = Access::Public;
        Self::start(kind, access, |routes| drop(routes.insert(first_asset(kind, access).into(), answer)))
            .await
    }

    pub(crate) async fn with_release(kind: ForgeKind, answer: String) -> Self {
        Self::start(kind, Access::Public, |routes| drop(routes.insert(release_api(kind).into(), answer)))
            .await
    }

    pub(crate) async fn signers_at(&self, path: &str) -> Result<FetchedSigners, FetchError> {
        let url = SourceUrl::parse(&self.server.url(path)).unwrap();
        let source = self.forges.locate_signers(&url, &FileServers::default()).unwrap();
        self.fetcher.fetch_signers(&source, 1_000).await
    }

    /// Fetches the signers file of the branch `main`, up to this size.
    pub(crate) async fn signers_below(&self, max_bytes: u64) -> Result<FetchedSigners, FetchError> {
        let path = raw_request(self.kind).replace("/raw/", "/blob/").replace("?ref_type=heads", "");
        let url = SourceUrl::parse(&self.server.url(&path)).unwrap();
        let source = self.forges.locate_signers(&url, &FileServers::default()).unwrap();
        self.fetcher.fetch_signers(&source, max_bytes).await
    }

    pub(crate) async fn signers(&self) -> Result<FetchedSigners, FetchError> {
        self.signers_on("release/1").await
    }

    pub(crate) async fn signers_on(&self, branch: &str) -> Result<FetchedSigners, FetchError> {
        let dir = match self.kind {
            ForgeKind::Github => "blob",
            ForgeKind::Gitlab => "-/blob",
            ForgeKind::Forgejo => "src/branch",
        };
        self.signers_at(&format!("/acme/app/{dir}/{branch}/svc.signers.json")).await
    }

    pub(crate) async fn release(&self) -> Result<ReleaseMetadata, ReleaseError> {
        let page = match self.kind {
            ForgeKind::Github | ForgeKind::Forgejo => "/acme/app/releases/tag/v1.0",
            ForgeKind::Gitlab => "/acme/app/-/releases/v1.0",
        };
        let source = self.forges.locate_release(&self.server.url(page)).unwrap();
        self.fetcher.fetch_release(&source, 10).await
    }

    pub(crate) async fn hash_first(&self) -> Result<HashedAsset, ReleaseError> {
        self.hash_first_below(1_000_000).await
    }

    pub(crate) async fn hash_first_below(&self, max_bytes: u64) -> Result<HashedAsset, ReleaseError> {
        let metadata = self.release().await.unwrap();
        self.fetcher.hash_asset(&metadata.assets[0], max_bytes, &|_| {}).await
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.server.requests()
    }
}
