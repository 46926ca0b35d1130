//! Forges as a server is configured to read them.

use countersign_forge::forges::{ForgeConfig, ForgeKind, Forges, ReleaseSource, SignersSource, Token};
use countersign_forge::{file_server::FileServers, url::SourceUrl, url::UrlProblem};

use crate::support::{forge::config, problem_of};

mod claimed;
mod configured;
mod fetched;
mod signers;
mod tokens;

fn token(text: &str) -> Option<Token> {
    Some(Token::new(text.to_owned()).unwrap())
}

fn configured() -> Vec<ForgeConfig> {
    vec![
        config("hub.example", ForgeKind::Github),
        ForgeConfig {
            raw: Some("https://raw.ghe.example".into()),
            ..config("ghe.example", ForgeKind::Github)
        },
        config("lab.example", ForgeKind::Gitlab),
        ForgeConfig { raw: Some("http://10.0.0.7/raw".into()), ..config("inner.example", ForgeKind::Github) },
        config("127.0.0.1:3000", ForgeKind::Forgejo),
        ForgeConfig {
            raw: Some("http://127.0.0.1:3001/raw/".into()),
            ..config("127.0.0.1:3001", ForgeKind::Github)
        },
    ]
}

fn with_tokens() -> Forges {
    let tokens = |host, kind| ForgeConfig { token: token("s3cret"), ..config(host, kind) };
    Forges::new(vec![
        tokens("github.com", ForgeKind::Github),
        ForgeConfig {
            api: Some("https://api.lab.example/v4/".into()),
            ..tokens("lab.example", ForgeKind::Gitlab)
        },
        tokens("127.0.0.1:3000", ForgeKind::Forgejo),
        tokens("git.example", ForgeKind::Forgejo),
    ])
    .unwrap()
}

fn signers_of(forges: &Forges, url: &str) -> Result<SignersSource, UrlProblem> {
    let url = SourceUrl::parse(url).map_err(problem_of)?;
    forges.locate_signers(&url, &FileServers::default()).map_err(problem_of)
}

fn signers(url: &str) -> Result<SignersSource, UrlProblem> {
    signers_of(&Forges::new(configured()).unwrap(), url)
}

fn release(url: &str) -> Result<ReleaseSource, UrlProblem> {
    Forges::new(configured()).unwrap().locate_release(url).map_err(problem_of)
}

/// The last way to ask for each candidate; `a_directory_is_never_…` looks at what comes before.
fn requests(source: &SignersSource) -> Vec<&str> {
    source.retrievals.iter().map(|ways| ways.last().unwrap().request.url.as_str()).collect()
}
