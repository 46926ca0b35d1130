//! D6 over the raw socket: no request target reaches anything but a stored file.

use crate::support::{Git, Request, SignersFile, World, alice};

#[test]
fn nothing_of_the_data_directory_is_served_whatever_lies_there() {
    let world = World::start();
    let server = &world.server;
    let file = SignersFile::of(1, &[&alice()]);
    for dir in [server.data_dir(), server.repository(), server.data_dir().parent().unwrap().to_owned()] {
        std::fs::create_dir_all(dir.join("svc.signers")).unwrap();
        std::fs::write(dir.join("svc.signers/svc.signers.json"), file.bytes()).unwrap();
    }
    let mut names = vec!["repo.git/config".to_owned(), "repo.git/HEAD".to_owned()];
    for dir in [server.data_dir(), server.repository()] {
        let entries = std::fs::read_dir(dir).unwrap();
        names.extend(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
    }
    let absolute = server.data_dir().to_str().unwrap().to_owned();
    for name in names {
        server.get(&format!("/v1/files/{name}")).error(404);
        server.get(&format!("/v1/files/../{name}")).error(400);
        server.get(&format!("/v1/files/{absolute}/{name}")).error(400);
    }
    for path in ["x", "x/y", "http/example.org/80/x", "svc.signers/svc.signers.json"] {
        server.get(&format!("/v1/get_signers/{path}")).error(404);
    }
    // Bytes that HTTP forbids in a target do not get through.
    for path in [&b"a\0b"[..], b"a b", b"a\x01b", b"a\xff\xfe"] {
        let reply = server.send(&Request::get([b"/v1/files/", path].concat()));
        assert_eq!(reply.status, 400, "{path:?}: {}", reply.text());
    }
    server.get("/v1/ping").ok();
}

#[test]
fn a_symbolic_link_in_one_project_is_not_followed_and_stops_nothing_else() {
    let mut world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    let secret = world.server.data_dir().join("secret");
    std::fs::write(&secret, "hidden").unwrap();
    let (active, dir) = (world.active_path("acme/app"), world.id("acme/app"));
    world.server.stop();
    let git = Git::at(world.server.repository());
    git.commit_symlink(&format!("{dir}/outside"), secret.to_str().unwrap());
    git.commit_symlink(&format!("{dir}/up"), "../../../../../../secret");
    git.commit_symlink(&format!("{dir}/inside"), "svc.signers/svc.signers.json");
    git.commit_symlink(&format!("{dir}/dir"), "svc.signers");
    world.server.start_again();
    for name in ["outside", "up", "inside", "dir", "dir/svc.signers.json"] {
        let reply = world.file(&format!("{dir}/{name}"));
        assert_ne!(reply.status, 200, "{name}: {}", reply.text());
        reply.error(reply.status);
    }
    assert!(world.exists(&active));
}
