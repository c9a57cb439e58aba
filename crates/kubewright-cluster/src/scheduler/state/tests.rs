//! Scheduling decisions and messages.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn node(name: &str, more: Value) -> Node {
    let mut node = json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "status": { "allocatable": { "cpu": "2", "memory": "4Gi", "pods": "10" } },
    });
    merge(&mut node, more);
    serde_json::from_value(node).unwrap()
}

fn pod(name: &str, spec: Value) -> Pod {
    let mut pod = json!({
        "metadata": { "name": name, "namespace": "default", "uid": name, "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "a" }] },
    });
    merge(&mut pod["spec"], spec);
    serde_json::from_value(pod).unwrap()
}

fn asking(name: &str, cpu: &str) -> Pod {
    pod(name, json!({ "containers": [{ "name": "a", "resources": { "requests": { "cpu": cpu } } }] }))
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn state(nodes: &[Node]) -> State {
    let mut state = State::default();
    for node in nodes {
        state.node(node);
    }
    state
}

fn place(state: &mut State, pod: &Pod) -> Result<String, String> {
    match state.decide(&Key::of(pod), pod) {
        Decision::Place(node) => Ok(node),
        Decision::Unschedulable(why) => Err(why),
        Decision::AlreadyPlaced => Err("known".to_owned()),
        Decision::Preempt { preemption: Preemption { node, victims }, .. } => {
            let victims: Vec<&str> = victims.iter().map(Key::name).collect();
            Err(format!("{node} without {}", victims.join(" and ")))
        }
    }
}

/// The scheduling failure of a pod, without the part about preemption.
fn refusal(nodes: &[Node], pod: &Pod) -> String {
    let why = place(&mut state(nodes), pod).expect_err("it fits nowhere");
    why.split_once(". no new claims").map_or(why.clone(), |(why, _)| why.to_owned())
}

#[test]
fn pods_of_one_controller_are_spread_over_nodes() {
    let mut state = state(&[node("a", json!({})), node("b", json!({})), node("c", json!({}))]);
    let mut nodes: Vec<String> =
        ["1", "2", "3"].iter().map(|name| place(&mut state, &pod(name, json!({}))).unwrap()).collect();
    nodes.sort();
    assert_eq!(nodes, ["a", "b", "c"]);
}

#[test]
fn a_decision_counts_before_the_api_server_confirms_it() {
    let mut state = state(&[node("a", json!({}))]);
    assert_eq!(place(&mut state, &asking("1", "1500m")).as_deref(), Ok("a"));
    assert_eq!(
        place(&mut state, &asking("2", "600m")).unwrap_err(),
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are \
         available: 1 No preemption victims found for incoming pod."
    );
    assert_eq!(
        state.decide(&Key::namespaced("default", "1"), &asking("1", "1500m")),
        Decision::AlreadyPlaced
    );
    assert_eq!(state.forget(&Key::namespaced("default", "1")), [Key::namespaced("default", "2")]);
    assert_eq!(place(&mut state, &asking("2", "600m")).as_deref(), Ok("a"));
}

#[test]
fn each_filter_has_upstreams_message() {
    let plain = || pod("1", json!({}));
    assert_eq!(place(&mut state(&[]), &plain()).unwrap_err(), "no nodes available to schedule pods");
    let closed = node("a", json!({ "spec": { "unschedulable": true } }));
    let tainted =
        node("b", json!({ "spec": { "taints": [{ "key": "k", "value": "v", "effect": "NoSchedule" }] } }));
    assert_eq!(
        refusal(&[closed, tainted], &plain()),
        "0/2 nodes are available: 1 node(s) had untolerated taint {k: v}, 1 node(s) were unschedulable"
    );
    let picky = pod("1", json!({ "nodeSelector": { "disk": "ssd" } }));
    assert_eq!(
        refusal(&[node("a", json!({}))], &picky),
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector"
    );
    let full = node("a", json!({ "status": { "allocatable": { "pods": "0" } } }));
    assert_eq!(
        refusal(&[full], &asking("1", "3")),
        "0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods"
    );
}

#[test]
fn a_toleration_lets_a_pod_onto_a_tainted_node() {
    let tainted =
        node("a", json!({ "spec": { "taints": [{ "key": "k", "value": "v", "effect": "NoSchedule" }] } }));
    for (toleration, fits) in [
        (json!({ "operator": "Exists" }), true),
        (json!({ "key": "k", "operator": "Exists" }), true),
        (json!({ "key": "k", "value": "v" }), true),
        (json!({ "key": "k", "value": "v", "effect": "NoExecute" }), false),
        (json!({ "key": "k", "value": "w" }), false),
    ] {
        let pod = pod("1", json!({ "tolerations": [toleration] }));
        assert_eq!(place(&mut state(std::slice::from_ref(&tainted)), &pod).is_ok(), fits, "{toleration}");
    }
}

#[test]
fn node_affinity_is_required_or_preferred() {
    let zone = |name: &str, zone: &str| node(name, json!({ "metadata": { "labels": { "zone": zone } } }));
    let term = |operator: &str| json!({ "matchExpressions": [{ "key": "zone", "operator": operator, "values": ["2"] }] });
    let required = |operator: &str| {
        json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [term(operator)] } } } })
    };
    for (operator, node) in [("In", "b"), ("NotIn", "a"), ("Gt", "c"), ("Lt", "a")] {
        let mut state = state(&[zone("a", "1"), zone("b", "2"), zone("c", "3")]);
        assert_eq!(place(&mut state, &pod("1", required(operator))).as_deref(), Ok(node), "{operator}");
    }
    let preferred = json!({ "affinity": { "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": term("In") }] } } });
    let mut state = state(&[zone("a", "1"), zone("b", "2")]);
    assert_eq!(place(&mut state, &pod("1", preferred)).as_deref(), Ok("b"));
}

