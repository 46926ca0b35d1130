//! Where a token is sent, over real sockets of this machine: for its own project alone.

use countersign_core::values::digest::Sha256;
use countersign_forge::{fetch::FetchError, forges::ForgeKind, release::ReleaseError};
use tokio::{io::AsyncReadExt as _, io::AsyncWriteExt as _, net::TcpListener};

use crate::support::forge::{
    Access, Fake, KINDS, SECRET, auth_header, first_asset, json, plain, redirect, release_api,
    signers_request,
};
use crate::support::{Routes, Server, reply};

#[tokio::test]
async fn the_token_stays_with_the_api_when_an_asset_is_elsewhere() {
    for kind in KINDS {
        let storage = Server::start().await;
        let there = redirect(&storage.url("/ok?signature=x"));
        let change =
            |routes: &mut Routes| drop(routes.insert(first_asset(kind, Access::WithToken).into(), there));
        let mut fake = Fake::start(kind, Access::WithToken, change).await;
        fake.allow(&format!("127.0.0.1:{}", storage.port));
        assert_eq!(fake.hash_first().await.unwrap().sha256, Sha256::of(b"hello"));
        let [head] = storage.requests().try_into().unwrap();
        assert!(!head.contains(SECRET), "{head}");
        let lowered = head.to_ascii_lowercase();
        assert!(!lowered.contains("authorization:") && !lowered.contains("private-token:"), "{head}");
    }
}

#[tokio::test]
async fn the_token_does_not_come_back_with_a_redirect_that_had_left() {
    for kind in KINDS {
        let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let away = redirect(&format!("http://{}/", elsewhere.local_addr().unwrap()));
        let change = |routes: &mut Routes| {
            routes.insert(first_asset(kind, Access::WithToken).into(), away);
            routes.insert("/private".into(), plain("hello"));
        };
        let mut fake = Fake::start(kind, Access::WithToken, change).await;
        fake.allow("127.0.0.1:*");
        let back = redirect(&fake.server.url("/private"));
        tokio::spawn(async move {
            let (mut stream, _) = elsewhere.accept().await.unwrap();
            assert!(stream.read(&mut [0; 4_096]).await.unwrap() > 0);
            stream.write_all(back.as_bytes()).await.unwrap();
        });
        assert_eq!(fake.hash_first().await.unwrap().sha256, Sha256::of(b"hello"));
        let heads = fake.heads();
        let private = heads.iter().find(|head| head.starts_with("GET /private ")).unwrap();
        assert!(!private.contains(SECRET), "{private}");
    }
}

/// What lies on the forge's own origin, though not in the project's own path, is fetched as a stranger would.
#[tokio::test]
async fn the_token_stays_in_the_projects_own_path() {
    for kind in KINDS {
        let api = release_api(kind).split("acme").next().unwrap();
        let own = match kind {
            ForgeKind::Github | ForgeKind::Forgejo => format!("{api}acme/app"),
            ForgeKind::Gitlab => format!("{api}acme%2Fapp"),
        };
        let outside = [
            "/acme/secret/x".to_owned(),
            "/acme/apps/x".to_owned(),
            "/acme/x".to_owned(),
            "/x".to_owned(),
            "/acme/app/%2e%2e%2fsecret/x".to_owned(),
            "/acme/app/..%2Fsecret/x".to_owned(),
            "/acme/app/..%5Csecret/x".to_owned(),
            "/acme/app/%252e%252e%252fsecret/x".to_owned(),
            "/acme%2Fapp/x".to_owned(),
            own.replace("app", "secret") + "/x",
            format!("{own}s/x"),
            format!("{own}%2F..%2Fsecret/x"),
            format!("{api}42/x"),
            "/api/x".to_owned(),
        ];
        let inside = ["/acme/app/x".to_owned(), "/Acme/APP/-/x%20y".to_owned(), format!("{own}/packages/x")];
        let fake = Fake::start(kind, Access::WithToken, |_| {}).await;
        let usual = fake.server.routes();
        for (target, is_own) in outside.iter().map(|at| (at, false)).chain(inside.iter().map(|at| (at, true)))
        {
            // As a link of the forge's document, and as the end of a redirect from the project's own path.
            for is_redirect in [false, true] {
                let link = first_asset(kind, Access::WithToken);
                let mut routes = usual.clone();
                routes.insert(target.clone(), plain("hello"));
                if is_redirect {
                    routes.insert(link.into(), redirect(target));
                } else {
                    let page = first_asset(kind, Access::Public);
                    let document = routes[release_api(kind)].replace(link, target).replace(page, target);
                    let body = document.split_once("\r\n\r\n").unwrap().1.to_owned();
                    routes.insert(release_api(kind).into(), json(&body));
                }
                fake.server.reset(routes);
                if let Err(error) = fake.hash_first().await {
                    // A name that is not safe is refused as well, before anything is fetched.
                    assert!(
                        !is_own && matches!(error, ReleaseError::Refused { .. }),
                        "{kind:?} {target}: {error}"
                    );
                    continue;
                }
                let heads = fake.heads();
                let head = heads.iter().find(|head| head.starts_with(&format!("GET {target} ")));
                let head = head.unwrap();
                assert_eq!(head.contains(&auth_header(kind)), is_own, "{kind:?}, {is_redirect}: {head}");
                assert_eq!(head.contains(SECRET), is_own, "{head}");
            }
        }
    }
}

