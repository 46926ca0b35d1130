//! Releases as the forges' public APIs describe them.

use countersign_core::values::digest::Sha256;
use serde_json::{Value, json};

use super::{Asset, FakeForge, Kind};

impl FakeForge {
    /// What the kind's API says about a release.
    pub(crate) fn document(&self, repository: &str, tag: &str, assets: &[Asset]) -> Value {
        match self.kind {
            Kind::GitHub => self.github_document(repository, tag, assets),
            Kind::GitLab => self.gitlab_document(repository, tag, assets),
            Kind::Forgejo => self.forgejo_document(repository, tag, assets),
        }
    }

    fn github_document(&self, repository: &str, tag: &str, assets: &[Asset]) -> Value {
        let api = self.api_url(&format!("/repos/{repository}"));
        let user = json!({
            "login": "octocat", "id": 1, "node_id": "MDQ6VXNlcjE=", "type": "User", "site_admin": false,
            "avatar_url": self.url("/avatars/u/1?v=4"), "url": self.api_url("/users/octocat"),
        });
        let assets: Vec<_> = assets
            .iter()
            .enumerate()
            .map(|(position, asset)| {
                json!({
                    "url": format!("{api}/releases/assets/{}", position + 1),
                    "id": position + 1,
                    "node_id": "RA_kwDOAAAAAc4AAAAB",
                    "name": asset.name,
                    "label": "",
                    "uploader": user,
                    "content_type": "application/octet-stream",
                    "state": "uploaded",
                    "size": asset.bytes.len(),
                    "digest": format!("sha256:{}", Sha256::of(&asset.bytes)),
                    "download_count": 42,
                    "created_at": "2026-01-20T07:58:00Z",
                    "updated_at": "2026-01-20T07:59:00Z",
                    "browser_download_url": self.url(&self.asset_target(repository, tag, &asset.name)),
                })
            })
            .collect();
        json!({
            "url": format!("{api}/releases/1"),
            "assets_url": format!("{api}/releases/1/assets"),
            "upload_url": format!("{api}/releases/1/assets{{?name,label}}"),
            "html_url": self.release_url(repository, tag),
            "id": 1,
            "author": user,
            "node_id": "MDc6UmVsZWFzZTE=",
            "tag_name": tag,
            "target_commitish": "main",
            "name": format!("Release {tag}"),
            "draft": false,
            "immutable": false,
            "prerelease": false,
            "created_at": "2026-01-19T10:00:00Z",
            "updated_at": "2026-01-20T08:00:01Z",
            "published_at": "2026-01-20T08:00:00Z",
            "assets": assets,
            "tarball_url": format!("{api}/tarball/{tag}"),
            "zipball_url": format!("{api}/zipball/{tag}"),
            "body": "What's new\r\n* everything",
        })
    }

    fn gitlab_document(&self, repository: &str, tag: &str, assets: &[Asset]) -> Value {
        let page = self.url(&format!("/{repository}"));
        let links: Vec<_> = assets
            .iter()
            .enumerate()
            .map(|(position, asset)| {
                let direct = self.url(&self.asset_target(repository, tag, &asset.name));
                json!({
                    "id": position + 1,
                    "name": format!("Download {}", position + 1),
                    "url": direct,
                    "direct_asset_url": direct,
                    "link_type": "package",
                })
            })
            .collect();
        let sources: Vec<_> = ["zip", "tar.gz", "tar.bz2", "tar"]
            .iter()
            .map(|format| json!({ "format": format, "url": format!("{page}/-/archive/{tag}/app-{tag}.{format}") }))
            .collect();
        json!({
            "name": format!("Release {tag}"),
            "tag_name": tag,
            "description": "What's new",
            "created_at": "2026-01-19T10:00:00.123Z",
            "released_at": "2026-01-20T08:00:00.000Z",
            "upcoming_release": false,
            "author": {
                "id": 1, "username": "root", "public_email": null, "name": "Administrator", "state": "active",
                "locked": false, "avatar_url": null, "web_url": self.url("/root"),
            },
            "commit": {
                "id": "f8d3d94cbd347e924aa7b715845e439d00e80ca4", "short_id": "f8d3d94c",
                "created_at": "2026-01-19T09:00:00.000+00:00", "parent_ids": [], "title": "Initial commit",
                "message": "Initial commit", "author_name": "Administrator", "author_email": "a@example.com",
            },
            "commit_path": format!("/{repository}/-/commit/f8d3d94cbd347e924aa7b715845e439d00e80ca4"),
            "tag_path": format!("/{repository}/-/tags/{tag}"),
            "milestones": [],
            "assets": { "count": links.len() + sources.len(), "sources": sources, "links": links },
            "evidences": [{
                "sha": "760d6cdfb0879c3ffedec13af470e0f71cf52c6cde4d",
                "filepath": format!("{page}/-/releases/{tag}/evidences/1.json"),
                "collected_at": "2026-01-20T08:00:05.000Z",
            }],
            "_links": {
                "closed_issues_url": format!("{page}/-/issues?release_tag={tag}&scope=all&state=closed"),
                "self": self.release_url(repository, tag),
            },
        })
    }

    fn forgejo_document(&self, repository: &str, tag: &str, assets: &[Asset]) -> Value {
        let page = self.url(&format!("/{repository}"));
        let assets: Vec<_> = assets
            .iter()
            .enumerate()
            .map(|(position, asset)| {
                json!({
                    "id": position + 1,
                    "name": asset.name,
                    "size": asset.bytes.len(),
                    "download_count": 7,
                    "created_at": "2026-01-20T08:59:00+01:00",
                    "uuid": format!("5a2b7d1e-8c7f-4f0e-9d53-{:012}", position + 1),
                    "browser_download_url": self.url(&self.asset_target(repository, tag, &asset.name)),
                    "type": "attachment",
                })
            })
            .collect();
        json!({
            "id": 1,
            "tag_name": tag,
            "target_commitish": "main",
            "name": format!("Release {tag}"),
            "body": "What's new",
            "url": self.api_url(&format!("/repos/{repository}/releases/1")),
            "html_url": self.release_url(repository, tag),
            "tarball_url": format!("{page}/archive/{tag}.tar.gz"),
            "zipball_url": format!("{page}/archive/{tag}.zip"),
            "hide_archive_links": false,
            "upload_url": self.api_url(&format!("/repos/{repository}/releases/1/assets")),
            "draft": false,
            "prerelease": false,
            "created_at": "2026-01-19T11:00:00+01:00",
            "published_at": "2026-01-20T09:00:00+01:00",
            "author": { "id": 1, "login": "root", "full_name": "", "email": "root@noreply.localhost" },
            "assets": assets,
            "archive_download_count": { "zip": 0, "tar_gz": 0 },
        })
    }
}
