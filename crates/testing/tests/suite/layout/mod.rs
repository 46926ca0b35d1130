//! The layout of the code: the files of a crate use each other downwards only.

use std::{collections::BTreeMap, collections::BTreeSet, fs, path::Path, path::PathBuf, sync::LazyLock};

use circles::circles;
use source::{Crate, Module};

mod circles;
mod source;

/// What a folder `src` or `tests/suite` says of its files.
struct Read {
    uses: BTreeMap<Module, BTreeSet<Module>>,
    left_out: Vec<Module>,
}

/// To read the files takes longer than all else.
static READ: LazyLock<BTreeMap<PathBuf, Read>> = LazyLock::new(|| {
    let dirs = crates().into_iter().flat_map(|dir| [dir.join("src"), dir.join("tests/suite")]);
    let read = dirs.filter(|dir| dir.is_dir()).map(|dir| {
        let of = Crate::read(&dir);
        (dir, Read { uses: of.uses(), left_out: of.left_out() })
    });
    read.collect()
});

/// The files of each folder `src`, with the files that they use.
fn sources() -> impl Iterator<Item = (&'static PathBuf, &'static BTreeMap<Module, BTreeSet<Module>>)> {
    READ.iter().filter(|(dir, _)| dir.ends_with("src")).map(|(dir, read)| (dir, &read.uses))
}

fn crates() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(found.iter().any(|path| path.ends_with("core")), "{found:?}");
    found
}

/// A crate of the files in `texts`, by their paths.
fn of<const N: usize>(texts: [(&str, &str); N]) -> Crate {
    Crate::of(texts.map(|(path, text)| (PathBuf::from(path), text.to_owned())).into())
}

fn uses(of: &Crate) -> BTreeMap<String, Vec<String>> {
    let named = |module: &Module| module.join("::");
    of.uses().iter().map(|(from, to)| (named(from), to.iter().map(named).collect())).collect()
}

#[test]
fn no_files_of_a_crate_use_each_other_in_a_circle() {
    let mut found = Vec::new();
    for (dir, Read { uses, .. }) in READ.iter() {
        found.extend(circles(uses).into_iter().map(|circle| format!("{}: {circle:?}", dir.display())));
    }
    assert!(found.is_empty(), "files that use each other in a circle:\n{}", found.join("\n"));
}

#[test]
fn no_file_is_left_out_of_its_crate() {
    let orphans = of([
        ("lib.rs", "mod a; mod d { pub mod e; }"),
        ("a.rs", "mod b;"),
        ("a/b.rs", ""),
        ("a/c.rs", ""),
        ("d/e.rs", ""),
    ]);
    assert_eq!(orphans.left_out(), [["a".to_owned(), "c".to_owned()]]);
    for (dir, Read { left_out, .. }) in READ.iter() {
        assert!(left_out.is_empty(), "{}: no `mod` brings in {left_out:?}", dir.display());
    }
}

/// A file and the folder of its name are one room of the crate.
#[test]
fn no_rooms_of_a_crate_use_each_other_in_a_circle() {
    let mut found = Vec::new();
    for (dir, modules) in sources() {
        let room = |module: &Module| module.first().cloned().unwrap_or_default();
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in modules {
            let others = to.iter().map(room).filter(|to| *to != room(from));
            uses.entry(room(from)).or_default().extend(others);
        }
        found.extend(circles(&uses).into_iter().map(|circle| format!("{}: {circle:?}", dir.display())));
    }
    assert!(found.is_empty(), "rooms that use each other in a circle:\n{}", found.join("\n"));
}

/// ARCHITECTURE.md leads its reader to every file of core's chapters and to every room of the forge.
#[test]
fn the_architecture_names_the_files_of_core_and_the_rooms_of_the_forge() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let mut missing = Vec::new();
    for (name, depth) in [("core", 2), ("forge", 1)] {
        let modules = &READ[&root.join("crates").join(name).join("src")].uses;
        let rooms: BTreeSet<String> =
            modules.keys().filter_map(|module| module.get(depth - 1)).cloned().collect();
        assert!(rooms.len() > 10, "{name}: {rooms:?}");
        let is_named =
            |room: &String| text.contains(&format!("`{room}")) || text.contains(&format!("::{room}`"));
        missing
            .extend(rooms.into_iter().filter(|room| !is_named(room)).map(|room| format!("{name}: {room}")));
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md does not name {}", missing.join(", "));
}

