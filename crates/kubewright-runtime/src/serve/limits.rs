//! Limits of connections, so that one client cannot use up the server.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// How many connections a server has at the same time. Further ones are closed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From all clients.
    pub total: usize,
    /// From one IP address. An API server opens one connection per running webhook call.
    pub per_peer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total: 2048, per_peer: 512 }
    }
}

/// The open connections of a server.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    limits: Limits,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// A place of an open connection. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct Place {
    peer: IpAddr,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, open: Arc::default() }
    }

    /// A place for a connection; `None` if a limit is reached.
    pub(super) fn enter(&self, peer: IpAddr) -> Option<Place> {
        // An IPv4 client of a dual-stack socket.
        let peer = peer.to_canonical();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_peer = open.get(&peer).copied().unwrap_or_default();
        if of_peer >= self.limits.per_peer || open.values().sum::<usize>() >= self.limits.total {
            return None;
        }
        open.insert(peer, of_peer + 1);
        Some(Place { peer, open: Arc::clone(&self.open) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_cannot_take_all_places() {
        let connections = Connections::new(Limits { total: 3, per_peer: 2 });
        let [hostile, other]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|ip| ip.parse().unwrap());
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        let first = connections.enter(hostile).unwrap();
        let _second = connections.enter(mapped).unwrap();
        assert!(connections.enter(hostile).is_none(), "the peer's limit");
        let _third = connections.enter(other).unwrap();
        assert!(connections.enter(other).is_none(), "the total limit");
        drop(first);
        assert!(connections.enter(other).is_some());
    }
}
