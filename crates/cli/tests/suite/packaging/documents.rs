//! The documentation: its links lead somewhere, and it names the data directory that the unit has.

use std::{collections::BTreeMap, collections::BTreeSet, fs, path::Component, path::Path, path::PathBuf};

use super::packaging;

/// Every Markdown file, by its path below the root of the repository.
fn documents() -> BTreeMap<PathBuf, String> {
    let root = packaging("..");
    let mut found = BTreeMap::new();
    let mut dirs = vec![PathBuf::new()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(root.join(&dir)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = dir.join(&name);
            if entry.file_type().unwrap().is_dir() {
                if !name.starts_with('.') && name != "target" && name != "node_modules" {
                    dirs.push(path);
                }
            } else if name.ends_with(".md") {
                found.insert(path.clone(), fs::read_to_string(root.join(path)).unwrap());
            }
        }
    }
    assert!(found.len() > 30, "{}", found.len());
    found
}

/// Lines outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Names headings as GitHub does. A name that is there already gets a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#'));
    let name = |heading: &str| -> String {
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    let numbered = headings.map(name).map(|name| {
        let count = counts.entry(name.clone()).and_modify(|count| *count += 1).or_insert(0);
        if *count == 0 { name } else { format!("{name}-{count}") }
    });
    let named = text.split("<a id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    numbered.chain(named).collect()
}

fn links(text: &str) -> Vec<&str> {
    let ends = prose(text).flat_map(|line| line.split("](").skip(1));
    ends.filter_map(|rest| Some(rest.split_once(')')?.0)).filter(|link| !link.contains(':')).collect()
}

/// Where a link of a document leads, without `..`.
fn target(document: &Path, link: &str) -> PathBuf {
    if link.is_empty() {
        return document.to_owned();
    }
    let mut path = document.parent().unwrap().to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{link} leaves the repository"),
            Component::Normal(name) => path.push(name),
            other => assert_eq!(other, Component::CurDir),
        }
    }
    path
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let documents = documents();
    let anchors: BTreeMap<_, _> = documents.iter().map(|(path, text)| (path, anchors(text))).collect();
    let mut broken = Vec::new();
    for (document, link) in
        documents.iter().flat_map(|(path, text)| links(text).into_iter().map(move |link| (path, link)))
    {
        let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
        let path = target(document, file);
        let is_there = match (anchor, anchors.get(&path)) {
            (Some(anchor), Some(known)) => known.contains(anchor),
            (Some(_), None) | (None, _) => packaging("..").join(&path).exists(),
        };
        if !is_there {
            broken.push(format!("{}: {link}", document.display()));
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn the_data_directory_is_that_of_the_unit() {
    let unit = fs::read_to_string(packaging("countersign.service")).unwrap();
    assert!(unit.contains("\nStateDirectory=countersign\n") && !unit.contains("DynamicUser"), "{unit}");
    for (document, text) in documents() {
        for rest in text.split("/var/lib/").skip(1) {
            assert!(rest.starts_with("countersign"), "{}: /var/lib/{rest:.40}", document.display());
        }
    }
}