/// A path such as `store::writer` or `quorum::is_met` in ARCHITECTURE.md leads somewhere: to a folder or file, or to a
/// name in it.
#[test]
fn every_path_in_the_architecture_leads_into_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut words: BTreeMap<Module, BTreeSet<String>> = BTreeMap::new();
    for (dir, modules) in sources() {
        let name = dir.parent().and_then(Path::file_name).unwrap().to_str().unwrap();
        for module in modules.keys() {
            let path = module.iter().fold(dir.clone(), |path, name| path.join(name));
            let files =
                [path.with_extension("rs"), path.join("mod.rs"), path.join("lib.rs"), path.join("main.rs")];
            let text = files.iter().find_map(|file| fs::read_to_string(file).ok()).unwrap();
            let full: Module = [&[name.to_owned()], module.as_slice()].concat();
            for depth in 1..full.len() {
                words.entry(full[..depth].to_vec()).or_default();
            }
            let split = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.insert(full, split.map(str::to_owned).collect());
        }
    }
    let leads = |path: &str| {
        let names: Vec<&str> = path.split("::").map(|name| name.trim_start_matches("countersign_")).collect();
        words.iter().any(|(module, words)| {
            // A type can stand without its module.
            let least = usize::from(!names[0].starts_with(char::is_uppercase));
            (least..=names.len().min(module.len())).any(|depth| {
                let has = |name: &&str| *name == "*" || words.contains(*name);
                module.ends_with(&names[..depth].iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
                    && names[depth..].iter().all(has)
            })
        })
    };
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let is_path = |quoted: &&str| {
        quoted.contains("::") && quoted.chars().all(|c| c.is_alphanumeric() || "_:*".contains(c))
    };
    let (found, lost): (Vec<_>, Vec<_>) =
        text.split('`').skip(1).step_by(2).filter(is_path).partition(|path| leads(path));
    assert!(found.len() > 50 && lost.is_empty(), "ARCHITECTURE.md names what is not there: {lost:?}");
}

/// A row of the table of invariants names its tests: each stands below the crate or folder that was named last.
#[test]
fn every_file_in_the_table_of_invariants_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once("| invariant | tested in |").unwrap();
    let mut lost = Vec::new();
    for cell in table.lines().skip(2).filter_map(|row| row.trim_end_matches('|').rsplit('|').next()) {
        let mut below = root.to_owned();
        for (i, part) in cell.split('`').enumerate() {
            if i % 2 == 1 {
                let is_whole = part.starts_with("crates/") || part.starts_with("tests/");
                let path = if is_whole { root.join(part) } else { below.join(part) };
                if is_whole && path.is_file() {
                    below = path.parent().unwrap().to_owned();
                }
                lost.extend((!path.exists()).then(|| path.display().to_string()));
            } else if let Some(name) =
                part.split([' ', ',']).find(|word| word.len() > 2 && *word == word.to_uppercase())
            {
                below = root.join("crates").join(name.to_lowercase()).join("tests/suite");
            }
        }
    }
    assert!(lost.is_empty(), "ARCHITECTURE.md names tests that are not there: {lost:?}");
}

