//! Rotations in a simulated cluster: replicas that lag and crash, targets that lag, and a clock that jumps.

use proptest::prelude::*;
use rustls::client::danger::ServerCertVerifier as _;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::*;

const NAME: &str = "webhook-service.system.svc";

fn names() -> Vec<String> {
    vec![NAME.to_owned()]
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().expect("a time")
}

fn after(material: &Material, step: &Step) -> Material {
    material.after(step, &names(), Lifetimes::default(), start()).expect("certificates")
}

/// Whether a client that trusts `bundle` accepts the leaf.
fn is_trusted(bundle: &str, leaf: &str, now: Timestamp) -> bool {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.expect("PEM")).expect("a CA");
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let verifier = rustls::client::WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
    let Ok(verifier) = verifier.build() else { return false };
    let leaf = CertificateDer::from_pem_slice(leaf.as_bytes()).expect("PEM");
    let seconds = u64::try_from(now.as_second()).expect("after 1970");
    let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    let name = ServerName::try_from(NAME).expect("a DNS name");
    verifier.verify_server_cert(&leaf, &[], &name, &[], at).is_ok()
}

/// A Secret, two targets and three replicas.
struct World {
    now: Timestamp,
    secret: Option<Material>,
    targets: [String; 2],
    trusted_since: Option<Timestamp>,
    serving: [Option<Material>; 3],
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Event {
    /// A replica performs its next step. If it crashes, only the Secret was written.
    Work { replica: usize, crash: bool },
    /// A replica reads the current Secret.
    Notice(usize),
    /// A target is overwritten, for example by a GitOps tool that applies a manifest with an empty bundle.
    Overwrite(usize),
    /// Time passes.
    Pass(i64),
}

impl World {
    fn new() -> Self {
        let targets = [String::new(), String::new()];
        Self {
            now: start(),
            secret: None,
            targets,
            trusted_since: None,
            serving: [None, None, None],
            steps: Vec::new(),
        }
    }

    fn targets(&mut self) -> Targets {
        let bundle = self.secret.as_ref().map(Material::bundle).unwrap_or_default();
        if self.targets.iter().all(|target| *target == bundle) {
            Targets::TrustSince(*self.trusted_since.get_or_insert(self.now))
        } else {
            self.trusted_since = None;
            Targets::Differ
        }
    }

    fn work(&mut self, replica: usize, crash: bool) {
        let targets = self.targets();
        let step = next(self.secret.as_ref(), &names(), targets, self.now);
        match (&step, &self.secret) {
            (Step::Wait(_), _) => {}
            (Step::Inject, Some(material)) => {
                let bundle = material.bundle();
                // A crash in between leaves one target without the bundle.
                self.targets[0].clone_from(&bundle);
                if !crash {
                    self.targets[1] = bundle;
                }
            }
            (step, Some(material)) => {
                self.secret = Some(
                    material.after(step, &names(), Lifetimes::default(), self.now).expect("certificates"),
                );
            }
            (_, None) => self.secret = Some(Material::create(&names(), self.now).expect("certificates")),
        }
        self.steps.push(step);
        if crash {
            self.serving[replica] = None;
        } else {
            self.serving[replica].clone_from(&self.secret);
        }
    }

