mod folded;
mod folding;
mod growing_files;
mod packs;
mod versions;
