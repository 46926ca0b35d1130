//! Which file of a crate uses which, read from its paths: those in `use` and those in the middle of the code.

use std::{collections::BTreeMap, collections::BTreeSet, fs, path::Path, path::PathBuf};

use proc_macro2::{TokenStream, TokenTree};

/// The names from the crate's root to a module; the root has none.
pub(super) type Module = Vec<String>;

/// The names of a path, such as `super` and `name`.
type Names = Vec<String>;

/// A path, and the module in which it is written: the file's, or one within the file.
type Written = (Module, Names);

pub(super) struct Crate {
    files: BTreeMap<Module, TokenStream>,
}

/// What a file says. The names are resolved when all modules are known.
#[derive(Default)]
struct Said {
    paths: Vec<Written>,
    /// What a `use` brings, by the name that it has here.
    brought: BTreeMap<String, Written>,
    /// Modules of which a `use` brings everything.
    opened: Vec<Written>,
}

impl Crate {
    pub(super) fn read(dir: &Path) -> Self {
        let mut texts = BTreeMap::new();
        let mut dirs = vec![PathBuf::new()];
        while let Some(below) = dirs.pop() {
            for entry in fs::read_dir(dir.join(&below)).unwrap() {
                let entry = entry.unwrap();
                let path = below.join(entry.file_name());
                if entry.file_type().unwrap().is_dir() {
                    dirs.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    texts.insert(path.clone(), fs::read_to_string(dir.join(path)).unwrap());
                }
            }
        }
        Self::of(texts)
    }

    pub(super) fn of(texts: BTreeMap<PathBuf, String>) -> Self {
        let tokens =
            |path: &Path, text: &str| text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut files: BTreeMap<Module, TokenStream> = BTreeMap::new();
        for (path, text) in &texts {
            // A library and a program beside it are one root.
            files.entry(module(path)).or_default().extend::<TokenStream>(tokens(path, text));
        }
        Self { files }
    }

    /// Files that no `mod` brings in: the compiler never reads them.
    pub(super) fn left_out(&self) -> Vec<Module> {
        let mut children: BTreeMap<&[String], Vec<&Module>> = BTreeMap::new();
        for module in self.files.keys().filter(|module| !module.is_empty()) {
            let mut above = (0..module.len()).rev().map(|depth| &module[..depth]);
            let parent = above.find(|above| self.files.contains_key(*above)).unwrap_or_default();
            children.entry(parent).or_default().push(module);
        }
        let mut left_out = Vec::new();
        for (parent, modules) in children {
            let text = self.files[parent].to_string();
            let is_named = |module: &&Module| text.contains(&format!("mod {} ;", module[module.len() - 1]));
            left_out.extend(modules.into_iter().filter(|module| !is_named(module)).cloned());
        }
        left_out
    }

    /// The files that each file uses, without itself.
    pub(super) fn uses(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let of = |(file, tokens): (&Module, &TokenStream)| {
            let mut said = Said::default();
            said.read(tokens.clone(), file);
            let used = said.paths.iter().filter_map(|path| self.used(path, &said));
            (file.clone(), used.filter(|used| used != file).collect())
        };
        self.files.iter().map(of).collect()
    }

    /// The file that a path leads into, where it is one of this crate.
    fn used(&self, path: &Written, said: &Said) -> Option<Module> {
        let mut found = self.named(path, said)?;
        // A module within a file is in that file.
        while !self.files.contains_key(&found) {
            found.pop()?;
        }
        Some(found)
    }

    /// The module that a path names, or in which it names something.
    fn named(&self, (at, names): &Written, said: &Said) -> Option<Module> {
        let (first, rest) = names.split_first()?;
        let mut found = match first.as_str() {
            "crate" => Module::new(),
            "self" => at.clone(),
            "super" => at.split_last()?.1.to_vec(),
            _ if self.has(&below(at, first)) => below(at, first),
            _ => self.brought(first, said)?,
        };
        for name in rest {
            match name.as_str() {
                "super" => found.truncate(found.len().checked_sub(1)?),
                _ if self.has(&below(&found, name)) => found.push(name.clone()),
                _ => break,
            }
        }
        Some(found)
    }

    /// Whether this module has a file, or is a folder with files.
    fn has(&self, module: &Module) -> bool {
        self.files.range(module.clone()..).next().is_some_and(|(file, _)| file.starts_with(module))
    }

