//! The script of the page that verifies a file, as the server sends it.

use std::{collections::BTreeMap, fs, path::Path};

use crate::support::{get, start};

/// Each module by the address at which it is served.
async fn modules() -> BTreeMap<String, String> {
    let (_dir, running) = start().await;
    let mut modules = BTreeMap::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/web/verify")).unwrap() {
        let path = format!("/assets/verify/{}", entry.unwrap().file_name().to_str().unwrap());
        let answer = get(running.address, &path, "").await;
        assert_eq!(answer.status, 200, "{path}");
        modules.insert(path, answer.body);
    }
    running.stop().await.unwrap();
    modules
}

#[tokio::test]
async fn the_script_has_less_than_50_kb_and_makes_no_markup_of_text() {
    let modules = modules().await;
    let bytes: usize = modules.values().map(String::len).sum();
    assert!(bytes > 0 && bytes < 50_000, "{bytes} bytes");
    for (path, text) in modules {
        for door in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("] {
            assert!(!text.contains(door), "{path} has {door}");
        }
    }
}

#[tokio::test]
async fn every_module_that_is_imported_is_served() {
    let modules = modules().await;
    let mut imports = 0;
    for (path, text) in &modules {
        for (_, rest) in text.match_indices("from \"./").map(|(at, found)| text.split_at(at + found.len())) {
            let name = rest.split('"').next().unwrap_or_default();
            assert!(modules.contains_key(&format!("/assets/verify/{name}")), "{path} imports {name}");
            imports += 1;
        }
    }
    assert!(imports >= modules.len() - 1, "{imports} imports are seen");
}