    /// Checks that every served, unexpired leaf is trusted by every target that has our bundle.
    fn check(&self) -> Result<(), TestCaseError> {
        for material in self.serving.iter().flatten() {
            if self.now >= material.leaf.validity.until {
                continue;
            }
            for bundle in self.targets.iter().filter(|bundle| !bundle.is_empty()) {
                prop_assert!(
                    is_trusted(bundle, &material.leaf.certificate, self.now),
                    "a served leaf is not trusted after {:?}",
                    self.steps
                );
            }
        }
        Ok(())
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..3usize, prop::bool::weighted(0.2)).prop_map(|(replica, crash)| Event::Work { replica, crash }),
        2 => (0..3usize).prop_map(Event::Notice),
        1 => (0..2usize).prop_map(Event::Overwrite),
        2 => prop_oneof![1..120i64, 3_600..90_000i64, 86_400..40_000_000i64].prop_map(Event::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_target_trusts_every_served_leaf(events in prop::collection::vec(event(), 1..60)) {
        let mut world = World::new();
        for event in events {
            match event {
                Event::Work { replica, crash } => world.work(replica, crash),
                Event::Notice(replica) => world.serving[replica].clone_from(&world.secret),
                Event::Overwrite(target) => world.targets[target].clear(),
                Event::Pass(seconds) => {
                    world.now = world.now.saturating_add(SignedDuration::from_secs(seconds)).expect("a time");
                }
            }
            world.check()?;
        }
    }
}

/// Runs until there is nothing to do, skipping waits shorter than a recheck.
fn settle(world: &mut World) {
    for _ in 0..20 {
        world.work(0, false);
        if let Some(Step::Wait(until)) = world.steps.last() {
            if until.duration_since(world.now) >= RECHECK {
                return;
            }
            world.now = *until;
        }
    }
    panic!("does not settle: {:?}", world.steps);
}

#[test]
fn a_ca_is_replaced_in_three_steps() {
    let mut world = World::new();
    settle(&mut world);
    assert!(matches!(world.steps[..], [Step::Create, Step::Inject, Step::Wait(_)]), "{:?}", world.steps);
    let first = world.secret.clone().expect("certificates");

    world.steps.clear();
    world.now = first.ca.validity.renew_at();
    settle(&mut world);
    let steps: Vec<&Step> = world.steps.iter().filter(|step| !matches!(step, Step::Wait(_))).collect();
    assert_eq!(
        steps,
        [&Step::Renew, &Step::Announce, &Step::Inject, &Step::Switch],
        "the leaf is renewed first, since it expired long ago"
    );
    let second = world.secret.clone().expect("certificates");
    assert_ne!(second.ca, first.ca);
    assert!(world.targets[0].contains(&first.ca.certificate), "the previous CA stays for its leaves");

    world.steps.clear();
    world.now = second.previous.as_ref().expect("a previous CA").needed_until;
    settle(&mut world);
    assert!(world.steps.contains(&Step::Retire), "{:?}", world.steps);
    assert_eq!(world.targets[0], second.ca.certificate);
}

#[test]
fn a_leaf_is_renewed_at_two_thirds_and_for_other_names() {
    let material = Material::create(&names(), start()).expect("certificates");
    let trusted = Targets::TrustSince(start());
    let due = material.leaf.validity.renew_at();
    let before = due.saturating_sub(SignedDuration::from_secs(1)).expect("a time");
    assert!(matches!(next(Some(&material), &names(), trusted, before), Step::Wait(_)));
    assert_eq!(next(Some(&material), &names(), trusted, due), Step::Renew);
    // Renewal does not depend on the targets.
    assert_eq!(next(Some(&material), &names(), Targets::Differ, due), Step::Renew);
    assert_eq!(next(Some(&material), &["other".to_owned()], trusted, before), Step::Renew);
}

#[test]
fn a_bundle_holds_ca_certificates_only() {
    let first = Material::create(&names(), start()).expect("certificates");
    let announced = after(&first, &Step::Announce);
    let switched = after(&announced, &Step::Switch);
    for material in [first, announced, switched] {
        let bundle = material.bundle();
        assert!(!bundle.contains(&material.leaf.certificate));
        assert!(!bundle.contains("PRIVATE KEY"));
        assert!(is_trusted(&bundle, &material.leaf.certificate, start()));
    }
}

#[test]
fn the_secret_round_trips() {
    let first = Material::create(&names(), start()).expect("certificates");
    let announced = after(&first, &Step::Announce);
    let switched = after(&announced, &Step::Switch);
    for material in [first, announced, switched] {
        assert_eq!(Material::from_data(&material.to_data()).expect("a Secret"), Some(material));
    }
    assert_eq!(Material::from_data(&std::collections::BTreeMap::new()).expect("empty"), None);
    let foreign = std::collections::BTreeMap::from([("password".to_owned(), b"x".to_vec())]);
    let error = Material::from_data(&foreign).expect_err("not ours").to_string();
    assert_eq!(error, "key state.json is missing; delete the Secret to recreate the certificates");
}
