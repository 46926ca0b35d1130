mod documents;
mod kept_apart;
mod signature_sets;
mod signers_file;
