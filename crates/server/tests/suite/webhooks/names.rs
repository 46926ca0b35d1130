//! The name of a webhook.

use countersign_server::events::webhooks::settings::WebhookName;

#[test]
fn a_name_is_plain_enough_for_a_file_and_a_label() {
    for name in ["ci", "chat-2", "0_x", &"a".repeat(64)] {
        assert!(WebhookName::parse(name).is_ok(), "{name}");
    }
    for name in ["", "CI", "-a", "a.b", "a/b", "a b", "a\"", "é", &"a".repeat(65)] {
        assert!(WebhookName::parse(name).is_err(), "{name}");
    }
}
