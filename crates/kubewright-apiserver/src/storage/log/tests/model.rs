//! Compares random operations on a server, with restarts and crashes, with a map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Put {
        resource: usize,
        key: usize,
        value: u64,
    },
    Delete {
        resource: usize,
        key: usize,
    },
    Forget {
        resource: usize,
    },
    Sync,
    Restart,
    /// Some commits are visible and then lost; the first of them is torn after some bytes.
    Crash {
        lost: u64,
        torn: usize,
    },
}

const RESOURCES: [&str; 3] = ["pods", "apps/deployments", "things.example.com"];
const KEYS: [&str; 4] = ["a", "default/a", "default/b", "übrig/ü"];

fn step() -> impl Strategy<Value = Step> {
    let (resource, key) = (0..RESOURCES.len(), 0..KEYS.len());
    prop_oneof![
        12 => (resource.clone(), key.clone(), any::<u64>())
            .prop_map(|(resource, key, value)| Step::Put { resource, key, value }),
        5 => (resource.clone(), key).prop_map(|(resource, key)| Step::Delete { resource, key }),
        1 => resource.prop_map(|resource| Step::Forget { resource }),
        2 => Just(Step::Sync),
        1 => Just(Step::Restart),
        1 => (1u64..4, 0usize..60).prop_map(|(lost, torn)| Step::Crash { lost, torn }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_match_a_map(
        steps in prop::collection::vec(step(), 1..60),
        log_bytes in prop_oneof![Just(SHORT), Just(600), Just(u64::MAX)],
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Server::with(dir.path(), log_bytes);
        let mut model: BTreeMap<(&str, &str), (Revision, bytes::Bytes)> = BTreeMap::new();
        let mut seen = 0;
        for step in steps {
            match step {
                Step::Put { resource, key, value } => {
                    let (resource, key) = (RESOURCES[resource], KEYS[key]);
                    let revision = server.put(resource, key, value);
                    prop_assert!(revision > seen);
                    model.insert((resource, key), (revision, server.store.get(resource, key).unwrap().json.clone()));
                }
                Step::Delete { resource, key } => {
                    server.delete(RESOURCES[resource], KEYS[key]);
                    model.remove(&(RESOURCES[resource], KEYS[key]));
                }
                Step::Forget { resource } => {
                    server.store.forget(RESOURCES[resource]);
                    model.retain(|(of, _), _| *of != RESOURCES[resource]);
                }
                Step::Sync => server.sync().unwrap(),
                Step::Restart => {
                    seen = server.store.revision();
                    drop(server);
                    server = Server::with(dir.path(), log_bytes);
                    prop_assert!(server.recovered.clean);
                    prop_assert_eq!(server.store.revision(), seen);
                }
                Step::Crash { lost, torn } => {
                    server.sync().unwrap();
                    // Shorter than any frame, so none of it is recovered.
                    server.disk.tear(torn);
                    for value in 0..lost {
                        server.put("pods", "a", value);
                    }
                    seen = server.store.revision();
                    drop(server);
                    server = Server::with(dir.path(), log_bytes);
                    prop_assert!(server.store.revision() > seen);
                }
            }
            seen = server.store.revision();
            let found: Vec<_> = server.objects();
            let wanted: Vec<_> = model
                .iter()
                .map(|((resource, key), (revision, json))| row(resource, key, *revision, json))
                .collect();
            prop_assert_eq!(found, wanted);
        }
    }
}