/// Programs that take long plant these faults (`tests/faults/plant.py`), and are no part of every run. Code that moves
/// takes its faults with it.
#[test]
fn every_planted_fault_has_its_place_and_no_two_overlap() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut faults, mut lost) = (0, Vec::new());
    for list in ["../tests/faults/list", "explorer/faults/list", "simulator/faults/list"] {
        let list = fs::read_to_string(crates.join(list)).unwrap();
        let mut taken: BTreeMap<&str, BTreeSet<(usize, usize, &str)>> = BTreeMap::new();
        for fault in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (place, change) = fault.split_once(": ").expect("FILE@HINT: CODE");
            let (right, _) = change.split_once(" -> ").expect("CODE -> WRONG CODE");
            let file = place.split('@').next().expect("a file");
            let text = fs::read_to_string(crates.join(file)).unwrap_or_default();
            let found: Vec<usize> = text.match_indices(right).map(|(at, _)| at).collect();
            match found[..] {
                [at] => drop(taken.entry(file).or_default().insert((at, at + right.len(), right))),
                _ => lost.push(format!("{} times in its file: {fault}", found.len())),
            }
            faults += 1;
        }
        for (file, places) in taken {
            let next = places.iter().zip(places.iter().skip(1));
            let overlap = next.filter(|((_, end, _), (begin, _, _))| begin < end);
            lost.extend(overlap.map(|((.., one), (.., two))| format!("{file}: `{one}` and `{two}` overlap")));
        }
    }
    assert!(faults > 300 && lost.is_empty(), "{faults} faults\n{}", lost.join("\n"));
}

#[test]
fn a_use_is_found_however_it_is_written() {
    let found = uses(&of([
        ("lib.rs", "mod a; mod b; mod c; mod d; pub use c::Third;"),
        (
            "a.rs",
            "mod inner; use crate::{b::{self, First}, d::*,};\nfn f() -> b::deep::Second { inner::g() }",
        ),
        ("a/inner.rs", "pub(super) fn g() { println!(\"{}\", super::super::c::Third::NAME) }"),
        ("b.rs", "pub mod deep; // crate::c\n/// [`crate::c`]\npub struct First(&'static str);"),
        ("b/deep.rs", "mod tests { use super::super::First; }"),
        ("c.rs", "pub struct Third;"),
        ("d.rs", "const TEXT: &str = \"crate::c::Third\";"),
        ("e.rs", "fn f() { use super::b::*; deep::h() }"),
    ]));
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(found[""], all(&["c"]));
    assert_eq!(found["a"], all(&["a::inner", "b", "b::deep", "d"]));
    assert_eq!(found["a::inner"], all(&["c"]));
    assert_eq!(found["b::deep"], all(&["b"]));
    assert_eq!(found["b"], all(&[]));
    assert_eq!(found["d"], all(&[]));
    assert_eq!(found["e"], all(&["b", "b::deep"]));
}

#[test]
fn a_use_is_found_in_folders_that_the_root_opens() {
    let found = uses(&of([
        (
            "lib.rs",
            "mod a { mod b; mod c; mod deep { mod d; pub use crate::a::deep::d::D; } } use crate::a::*; fn f() { c::g() }",
        ),
        ("a/b.rs", "use crate::a::{c, deep::d::D}; fn f() { c::g() }"),
        ("a/c.rs", "use super::deep; fn g() { deep::d::h() }"),
        ("a/deep/d.rs", "fn h() { super::super::b::f() }"),
    ]));
    assert_eq!(found[""], ["a::c", "a::deep::d"]);
    assert_eq!(found["a::b"], ["a::c", "a::deep::d"]);
    // It names the folder first, which the root opens.
    assert_eq!(found["a::c"], ["", "a::deep::d"]);
    assert_eq!(found["a::deep::d"], ["a::b"]);
}

#[test]
fn a_circle_of_three_files_is_found() {
    let found = of([
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "fn f() { crate::c::g() }"),
        ("c.rs", "use super::a::A; use crate::d;"),
        ("d.rs", ""),
    ]);
    let named = |name: &str| vec![name.to_owned()];
    assert_eq!(circles(&found.uses()), [vec![named("a"), named("b"), named("c")]]);
}

#[test]
fn a_file_and_its_child_make_a_circle() {
    let found = of([
        ("main.rs", "mod a;"),
        ("a/mod.rs", "mod child; use child::C;"),
        ("a/child.rs", "use super::A;"),
    ]);
    let child = vec!["a".to_owned(), "child".to_owned()];
    assert_eq!(circles(&found.uses()), [vec![vec!["a".to_owned()], child]]);
}
