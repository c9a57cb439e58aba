//! Seeds of each target.

pub(crate) const JSON: &[&str] = &[
    r#"{"a":[1,-2.5e3,true,null,"\u00e4\ud83d\ude00\n"],"b":{"c":{}},"b":0}"#,
    r#"[[[[]]],{"":""}]"#,
    "-0.0e-10",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
    "9223372036854775807",
    " \t\r\n null ",
];

pub(crate) const LABEL_SELECTORS: &[&str] =
    &["a=b", "a==b,c!=d", "tier in (web, db),!x.io/y,a notin (b)", "a>1,b<-2", "x.io/y", "a in (,)", ""];

pub(crate) const FIELD_SELECTORS: &[&str] = &[
    "metadata.name=a",
    "a==b,c!=d",
    "metadata.name=a\\,b\\=c\\\\d",
    "=",
    ",,",
    "status.phase!=Running",
    ",==1,=6$",
];

pub(crate) const QUANTITIES: &[&str] = &[
    "1",
    "100m",
    "1.5Gi",
    "-0.5",
    "1e3",
    "1E-6",
    "9223372036854775807",
    "12.34567890123n",
    "0Ki",
    "+1k",
    ".5",
    "1e18Ei",
    "5000E",
    "312.5Ki",
    "444444444444444444444444444444444025.3",
];

pub(crate) const JSON_PATCHES: &[&str] = &[
    r#"[{"op":"add","path":"/data/a","value":"b"},{"op":"remove","path":"/metadata/labels"}]"#,
    r#"[{"op":"test","path":"/metadata/name","value":"victim"},{"op":"replace","path":"/spec/replicas","value":3}]"#,
    r#"[{"op":"copy","from":"/metadata","path":"/data/m"},{"op":"move","from":"/data","path":"/list"}]"#,
    r#"[{"op":"add","path":"/spec/containers/-","value":{}},{"op":"add","path":"/spec/containers/-1","value":[]}]"#,
    r#"[{"op":"add","path":"/a~1b~0c/0","value":null},{"op":"replace","path":"","value":{}}]"#,
    r#"[{"op":"copy","from":"","path":"/x"},{"op":"move","from":"/x","path":"/x/y"}]"#,
    "null",
];

pub(crate) const MERGE_PATCHES: &[&str] = &[
    r#"{"data":{"k":null,"n":"1"},"metadata":{"labels":{"a":null}}}"#,
    r#"{"spec":{"containers":[{"name":"c"}],"replicas":1}}"#,
    r#"{"a":{"b":{"c":null}},"list":null}"#,
    "{}",
    "[]",
];

pub(crate) const STRATEGIC_PATCHES: &[&str] = &[
    r#"{"spec":{"containers":[{"name":"c","image":"j"},{"name":"d"}]}}"#,
    r#"{"spec":{"$setElementOrder/containers":[{"name":"d"},{"name":"c"}],"containers":[{"name":"d","image":"x"}]}}"#,
    r#"{"spec":{"containers":[{"$patch":"delete","name":"c"}],"volumes":[{"$patch":"replace"}]}}"#,
    r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.org/f"],"finalizers":["x"]}}"#,
    r#"{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"},"$patch":"merge"}}"#,
    r#"{"spec":{"template":{"spec":{"tolerations":[],"containers":[{"ports":[{"containerPort":80}],"name":"c"}]}}}}"#,
    r#"{"spec":{"ports":[{"port":80,"protocol":"TCP","name":"x"},{"port":53,"$patch":"delete"}]}}"#,
    r#"{"$patch":"replace","data":{}}"#,
];

pub(crate) const YAMLS: &[&str] = &[
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  a: \"b\"\n  c: |\n    d\n    e\n",
    "metadata: {name: x, labels: {a: b}}\ndata: {k: !!str 1}\n",
    "a: &a {k: v}\nb: *a\nc: {<<: *a}\n",
    "---\n- 1\n- [2, 3]\n...\n",
    "kind: Pod\nspec:\n  containers:\n  - {name: c, image: i}\n  priority: 0x10\n  hostNetwork: yes\n",
    "? a\n: b\n'c': \"\\x41\\u00e4\"\n",
];

