mod forgotten;
mod remembering;