    /// The module of this name that a `use` brings.
    fn brought(&self, name: &String, said: &Said) -> Option<Module> {
        let plain = |written| self.named(written, &Said::default());
        let named = said
            .brought
            .get(name)
            .and_then(|written| plain(written).filter(|module| module.last() == written.1.last()));
        let opened = || said.opened.iter().filter_map(plain).map(|module| below(&module, name));
        named.or_else(|| opened().find(|module| self.has(module)))
    }
}

/// `a/b.rs` and `a/b/mod.rs` are both the module `a::b`. A folder `a/b` without them is one that the crate's root
/// opens.
fn module(path: &Path) -> Module {
    let without = path.with_extension("");
    let mut names: Module = without.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    let is_root = names.len() == 1 && matches!(names[0].as_str(), "lib" | "main");
    if is_root || names.last().is_some_and(|name| name == "mod") {
        names.pop();
    }
    names
}

impl Said {
    fn read(&mut self, tokens: TokenStream, at: &Module) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        while let [token, after @ ..] = rest {
            rest = match token {
                TokenTree::Group(group) => {
                    self.read(group.stream(), at);
                    after
                }
                TokenTree::Ident(word) if word == "use" => self.bring(after, at, &[]),
                TokenTree::Ident(word) if word == "mod" => self.read_module(after, at),
                TokenTree::Ident(word) => self.read_path(word.to_string(), after, at),
                TokenTree::Punct(_) | TokenTree::Literal(_) => after,
            };
        }
    }

    /// `mod name;` uses nothing. `mod name { … }` is a module within this file.
    fn read_module<'a>(&mut self, tokens: &'a [TokenTree], at: &Module) -> &'a [TokenTree] {
        match tokens {
            [TokenTree::Ident(name), TokenTree::Group(body), after @ ..] => {
                self.read(body.stream(), &below(at, &name.to_string()));
                after
            }
            [_, after @ ..] => after,
            [] => tokens,
        }
    }

    fn read_path<'a>(&mut self, first: String, mut tokens: &'a [TokenTree], at: &Module) -> &'a [TokenTree] {
        let mut names = vec![first];
        while let [TokenTree::Punct(one), TokenTree::Punct(two), TokenTree::Ident(name), after @ ..] = tokens
            && [one.as_char(), two.as_char()] == [':', ':']
        {
            names.push(name.to_string());
            tokens = after;
        }
        if names.len() > 1 {
            self.paths.push((at.clone(), names));
        }
        tokens
    }

    /// What stands behind `use`, or in its braces: `before` are the names before those.
    fn bring<'a>(&mut self, mut tokens: &'a [TokenTree], at: &Module, before: &[String]) -> &'a [TokenTree] {
        let mut names = before.to_vec();
        while let [token, after @ ..] = tokens {
            tokens = after;
            match token {
                TokenTree::Ident(word) if word == "as" => {
                    if let [TokenTree::Ident(name), ..] = after {
                        self.brought.insert(name.to_string(), (at.clone(), names.clone()));
                    }
                    tokens = &after[1..];
                }
                TokenTree::Ident(word) => names.push(word.to_string()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    self.bring(&inner, at, &names);
                    names.clear();
                }
                TokenTree::Punct(mark) if mark.as_char() == ',' => {
                    self.keep(at, std::mem::replace(&mut names, before.to_vec()));
                }
                TokenTree::Punct(mark) if mark.as_char() == '*' => {
                    self.opened.push((at.clone(), names.clone()));
                }
                TokenTree::Punct(mark) if mark.as_char() == ';' => break,
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        // Behind the last comma stands nothing.
        if names.len() > before.len() {
            self.keep(at, names);
        }
        tokens
    }

    fn keep(&mut self, at: &Module, mut names: Names) {
        if names.len() > 1 && names.last().is_some_and(|name| name == "self") {
            names.pop();
        }
        if let Some(last) = names.last().cloned() {
            self.brought.entry(last).or_insert_with(|| (at.clone(), names.clone()));
            self.paths.push((at.clone(), names));
        }
    }
}

fn below(module: &Module, name: &str) -> Module {
    [module.as_slice(), &[name.to_owned()]].concat()
}
