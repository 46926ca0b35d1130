//! What CI systems run: our scripts, actions and templates, by stand-ins for the runners, against a real server
//! (D107–D109).

use countersign_core::values::digest::Sha512;
use serde_json::json;

use self::runner::Runner;
use crate::support::fake_forge::{Asset, ForgeWorld, Kind};
use crate::support::{Person, SignersFile, World, client::Computer, signers::signer};

mod actions;
mod bound;
mod examples;
mod gitlab;
mod hostile;
mod options;
mod rebuilds;
mod runner;
mod yaml;

/// A forge with a project of alice and bob, who both must sign, and of the registrar `ci`.
struct Scene {
    forge: ForgeWorld,
    computer: Computer,
}

impl Scene {
    #[track_caller]
    fn start(kind: Kind) -> Self {
        Self::start_with(kind, &[], |file| file)
    }

    /// One whose signers file lists more people.
    #[track_caller]
    fn start_with(kind: Kind, others: &[&str], change: impl Fn(SignersFile) -> SignersFile) -> Self {
        let forge = ForgeWorld::start(kind);
        let computer = Computer::of(&forge.world.server);
        let scene = Self { forge, computer };
        let [alice, bob, ci] = ["alice", "bob", "ci"].map(Person::named);
        let file = SignersFile::of(2, &[&alice, &bob]).with("registrars", json!([signer(&ci.key())]));
        let file = change(file);
        let forge = &scene.forge.forge;
        forge.put_signers("acme/app", "main", "svc.signers.json", &file);
        let page = forge.url(&kind.page_of("acme/app", "main", "svc.signers.json"));
        scene.world().register_url(&alice, &page).ok();
        let pending = format!("{}/svc.signers.pending/svc.signers.json", forge.project("acme/app"));
        let others: Vec<Person> = others.iter().copied().map(Person::named).collect();
        let everyone: Vec<&Person> = [&alice, &bob].into_iter().chain(&others).collect();
        scene.world().sign_all(&pending, &everyone);
        scene
    }

    fn world(&self) -> &World {
        &self.forge.world
    }

    fn server(&self) -> String {
        format!("http://{}", self.world().server.address())
    }

    /// The forge has a release with these files.
    fn publish_files(&self, tag: &str, names: &[&str]) {
        let assets: Vec<Asset> = names.iter().map(|name| Asset::new(name, format!("of {name}"))).collect();
        self.forge.forge.put_release("acme/app", tag, &assets);
    }

    /// The forge has a release with this tag; its page.
    fn publish(&self, tag: &str) -> String {
        let assets = [Asset::new("app.tar.gz", "the archive"), Asset::new("notes.txt", "what is new")];
        self.forge.forge.put_release("acme/app", tag, &assets)
    }

    fn index(&self, tag: &str) -> String {
        self.forge.forge.index_path("acme/app", tag)
    }

    /// The registrar's private key, as a secret has it.
    fn key(&self) -> String {
        std::fs::read_to_string(self.computer.key_of("ci")).expect("a key")
    }

    /// The digest of the signers file in force.
    fn signers_digest(&self) -> String {
        let path = format!("{}/svc.signers/svc.signers.json", self.forge.forge.project("acme/app"));
        Sha512::of(&self.world().read(&path)).to_string()
    }

    fn sign(&self, tag: &str) {
        self.world().sign_all(&self.index(tag), &[&Person::named("alice"), &Person::named("bob")]);
    }

    /// A runner of this forge for a tag.
    fn runner(&self, tag: &str) -> Runner {
        Runner::new(&self.forge.forge.url(""), tag)
    }
}