#[test]
fn pod_affinity_and_anti_affinity_are_respected() {
    let terms = json!([{ "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": "kubernetes.io/hostname" }]);
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let apart = json!({ "affinity": { "podAntiAffinity": { required: terms } } });
    let together = json!({ "affinity": { "podAffinity": { required: terms } } });
    let nodes = [node("a", json!({})), node("b", json!({}))];

    let mut state = state(&nodes);
    let first = place(&mut state, &pod("1", apart.clone())).unwrap();
    let second = place(&mut state, &pod("2", apart.clone())).unwrap();
    assert_ne!(first, second);
    let why = place(&mut state, &pod("3", apart)).unwrap_err();
    assert!(
        why.starts_with("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."),
        "{why}"
    );
    let why = place(&mut state, &pod("4", json!({}))).unwrap_err();
    assert!(why.contains("2 node(s) didn't satisfy existing pods anti-affinity rules"), "{why}");

    let mut state = super::tests::state(&nodes);
    let first = place(&mut state, &pod("1", together.clone())).expect("the first of its kind goes anywhere");
    assert_eq!(place(&mut state, &pod("2", together)).unwrap(), first);
}

#[test]
fn a_removed_pod_or_node_no_longer_repels_other_pods() {
    let terms = json!([{ "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": "kubernetes.io/hostname" }]);
    let apart = json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } } });
    let mut state = state(&[node("a", json!({}))]);
    assert_eq!(place(&mut state, &pod("1", apart.clone())).as_deref(), Ok("a"));
    assert!(state.nodes.has_avoiding_pods());
    state.forget(&Key::namespaced("default", "1"));
    assert!(!state.nodes.has_avoiding_pods());
    assert_eq!(place(&mut state, &pod("2", json!({}))).as_deref(), Ok("a"));
    state.forget(&Key::namespaced("default", "2"));

    assert_eq!(place(&mut state, &pod("3", apart)).as_deref(), Ok("a"));
    state.node_gone("a");
    assert!(!state.nodes.has_avoiding_pods());
    // The pod counts again when its node returns.
    state.node(&node("a", json!({})));
    assert!(place(&mut state, &pod("4", json!({}))).is_err());
}

#[test]
fn searches_start_where_the_last_one_ended() {
    let names: Vec<String> = (0..250).map(|number| format!("n{number:03}")).collect();
    let nodes: Vec<Node> = names.iter().map(|name| node(name, json!({}))).collect();
    let mut state = state(&nodes);
    let enough = enough(names.len());
    place(&mut state, &pod("1", json!({}))).unwrap();
    assert_eq!(state.turn, names[enough]);
    place(&mut state, &pod("2", json!({}))).unwrap();
    assert_eq!(state.turn, names[2 * enough % names.len()]);
}

