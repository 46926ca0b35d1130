//! The configuration file.

use countersign_server::config::{GivenSettings, Settings};

use super::promises::assert_shown;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(file) = toml::from_str::<GivenSettings>(text) else { return };
    // A token comes from a file that the text names. With a backslash, the text can spell that name in other ways.
    if text.contains("token") || text.contains('\\') {
        return;
    }
    let settings = match Settings::resolve(file) {
        Ok(settings) => settings,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(!settings.dev || settings.listen.ip().is_loopback(), "D37");
    assert_eq!(settings.dev, settings.guard.loopback);
    assert_eq!(settings.dev, settings.guard.file_servers.loopback);
    let limits = settings.limits;
    assert!((1..=256 * 1024).contains(&limits.signers_file_bytes), "no client accepts more (D8)");
    assert!(limits.request_body_bytes > 0 && limits.checksums_file_bytes > 0 && limits.checksums_files > 0);
    assert!(limits.assets > 0 && limits.asset_bytes > 0 && limits.collecting_per_project > 0);
    assert!(limits.registration_expiry().as_secs() >= 24 * 60 * 60);
    assert!(!settings.timeouts.connect.is_zero() && !settings.timeouts.total.is_zero());
    settings.guard.allow.iter().for_each(assert_shown);
}
