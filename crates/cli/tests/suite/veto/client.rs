//! The reason of a veto is text from outside. What else the client says of vetoes is in `client_veto.txt`.

use super::scene::{APP, Scene, takeover, team};

#[test]
fn hostile_reasons_are_shown_without_their_power() {
    let Some(scene) = Scene::new() else { return };
    scene.agree(&takeover(), &["mallory"]);
    let computer = scene.computer();
    let reason = "\u{1b}]0;x\u{7}<script>alert(1)</script>\u{202e}";
    assert_eq!(scene.veto("mia", &scene.veto_document(reason)).status, 202);
    let id = scene.world.id(APP);
    for args in [vec!["status", &id], vec!["veto", &id, "--yes"]] {
        let ran = scene.run_as(&computer, "max", &args).ok();
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains("script") && !said.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{said}");
    }
    // Gone now; a page that showed it had no markup of it.
    scene.agree(&team(2), &[]);
    assert_eq!(scene.veto("mia", &scene.veto_document(reason)).status, 202);
    for page in [format!("/p/{id}"), format!("/p/{}", scene.pending())] {
        let text = scene.world.server.get(&page).text();
        assert!(text.contains("alert(1)") && !text.contains("<script>alert"), "{page}");
        assert!(text.contains("countersign veto") || text.contains("how to veto"), "{page}");
    }
}
