use kubewright_macros::rbac;

struct Operator;

impl Operator {
    #[rbac(groups = "", resources = "pods", verbs = "get")]
    const PODS: &'static str = "pods";
}

trait Reads {
    #[rbac(groups = "", resources = "pods", verbs = "get")]
    fn read(&self);
}

#[rbac(groups = "", resources = "pods", verbs = "get")]
type Alias = Operator;

fn main() {}
