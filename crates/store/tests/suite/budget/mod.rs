mod buckets;
mod changes;
mod needs;
