//! The stages of a server and how they are wired, in the order of ARCHITECTURE.md.
//!
//! Each stage is a value that gets the parts it needs. Only [`ObjectStore`] gets the
//! [`WriteHandle`](crate::storage::WriteHandle) of the storage; a stage that writes gets the object store, all others get
//! the [`Store`], which they can only read.

use std::sync::Arc;

use super::limits::RequestLimits;
use super::options::{Controllers, Options};
use crate::admission::{AdmissionControl, Chain, Cluster};
use crate::after_commit::StepRunner;
use crate::audit::Audit;
use crate::authn::Authn;
use crate::authn::tokens::Tokens;
use crate::authz::Authz;
use crate::certs::ClientCa;
use crate::certs::pki::Pki;
use crate::clock::Clock;
use crate::endpoints::discovery::Discovery;
use crate::endpoints::openapi::{BuiltInDocuments, OpenApi};
use crate::endpoints::read::ReadPath;
use crate::endpoints::reviews::Reviews;
use crate::endpoints::version::KubernetesVersion;
use crate::ids::Ids;
use crate::registry::conversion::Conversion;
use crate::registry::lister::Lister;
use crate::registry::resource::Registry;
use crate::registry::resources::Resources;
use crate::registry::store::ObjectStore;
use crate::registry::subresources::Subresources;
use crate::registry::write::WritePath;
use crate::storage::compaction::Compaction;
use crate::storage::{Store, WriteHandle};
use crate::webhook_client::{Handlers, WebhookClient};

/// The stages of a server.
pub(crate) struct Stages {
    // Filters.
    pub(crate) compaction: Arc<Compaction>,
    pub(crate) authn: Arc<Authn>,
    pub(crate) request_limits: RequestLimits,
    pub(crate) audit: Option<Arc<dyn Audit>>,
    pub(crate) authz: Arc<Authz>,
    // The router.
    pub(crate) resources: Arc<Resources>,
    // Endpoints.
    pub(crate) discovery: Discovery,
    pub(crate) reads: Arc<ReadPath>,
    pub(crate) reviews: Reviews,
    pub(crate) subresources: Subresources,
    pub(crate) writes: Arc<WritePath>,
    // Admission.
    pub(crate) admission: Arc<AdmissionControl>,
    pub(crate) webhooks: Arc<WebhookClient>,
    // The registry.
    pub(crate) objects: Arc<ObjectStore>,
    // Storage.
    pub(crate) store: Arc<Store>,
    // Steps after a commit.
    pub(crate) steps: Arc<StepRunner>,
    // Values that the stages share.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<Ids>,
    pub(crate) client_ca: ClientCa,
    /// Where keys and certificates are stored, with a data directory.
    pub(crate) pki: Option<Pki>,
}

/// What the stages are made of: from [`Options`], or from the server that is forked.
pub(super) struct Parts {
    storage: WriteHandle,
    registry: Registry,
    authz: Authz,
    tokens: Tokens,
    pub(super) chain: Arc<Chain>,
    handlers: Handlers,
    documents: Arc<BuiltInDocuments>,
    version: KubernetesVersion,
    controllers: Controllers,
    audit: Option<Arc<dyn Audit>>,
    compaction: Compaction,
    clock: Arc<dyn Clock>,
    ids: Ids,
    client_ca: ClientCa,
    pki: Option<Pki>,
}

impl Parts {
    pub(super) fn new(store: Store, options: Options, pki: Option<Pki>) -> Self {
        let storage = WriteHandle::new(store);
        Self {
            authz: Authz::new(options.authorization, storage.store().clone()),
            storage,
            registry: Registry::default(),
            tokens: Tokens::new(options.tokens),
            chain: Arc::new(Chain::new(&options.admission)),
            handlers: Handlers::default(),
            documents: Arc::new(BuiltInDocuments::new(options.descriptions, options.version)),
            version: options.version,
            controllers: options.controllers,
            audit: options.audit,
            compaction: Compaction::new(options.compaction_interval, options.clock.now_micros()),
            clock: options.clock,
            ids: Ids::new(options.seed),
            client_ca: ClientCa::default(),
            pki,
        }
    }

    /// The parts of an independent copy. Objects are shared, not copied.
    pub(super) fn fork(stages: &Stages) -> Self {
        let authz = stages.authz.fork();
        let storage = WriteHandle::new(stages.store.fork());
        Self {
            authz: authz(storage.store().clone()),
            storage,
            registry: stages.resources.current().fork(),
            tokens: stages.authn.tokens.fork(),
            chain: stages.admission.chain.clone(),
            handlers: stages.webhooks.handlers.fork(),
            documents: stages.discovery.openapi.built_in.clone(),
            version: stages.discovery.version,
            controllers: stages.objects.controllers,
            audit: stages.audit.clone(),
            compaction: stages.compaction.fork(),
            clock: stages.clock.clone(),
            ids: stages.ids.fork(),
            client_ca: stages.client_ca.clone(),
            pki: None,
        }
    }
}

impl Stages {
    pub(super) fn wire(parts: Parts) -> Self {
        let Parts { clock, client_ca, audit, pki, version, .. } = parts;
        let ids = Arc::new(parts.ids);
        let store = parts.storage.store().clone();
        let compaction = Arc::new(parts.compaction);

        // Authentication and authorization.
        let authz = Arc::new(parts.authz);
        let authn = Arc::new(Authn::new(parts.tokens, authz.clone(), store.clone(), clock.clone()));

        // The registry, and the steps after a commit.
        let resources = Arc::new(Resources::new(parts.registry));
        let objects = Arc::new(ObjectStore::new(
            parts.storage,
            resources.clone(),
            clock.clone(),
            ids.clone(),
            parts.controllers,
        ));
        let steps = Arc::new(StepRunner::new(objects.clone(), authz.clone(), client_ca.clone()));

        // Admission and conversion.
        let lister = Lister::new(resources.clone(), store.clone());
        let webhooks = Arc::new(WebhookClient::new(parts.handlers, lister, ids.clone()));
        let conversion = Arc::new(Conversion::new(resources.clone(), webhooks.clone()));
        let cluster =
            Cluster::new(authz.clone(), webhooks.clone(), conversion.clone(), objects.clone(), steps.clone());
        let admission = Arc::new(AdmissionControl::new(parts.chain, cluster));

        // Endpoints.
        let reads = Arc::new(ReadPath {
            store: store.clone(),
            compaction: compaction.clone(),
            conversion: conversion.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
        });
        let writes = Arc::new(WritePath {
            admission: admission.clone(),
            authz: authz.clone(),
            conversion,
            objects: objects.clone(),
            steps: steps.clone(),
        });
        let reviews = Reviews { authn: authn.clone(), authz: authz.clone(), writes: writes.clone() };
        let subresources =
            Subresources { reads: reads.clone(), writes: writes.clone(), authn: authn.clone() };
        let discovery = Discovery {
            openapi: OpenApi::new(parts.documents, resources.clone(), clock.clone()),
            resources: resources.clone(),
            version,
            authn: authn.clone(),
            store: store.clone(),
        };

        Self {
            compaction,
            authn,
            request_limits: RequestLimits::default(),
            audit,
            authz,
            resources,
            discovery,
            reads,
            reviews,
            subresources,
            writes,
            admission,
            webhooks,
            objects,
            store,
            steps,
            clock,
            ids,
            client_ca,
            pki,
        }
    }
}
