//! The parameters of a write request.

use std::sync::LazyLock;

use serde_json::Value;

use crate::admission::{Attributes, Operation, OperationOptions};
use crate::authn::User;
use crate::authz::Grant;
use crate::fieldmanager::FieldManager;
use crate::registry::resource::Resource;
use crate::request::options::{FieldValidation, WriteOptions};

/// A request that writes one object.
#[derive(Clone, Copy)]
pub(crate) struct WriteRequest<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: &'a str,
    /// The name in the path; empty on a POST to a collection.
    pub(crate) name: &'a str,
    /// The subresource, such as `status`; may be empty.
    pub(crate) subresource: &'a str,
    pub(crate) user: &'a User,
    pub(crate) manager: &'a FieldManager,
    pub(crate) options: &'a WriteOptions,
}

impl<'a> WriteRequest<'a> {
    /// A write of a cluster-scoped object by the server itself.
    pub(crate) fn by_server(resource: &'a Resource) -> Self {
        static USER: LazyLock<User> = LazyLock::new(User::admin);
        static MANAGER: LazyLock<FieldManager> = LazyLock::new(|| FieldManager::named("kube-apiserver"));
        static OPTIONS: WriteOptions = WriteOptions {
            dry_run: false,
            field_validation: FieldValidation::Ignore,
            field_manager: String::new(),
            given_validation: String::new(),
        };
        Self {
            resource,
            namespace: "",
            name: "",
            subresource: "",
            user: &USER,
            manager: &MANAGER,
            options: &OPTIONS,
        }
    }

    /// The write as the check of privilege escalation sees it.
    pub(crate) fn grant(&self, old: Option<&'a Value>, new: &'a Value) -> Grant<'a> {
        let Self { user, resource, namespace, name, .. } = *self;
        Grant { user, resource, namespace, name, old, new }
    }

    /// The namespace for authorization and admission: for a Namespace, its own name.
    pub(crate) fn namespace_of<'b>(&self, name: &'b str) -> &'b str
    where
        'a: 'b,
    {
        if self.resource.is_namespaces() { name } else { self.namespace }
    }

    /// The admission attributes of this request, for the resource's own kind.
    pub(crate) fn attributes<'b>(
        &self,
        operation: Operation,
        name: &'b str,
        object: Value,
        old_object: Option<&'b Value>,
    ) -> Attributes<'b>
    where
        'a: 'b,
    {
        Attributes {
            operation,
            resource: self.resource,
            kind: self.resource.gvk(),
            strategy: &*self.resource.strategy,
            subresource: self.subresource,
            namespace: self.namespace_of(name),
            name,
            object,
            old_object,
            options: OperationOptions::Write(self.options),
            user: self.user,
            dry_run: self.options.dry_run,
            managed_fields_before: None,
        }
    }
}
