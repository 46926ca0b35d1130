//! Names for kinds of requests: a fixed set, whatever paths strangers ask for.

/// Which route a request is for, by its path alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    Files,
    GetSigners,
    GetSignersChain,
    SignatureStatus,
    FilesToSign,
    PendingSignatures,
    Ping,
    Signatures,
    Assets,
    RegisterRepo,
    UpdateSigners,
    Revoke,
    Healthz,
    Readyz,
    Metrics,
    Page,
    Badge,
    Events,
    Other,
}

impl Route {
    pub const ALL: [Self; 19] = [
        Self::Files,
        Self::GetSigners,
        Self::GetSignersChain,
        Self::SignatureStatus,
        Self::FilesToSign,
        Self::PendingSignatures,
        Self::Ping,
        Self::Signatures,
        Self::Assets,
        Self::RegisterRepo,
        Self::UpdateSigners,
        Self::Revoke,
        Self::Healthz,
        Self::Readyz,
        Self::Metrics,
        Self::Page,
        Self::Badge,
        Self::Events,
        Self::Other,
    ];

    pub fn of(path: &str) -> Self {
        let Some(rest) = path.strip_prefix("/v1/") else {
            return match path {
                "/healthz" => Self::Healthz,
                "/readyz" => Self::Readyz,
                "/metrics" => Self::Metrics,
                "/" | "/activity" | "/verify" | "/docs" | "/openapi.json" | "/favicon.ico" => Self::Page,
                _ if path.starts_with("/p/") || path.starts_with("/assets/") => Self::Page,
                _ if path.starts_with("/badge/") => Self::Badge,
                _ => Self::Other,
            };
        };
        // By far the most.
        if rest.starts_with("files/") {
            return Self::Files;
        }
        if rest.starts_with("get_signers/") {
            return Self::GetSigners;
        }
        match rest.split_once('/') {
            Some(("get_signers_chain" | "get_artifact_signers_chain", _)) => Self::GetSignersChain,
            Some(("signatures", _)) => Self::SignatureStatus,
            Some(("files-to-sign", _)) => Self::FilesToSign,
            Some(_) => Self::Other,
            None => match rest {
                "ping" => Self::Ping,
                "pending_signatures" => Self::PendingSignatures,
                "signatures" => Self::Signatures,
                "assets" => Self::Assets,
                "register_repo" => Self::RegisterRepo,
                "update_signers" => Self::UpdateSigners,
                "revoke" => Self::Revoke,
                "events" => Self::Events,
                _ => Self::Other,
            },
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::GetSigners => "get_signers",
            Self::GetSignersChain => "get_signers_chain",
            Self::SignatureStatus => "signature_status",
            Self::FilesToSign => "files_to_sign",
            Self::PendingSignatures => "pending_signatures",
            Self::Ping => "ping",
            Self::Signatures => "signatures",
            Self::Assets => "assets",
            Self::RegisterRepo => "register_repo",
            Self::UpdateSigners => "update_signers",
            Self::Revoke => "revoke",
            Self::Healthz => "healthz",
            Self::Readyz => "readyz",
            Self::Metrics => "metrics",
            Self::Page => "page",
            Self::Badge => "badge",
            Self::Events => "events",
            Self::Other => "other",
        }
    }

    /// Whoever watches over the server is never told to come back later.
    pub fn is_limited(self) -> bool {
        !matches!(self, Self::Healthz | Self::Readyz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_its_place_and_a_name_of_its_own() {
        for (place, route) in Route::ALL.into_iter().enumerate() {
            assert_eq!(route as usize, place);
        }
        let names: std::collections::HashSet<_> = Route::ALL.map(Route::name).into_iter().collect();
        assert_eq!(names.len(), Route::ALL.len());
    }

    #[test]
    fn routes_are_told_by_their_paths() {
        for (path, name) in [
            ("/v1/files/https/example.org/443/a", "files"),
            ("/v1/files/", "files"),
            ("/v1/get_signers/a/b", "get_signers"),
            ("/v1/get_signers_chain/a", "get_signers_chain"),
            ("/v1/get_artifact_signers_chain/a", "get_signers_chain"),
            ("/v1/signatures", "signatures"),
            ("/v1/signatures/a", "signature_status"),
            ("/v1/files-to-sign/a", "files_to_sign"),
            ("/v1/pending_signatures", "pending_signatures"),
            ("/v1/register_repo", "register_repo"),
            ("/healthz", "healthz"),
            ("/readyz", "readyz"),
            ("/", "page"),
            ("/p/https/example.org/443/a", "page"),
            ("/assets/style.css", "page"),
            ("/badge/https/example.org/443/a.svg", "badge"),
            ("/v1/events", "events"),
            ("/p", "other"),
            ("/v1/filesystem/x", "other"),
            ("/v1/files", "other"),
            ("/v2/files/x", "other"),
            ("/healthz/", "other"),
        ] {
            assert_eq!(Route::of(path).name(), name, "{path}");
        }
    }
}
