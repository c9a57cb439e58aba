//! Kinds of apiextensions.k8s.io. Their validation is in `kubewright-apiextensions`.

pub(crate) mod custom_resource_definition;
