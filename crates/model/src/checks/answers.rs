//! A server's answers as its client reads them.

use countersign_api::{
    answers::{
        AssetsResponse, ChainResponse, ErrorResponse, FilesToSignResponse, PendingResponse, PingResponse,
        ProposedResponse, RevokedResponse, SignedResponse,
    },
    catalogue::{KeyPendingResponse, KeyResponse, KeySignedResponse, ProjectsResponse, ReleasesResponse},
};

use super::{
    history::check_chain,
    promises::{assert_no_duplicates, assert_path, assert_shown},
};

pub fn check(data: &[u8]) {
    let accepted = [
        ProposedResponse::parse(data)
            .inspect_err(assert_shown)
            .inspect(|proposed| assert_path(&proposed.project_id))
            .is_ok(),
        SignedResponse::parse(data).inspect_err(assert_shown).is_ok(),
        FilesToSignResponse::parse(data)
            .inspect_err(assert_shown)
            .inspect(|answer| answer.files.keys().for_each(assert_path))
            .is_ok(),
        ChainResponse::parse(data)
            .inspect_err(assert_shown)
            .inspect(|chain| check_chain(&chain.history))
            .is_ok(),
        PendingResponse::parse(data)
            .inspect_err(assert_shown)
            .inspect(|waiting| waiting.file_paths.iter().for_each(assert_path))
            .is_ok(),
        AssetsResponse::parse(data)
            .inspect_err(assert_shown)
            .inspect(|answer| assert_path(&answer.index_file_path))
            .is_ok(),
        ReleasesResponse::parse(data)
            .inspect_err(assert_shown)
            .inspect(|answer| answer.releases.iter().for_each(|release| assert_path(&release.index_path)))
            .is_ok(),
        ProjectsResponse::parse(data)
            .inspect_err(assert_shown)
            .inspect(|answer| answer.projects.iter().for_each(assert_path))
            .is_ok(),
        KeyResponse::parse(data).inspect_err(assert_shown).is_ok(),
        KeySignedResponse::parse(data).inspect_err(assert_shown).is_ok(),
        KeyPendingResponse::parse(data)
            .inspect_err(assert_shown)
            .inspect(|answer| answer.pending.iter().for_each(|waiting| assert_path(&waiting.file_path)))
            .is_ok(),
        RevokedResponse::parse(data).inspect_err(assert_shown).is_ok(),
        PingResponse::parse(data).inspect_err(assert_shown).is_ok(),
        ErrorResponse::parse(data).is_some(),
    ];
    if accepted.contains(&true) {
        assert_no_duplicates(data);
    }
}