/// Packages are linked by the number of their project, and only GitLab knows whose it is.
#[tokio::test]
async fn gitlabs_own_number_of_the_project_is_its_own_path_too() {
    let kind = ForgeKind::Gitlab;
    for (number, described) in
        [(42, Some("{\"id\": 42}")), (43, Some("{\"id\": 42}")), (42, Some("{\"id\": \"42\"}")), (42, None)]
    {
        let target = format!("/api/v4/projects/{number}/packages/generic/app/1.0/app-linux.tar.gz");
        let fake = Fake::start(kind, Access::WithToken, |routes| {
            let link = first_asset(kind, Access::WithToken);
            let document = routes[release_api(kind)].replace(link, &target);
            let body = document.split_once("\r\n\r\n").unwrap().1.to_owned();
            routes.insert(release_api(kind).into(), json(&body));
            routes.insert(target.clone(), plain("hello"));
            if let Some(described) = described {
                routes.insert("/api/v4/projects/acme%2Fapp".into(), json(described));
            }
        })
        .await;
        fake.hash_first().await.unwrap();
        let heads = fake.heads();
        let head = heads.iter().find(|head| head.starts_with(&format!("GET {target} "))).unwrap();
        let is_own = number == 42 && described == Some("{\"id\": 42}");
        assert_eq!(head.contains(&auth_header(kind)), is_own, "{described:?}: {head}");
    }
}

#[tokio::test]
async fn the_token_does_not_follow_a_redirect_of_the_api_itself() {
    for kind in KINDS {
        let other = Server::start().await;
        let away = redirect(&other.url("/ok"));
        let change = |routes: &mut Routes| {
            routes.insert(release_api(kind).into(), away.clone());
            routes.insert(signers_request(kind).into(), away);
        };
        let fake = Fake::start(kind, Access::WithToken, change).await;
        let (release, signers) = (fake.release().await.unwrap_err(), fake.signers().await.unwrap_err());
        assert!(other.requests().is_empty());
        let texts = format!("{release} {release:?} {signers} {signers:?} {:?}", fake.forges);
        assert!(!texts.contains(SECRET), "{texts}");
    }
}

#[tokio::test]
async fn a_token_that_the_forge_refuses_is_the_operators_to_mend() {
    for kind in KINDS {
        for status in ["401 Unauthorized", "403 Forbidden"] {
            let change = |routes: &mut Routes| {
                let denied = reply(status, "Content-Length: 0\r\n", "");
                routes.insert(release_api(kind).into(), denied.clone());
                routes.insert(signers_request(kind).into(), denied);
            };
            let fake = Fake::start(kind, Access::WithToken, change).await;
            let (release, signers) = (fake.release().await.unwrap_err(), fake.signers().await.unwrap_err());
            assert!(matches!(signers, FetchError::TokenRefused { .. }), "{signers}");
            assert!(matches!(release, ReleaseError::Fetch(FetchError::TokenRefused { .. })), "{release}");
            assert!(!format!("{release} {signers:?}").contains(SECRET));
        }
    }
}