pub(crate) const REQUESTS: &[&str] = &[
    "GET /api/v1/namespaces/default/pods?labelSelector=a%3Db&limit=1  application/json;as=Table;v=v1;g=meta.k8s.io\n",
    "GET /api/v1/configmaps?watch=1&resourceVersion=1&allowWatchBookmarks=1&timeoutSeconds=5\n",
    "GET /api/v1/pods?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&fieldSelector=spec.nodeName%3D\n",
    "GET /apis/apps/v1/namespaces/default/deployments/victim/scale  application/yaml\n",
    "GET /apis  application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\n",
    "POST /api/v1/namespaces/default/configmaps?dryRun=All&fieldValidation=Strict application/json\n{\"metadata\":{\"name\":\"x\"}}",
    "POST /api/v1/namespaces/default/pods/victim/eviction application/json\n{\"metadata\":{\"name\":\"victim\"}}",
    "POST /api/v1/namespaces/default/serviceaccounts/default/token application/json\n{\"spec\":{\"audiences\":[]}}",
    "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews application/json\n{\"spec\":{\"nonResourceAttributes\":{\"path\":\"/\"}}}",
    "PUT /api/v1/namespaces/default/configmaps/victim application/yaml\nmetadata: {name: victim}\n",
    "PATCH /api/v1/namespaces/default/pods/victim/status application/strategic-merge-patch+json\n{\"status\":{\"phase\":\"Running\"}}",
    "PATCH /api/v1/namespaces/default/services/victim application/json-patch+json\n[{\"op\":\"remove\",\"path\":\"/spec/ports/0\"}]",
    "PATCH /apis/apps/v1/namespaces/default/deployments/victim/scale application/merge-patch+json\n{\"spec\":{\"replicas\":9}}",
    "PATCH /api/v1/namespaces/default/configmaps/new?fieldManager=x&force=1 application/apply-patch+yaml\n{\"data\":{}}",
    "DELETE /api/v1/namespaces/default/pods/victim?gracePeriodSeconds=5&propagationPolicy=Foreground\n",
    "DELETE /api/v1/namespaces/default/configmaps?labelSelector=a\n{\"preconditions\":{\"uid\":\"x\"}}",
    "DELETE /api/v1/namespaces/victim application/json\n{\"propagationPolicy\":\"Orphan\",\"gracePeriodSeconds\":0}",
    "PUT /api/v1/namespaces/victim/finalize application/json\n{\"metadata\":{\"name\":\"victim\"},\"spec\":{\"finalizers\":[]}}",
    "GET /api/v1/watch/namespaces/default/configmaps/victim\n",
    "HEAD /readyz?verbose&exclude=ping\n",
];

/// Responses of admission webhooks. The patches add a field, replace the object, and are invalid.
pub(crate) const ADMISSION_REVIEWS: &[&str] = &[
    r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$uid","allowed":true}}"#,
    r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$uid","allowed":false,"status":{"code":403,"message":"no","reason":"Forbidden","details":{"causes":[{"reason":"a","message":"b","field":"c"}]}},"warnings":["w"],"auditAnnotations":{"a":"b"}}}"#,
    r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$uid","allowed":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEveCIsInZhbHVlIjoieSJ9XQ=="}}"#,
    r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$uid","allowed":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6IiIsInZhbHVlIjp7fX1d"}}"#,
    r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"$uid","allowed":true,"patchType":"JSONPatch","patch":"eA=="}}"#,
    r#"{"kind":"Status","status":"Failure","message":"no","code":500}"#,
];

/// Responses of conversion webhooks.
pub(crate) const CONVERSION_REVIEWS: &[&str] = &[
    r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"$uid","result":{"status":"Success"},"convertedObjects":[{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"w","namespace":"default"},"spec":{"b":1}}]}}"#,
    r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"$uid","result":{"status":"Success"},"convertedObjects":[]}}"#,
    r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"$uid","result":{"status":"Failed","message":"no"}}}"#,
    r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"$uid","result":{"status":"Success"},"convertedObjects":[{"apiVersion":"example.com/v1","kind":"Other","metadata":{"name":"x","uid":"y","labels":{"a":1}}}]}}"#,
];
