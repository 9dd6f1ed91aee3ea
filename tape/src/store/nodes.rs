//! Finds the nodes of a directory that answer a question together.

use crate::store::snapshot::Snapshot;

impl Snapshot {
    /// A node and the nodes whose histories it continues. These have the same system identifier,
    /// recorded at other times, and are not known to belong to another server. The node comes
    /// first, then the others, newest first.
    pub fn answering(&self, node: u64) -> Vec<u64> {
        let known = self.nodes();
        let identifier = |id| {
            known
                .iter()
                .find(|n| n.id == id)
                .map(|n| n.system_identifier)
        };
        let system = identifier(node).filter(|system| *system != 0);
        let mut nodes = vec![node];
        let mut times: Vec<(i64, i64)> = self.times(node).into_iter().collect();
        for other in known.iter().filter(|n| n.id != node) {
            let same = system.is_some_and(|system| system == other.system_identifier);
            if !same || self.other_servers().contains(&other.id) {
                continue;
            }
            let own = self.times(other.id);
            let overlaps = |t: &(i64, i64)| own.is_some_and(|own| own.0 <= t.1 && t.0 <= own.1);
            if !times.iter().any(overlaps) {
                times.extend(own);
                nodes.push(other.id);
            }
        }
        nodes
    }
}
