//! `kubectl explain`, which reads the OpenAPI documents.

use super::cluster::Cluster;
use super::custom::with_guide;

/// The start of the output, with tabs replaced by spaces.
#[track_caller]
fn head(cluster: &Cluster, line: &str, lines: usize) -> String {
    let shown = cluster.kubectl(line).result();
    let lines: Vec<String> =
        shown.lines().take(lines).map(|line| line.trim_end().replace('\t', " ")).collect();
    lines.join("\n")
}

#[test]
fn explain_describes_built_in_kinds() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(head(&cluster, "explain pod.spec.containers", 30), @r#"
    KIND:       Pod
    VERSION:    v1

    FIELD: containers <[]Container>


    DESCRIPTION:
        List of containers belonging to the pod. Containers cannot currently be
        added or removed. There must be at least one container in a Pod. Cannot be
        updated.
        A single application container that you want to run within a pod.

    FIELDS:
      args <[]string>
        Arguments to the entrypoint. The container image's CMD is used if this is
        not provided. Variable references $(VAR_NAME) are expanded using the
        container's environment. If a variable cannot be resolved, the reference in
        the input string will be unchanged. Double $$ are reduced to a single $,
        which allows for escaping the $(VAR_NAME) syntax: i.e. "$$(VAR_NAME)" will
        produce the string literal "$(VAR_NAME)". Escaped references will never be
        expanded, regardless of whether the variable exists or not. Cannot be
        updated. More info:
        https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/#running-a-command-in-a-shell

      command <[]string>
        Entrypoint array. Not executed within a shell. The container image's
        ENTRYPOINT is used if this is not provided. Variable references $(VAR_NAME)
        are expanded using the container's environment. If a variable cannot be
        resolved, the reference in the input string will be unchanged. Double $$ are
        reduced to a single $, which allows for escaping the $(VAR_NAME) syntax:
    "#);
    insta::assert_snapshot!(head(&cluster, "explain deployment --recursive", 60), @"
    GROUP:      apps
    KIND:       Deployment
    VERSION:    v1

    DESCRIPTION:
        Deployment enables declarative updates for Pods and ReplicaSets.

    FIELDS:
      apiVersion <string>
      kind <string>
      metadata <ObjectMeta>
        annotations <map[string]string>
        creationTimestamp <string>
        deletionGracePeriodSeconds <integer>
        deletionTimestamp <string>
        finalizers <[]string>
        generateName <string>
        generation <integer>
        labels <map[string]string>
        managedFields <[]ManagedFieldsEntry>
          apiVersion <string>
          fieldsType <string>
          fieldsV1 <FieldsV1>
          manager <string>
          operation <string>
          subresource <string>
          time <string>
        name <string>
        namespace <string>
        ownerReferences <[]OwnerReference>
          apiVersion <string> -required-
          blockOwnerDeletion <boolean>
          controller <boolean>
          kind <string> -required-
          name <string> -required-
          uid <string> -required-
        resourceVersion <string>
        selfLink <string>
        uid <string>
      spec <DeploymentSpec>
        minReadySeconds <integer>
        paused <boolean>
        progressDeadlineSeconds <integer>
        replicas <integer>
        revisionHistoryLimit <integer>
        selector <LabelSelector> -required-
          matchExpressions <[]LabelSelectorRequirement>
            key <string> -required-
            operator <string> -required-
            values <[]string>
          matchLabels <map[string]string>
        strategy <DeploymentStrategy>
          rollingUpdate <RollingUpdateDeployment>
            maxSurge <IntOrString>
            maxUnavailable <IntOrString>
          type <string>
          enum: Recreate, RollingUpdate
        template <PodTemplateSpec> -required-
          metadata <ObjectMeta>
            annotations <map[string]string>
    ");
    insta::assert_snapshot!(cluster.session("
        explain pod.spec.restartPolicy
        explain deploy.spec.strategy.rollingUpdate.maxSurge
        explain configmap.data
        explain pod.spec.nope
        explain nope
    "), @r#"
    $ kubectl explain pod.spec.restartPolicy
    KIND:       Pod
    VERSION:    v1

    FIELD: restartPolicy <string>
    ENUM:
        Always
        Never
        OnFailure

    DESCRIPTION:
        Restart policy for all containers within the pod. One of Always, OnFailure,
        Never. In some contexts, only a subset of those values may be permitted.
        Default to Always. More info:
        https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy

        Possible enum values:
         - `"Always"`
         - `"Never"`
         - `"OnFailure"`


    $ kubectl explain deploy.spec.strategy.rollingUpdate.maxSurge
    GROUP:      apps
    KIND:       Deployment
    VERSION:    v1

    FIELD: maxSurge <IntOrString>


    DESCRIPTION:
        The maximum number of pods that can be scheduled above the desired number of
        pods. Value can be an absolute number (ex: 5) or a percentage of desired
        pods (ex: 10%). This can not be 0 if MaxUnavailable is 0. Absolute number is
        calculated from percentage by rounding up. Defaults to 25%. Example: when
        this is set to 30%, the new ReplicaSet can be scaled up immediately when the
        rolling update starts, such that the total number of old and new pods do not
        exceed 130% of desired pods. Once old pods have been killed, new ReplicaSet
        can be scaled up further, ensuring that total number of pods running at any
        time during the update is at most 130% of desired pods.
        IntOrString is a type that can hold an int32 or a string.  When used in JSON
        or YAML marshalling and unmarshalling, it produces or consumes the inner
        type.  This allows you to have, for example, a JSON field that can accept a
        name or number.


    $ kubectl explain configmap.data
    KIND:       ConfigMap
    VERSION:    v1

    FIELD: data <map[string]string>


    DESCRIPTION:
        Data contains the configuration data. Each key must consist of alphanumeric
        characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use
        the BinaryData field. The keys stored in Data must not overlap with the keys
        in the BinaryData field, this is enforced during validation process.


    $ kubectl explain pod.spec.nope
    KIND:       Pod
    VERSION:    v1

    --- stderr
    error: field "nope" does not exist
    --- exit status 1
    $ kubectl explain nope
    --- stderr
    the server doesn't have a resource type "nope"
    --- exit status 1
    "#);
    insta::assert_snapshot!(head(&cluster, "explain hpa --api-version=autoscaling/v1", 8), @"
    GROUP:      autoscaling
    KIND:       HorizontalPodAutoscaler
    VERSION:    v1

    DESCRIPTION:
        configuration of a horizontal pod autoscaler.

    FIELDS:
    ");
}

#[test]
fn explain_recursive_works_for_every_kind() {
    let cluster = with_guide();
    let resources = cluster.kubectl("api-resources --verbs=get --no-headers").result();
    for resource in resources.lines() {
        // Columns: name, optional short names, version, namespaced, kind.
        let words: Vec<&str> = resource.split_whitespace().collect();
        let [name, .., version, _, _] = words.as_slice() else { panic!("{resource}") };
        let shown = cluster.kubectl(&format!("explain {name} --api-version={version} --recursive")).result();
        for field in ["  apiVersion\t<string>\n", "  kind\t<string>\n", "  metadata\t<ObjectMeta>"] {
            assert!(shown.contains(field), "{name} has no {field:?}\n{shown}");
        }
    }
}

/// The golden scaffold is what `init` and `create api` write, with the CRD that `make manifests` generates.
#[test]
fn explain_of_a_fresh_scaffold_reads_like_that_of_kubebuilder() {
    let crd = include_str!("../../../testdata/golden/single/config/crd/bases/sales.example.com_orders.yaml");
    let cluster = Cluster::with(crd);
    let shown =
        ["order", "order.spec", "order.status"].map(|it| head(&cluster, &format!("explain {it}"), 40));
    insta::assert_snapshot!(shown.map(|it| it.trim_end().to_owned()).join("\n---\n"), @"
    GROUP:      sales.example.com
    KIND:       Order
    VERSION:    v1

    DESCRIPTION:
        Order is the Schema for the orders API.

    FIELDS:
      apiVersion <string>
        APIVersion defines the versioned schema of this representation of an object.
        Servers should convert recognized schemas to the latest internal value, and
        may reject unrecognized values. More info:
        https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources

      kind <string>
        Kind is a string value representing the REST resource this object
        represents. Servers may infer this from the endpoint the client submits
        requests to. Cannot be updated. In CamelCase. More info:
        https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds

      metadata <ObjectMeta>
        Standard object's metadata. More info:
        https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata

      spec <Object> -required-
        OrderSpec defines the desired state of Order.

      status <Object>
        OrderStatus defines the observed state of Order.
    ---
    GROUP:      sales.example.com
    KIND:       Order
    VERSION:    v1

    FIELD: spec <Object>


    DESCRIPTION:
        OrderSpec defines the desired state of Order.

    FIELDS:
      foo <string>
        Foo is an example field. Edit or remove it.
    ---
    GROUP:      sales.example.com
    KIND:       Order
    VERSION:    v1

    FIELD: status <Object>


    DESCRIPTION:
        OrderStatus defines the observed state of Order.

    FIELDS:
      conditions <[]Object>
        Conditions represent the current state of the Order.
    ");
}

#[test]
fn explain_describes_custom_resources() {
    let cluster = with_guide();
    insta::assert_snapshot!(cluster.session("
        explain mdv
        explain mdv.spec
        explain mdv.spec.pages
        explain mdv.spec.theme
        explain mdv.status.conditions.status
        explain mdv.metadata.name
        explain mdv.spec.nope
    ").replace('\t', " "), @r#"
    $ kubectl explain mdv
    GROUP:      view.example.com
    KIND:       MarkdownView
    VERSION:    v1

    DESCRIPTION:
        A MarkdownView shows Markdown as a web page.

    FIELDS:
      apiVersion <string>
        APIVersion defines the versioned schema of this representation of an object.
        Servers should convert recognized schemas to the latest internal value, and
        may reject unrecognized values. More info:
        https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources

      kind <string>
        Kind is a string value representing the REST resource this object
        represents. Servers may infer this from the endpoint the client submits
        requests to. Cannot be updated. In CamelCase. More info:
        https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds

      metadata <ObjectMeta>
        Standard object's metadata. More info:
        https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata

      spec <Object> -required-
        What shall be shown, and how.

      status <Object>
        What is shown.


    $ kubectl explain mdv.spec
    GROUP:      view.example.com
    KIND:       MarkdownView
    VERSION:    v1

    FIELD: spec <Object>


    DESCRIPTION:
        What shall be shown, and how.

    FIELDS:
      host <string>
        Where the page is served.

      image <string>
        <no description>

      maxReplicas <integer>
        How many viewers there may be.

      pages <[]Object> -required-
        The pages, in order.

      replicas <integer>
        How many viewers there shall be.

      style <map[string]string>
        <no description>

      tags <[]string>
        <no description>

      theme <string>
      enum: light, dark, sepia
        The colours.


    $ kubectl explain mdv.spec.pages
    GROUP:      view.example.com
    KIND:       MarkdownView
    VERSION:    v1

    FIELD: pages <[]Object>


    DESCRIPTION:
        The pages, in order.

    FIELDS:
      name <string> -required-
        What the page is called in links.

      text <string>
        The page, in Markdown.

      title <string>
        What stands above the page.


    $ kubectl explain mdv.spec.theme
    GROUP:      view.example.com
    KIND:       MarkdownView
    VERSION:    v1

    FIELD: theme <string>
    ENUM:
        light
        dark
        sepia

    DESCRIPTION:
        The colours.


    $ kubectl explain mdv.status.conditions.status
    GROUP:      view.example.com
    KIND:       MarkdownView
    VERSION:    v1

    FIELD: status <string>
    ENUM:
        True
        False
        Unknown

    DESCRIPTION:
        <empty>

    $ kubectl explain mdv.metadata.name
    GROUP:      view.example.com
    KIND:       MarkdownView
    VERSION:    v1

    FIELD: name <string>


    DESCRIPTION:
        Name must be unique within a namespace. Is required when creating resources,
        although some resources may allow a client to request the generation of an
        appropriate name automatically. Name is primarily intended for creation
        idempotence and configuration definition. Cannot be updated. More info:
        https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names


    $ kubectl explain mdv.spec.nope
    GROUP:      view.example.com
    KIND:       MarkdownView
    VERSION:    v1

    --- stderr
    error: field "nope" does not exist
    --- exit status 1
    "#);
    let recursive = cluster.kubectl("explain mdv --recursive").result().replace('\t', " ");
    let (_, spec) = recursive.split_once("  spec ").expect("a spec");
    insta::assert_snapshot!(spec, @"
    <Object> -required-
        host <string>
        image <string>
        maxReplicas <integer>
        pages <[]Object> -required-
          name <string> -required-
          text <string>
          title <string>
        replicas <integer>
        style <map[string]string>
        tags <[]string>
        theme <string>
        enum: light, dark, sepia
      status <Object>
        conditions <[]Object>
          status <string> -required-
          enum: True, False, Unknown
          type <string> -required-
        replicas <integer>
        selector <string>
    ");
    insta::assert_snapshot!(head(&cluster, "explain markdownviews --api-version=view.example.com/v1beta1", 8), @"
    GROUP:      view.example.com
    KIND:       MarkdownView
    VERSION:    v1beta1

    DESCRIPTION:
        <empty>
    FIELDS:
      apiVersion <string>
    ");
}