#[test]
fn pods_are_spread_over_zones() {
    let zone = |name: &str, zone: &str| node(name, json!({ "metadata": { "labels": { "zone": zone } } }));
    let spread = json!({ "topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "web" } } }] });
    let mut state = state(&[zone("a", "1"), zone("b", "1"), zone("c", "2")]);
    let mut counts = BTreeMap::<String, usize>::new();
    for number in 0..4 {
        let node = place(&mut state, &pod(&number.to_string(), spread.clone())).unwrap();
        *counts.entry(if node == "c" { "2" } else { "1" }.to_owned()).or_default() += 1;
    }
    assert_eq!(counts, BTreeMap::from([("1".to_owned(), 2), ("2".to_owned(), 2)]));
    let bare = [node("a", json!({}))];
    assert!(refusal(&bare, &pod("1", spread)).ends_with("(missing required label)"));
}

#[test]
fn a_new_or_changed_node_requeues_waiting_pods() {
    let mut state = state(&[]);
    let (key, waiting) = (Key::namespaced("default", "1"), pod("1", json!({})));
    place(&mut state, &waiting).unwrap_err();
    assert_eq!(state.node(&node("a", json!({}))), std::slice::from_ref(&key));
    assert_eq!(state.node(&node("a", json!({}))), [], "nothing changed");
    assert_eq!(state.node_gone("a"), [key]);
}

fn of_priority(priority: i32, mut pod: Pod) -> Pod {
    pod.spec.get_or_insert_default().priority = Some(priority);
    pod
}

#[test]
fn a_higher_priority_pod_preempts_and_keeps_the_node_reserved() {
    let mut state = state(&[node("a", json!({})), node("b", json!({ "spec": { "unschedulable": true } }))]);
    for (name, priority, cpu) in [("dear", 5, "500m"), ("cheap", 1, "600m"), ("cheaper", 0, "700m")] {
        assert_eq!(place(&mut state, &of_priority(priority, asking(name, cpu))).as_deref(), Ok("a"));
    }
    let urgent = of_priority(9, asking("urgent", "900m"));
    let never = |priority| {
        let mut pod = of_priority(priority, asking("polite", "900m"));
        pod.spec.get_or_insert_default().preemption_policy = Some("Never".to_owned());
        pod
    };
    assert!(
        place(&mut state, &never(9)).unwrap_err().ends_with(
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. no new claims to deallocate, \
             preemption: not eligible due to preemptionPolicy=Never."
        )
    );
    state.forget(&Key::namespaced("default", "polite"));
    assert!(place(&mut state, &of_priority(0, asking("same", "900m"))).unwrap_err().ends_with(
        "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    ));
    state.forget(&Key::namespaced("default", "same"));

    let why = match state.decide(&Key::namespaced("default", "urgent"), &urgent) {
        Decision::Preempt { why, preemption } => {
            assert_eq!(preemption.node, "a");
            assert_eq!(preemption.victims, [Key::namespaced("default", "cheaper")], "200m are free");
            why
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(why, "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.");
    let message = place(&mut state, &urgent).unwrap_err();
    assert!(message.ends_with("not eligible due to a terminating pod on the nominated node."), "{message}");
    // A recreated victim does not get the reserved place.
    assert_eq!(state.forget(&Key::namespaced("default", "cheaper")), [Key::namespaced("default", "urgent")]);
    place(&mut state, &of_priority(0, asking("back", "700m"))).expect_err("the place is taken");
    assert_eq!(place(&mut state, &urgent).as_deref(), Ok("a"));
}

#[test]
fn preemption_picks_the_node_with_the_cheapest_victims() {
    let mut state = state(&[node("a", json!({})), node("b", json!({})), node("c", json!({}))]);
    for (name, on, priority) in [("1", "a", 3), ("2", "b", 1), ("3", "c", 1), ("4", "c", 1)] {
        let half = if on == "c" { "1" } else { "2" };
        let mut pod = of_priority(priority, asking(name, half));
        pod.spec.get_or_insert_default().node_name = Some(on.to_owned());
        state.placed(&Key::of(&pod), &pod);
    }
    assert_eq!(place(&mut state, &of_priority(9, asking("x", "2"))).unwrap_err(), "b without 2");
    let more = place(&mut state, &of_priority(9, asking("y", "2"))).unwrap_err();
    assert!(more == "c without 3 and 4" || more == "c without 4 and 3", "{more}");
    assert_eq!(place(&mut state, &of_priority(9, asking("z", "2"))).unwrap_err(), "a without 1");
    // A pod with a higher priority displaces nominated pods.
    assert_eq!(place(&mut state, &of_priority(10, asking("first", "1"))).unwrap_err(), "b without 2");
}

#[test]
fn preemption_resolves_anti_affinity() {
    let terms = json!([{ "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": "kubernetes.io/hostname" }]);
    let apart = json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } } });
    let mut state = state(&[node("a", json!({}))]);
    assert_eq!(place(&mut state, &pod("1", json!({}))).as_deref(), Ok("a"));
    assert_eq!(place(&mut state, &of_priority(1, pod("2", apart))).unwrap_err(), "a without 1");
}

#[test]
fn a_large_cluster_is_searched_partially() {
    assert_eq!(
        (enough(50), enough(100), enough(1000), enough(5000), enough(10_000)),
        (50, 100, 420, 500, 500)
    );
}

proptest! {
    #[test]
    fn no_node_is_overcommitted(asks in prop::collection::vec(0_u32..1500, 1..40), nodes in 1_usize..5) {
        let nodes: Vec<Node> = (0..nodes).map(|number| node(&format!("n{number}"), json!({}))).collect();
        let mut state = state(&nodes);
        for (number, cpu) in asks.iter().enumerate() {
            let pod = asking(&number.to_string(), &format!("{cpu}m"));
            let refused = place(&mut state, &pod).is_err();
            let fits = state.nodes.values().any(|node_info| {
                node_info.pods.len() < 10 && 2000 - node_info.used.get("cpu").copied().unwrap_or_default() >= i64::from(*cpu)
            });
            prop_assert!(!(refused && fits), "a pod waits although it fits");
        }
        for node_info in state.nodes.values() {
            let sum: i64 = node_info.pods.values().filter_map(|pod| pod.shape.requests.get("cpu")).sum();
            prop_assert_eq!(sum, node_info.used.get("cpu").copied().unwrap_or_default());
            prop_assert!(sum <= 2000 && node_info.pods.len() <= 10);
        }
    }
}
