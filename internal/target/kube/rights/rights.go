// Package rights is what this program may do in a cluster: the list, the check before it begins, and the manifests of a Role.
//
//	Of(kind) ──▶ Check: which of them does the user lack?     (check.go)
//	         └─▶ Manifests: a Role with exactly these         (manifests.go)
//	Job: arguments, target file ──▶ a run in the cluster      (job.go)
//
// One list serves both, so the Role that is shipped is the one that is checked.
package rights

import (
	"fmt"
	"slices"
	"strings"
)

// Right is one kind of objects and what is done with them.
type Right struct {
	Group    string // of the API; "": the core
	Resource string // "pods", or with a subresource "pods/portforward"
	Verbs    []string
	// Without says what does not work without it. Empty: nothing works.
	Without string
	Cluster bool // the objects are in no namespace: a ClusterRole grants it
}

func (r Right) String() string {
	name := r.Resource
	if r.Group != "" {
		name += "." + r.Group
	}
	return fmt.Sprintf("%s %s", strings.Join(r.Verbs, ", "), name)
}

// Kinds of VMs.
const (
	KindPod      = "pod"
	KindKubeVirt = "kubevirt"
)

// Kinds lists them, the default first.
func Kinds() []string { return []string{KindPod, KindKubeVirt} }

var (
	common = []Right{
		{Resource: "configmaps", Verbs: []string{"get", "list", "watch", "create", "delete"}},
		{Resource: "secrets", Verbs: []string{"get", "create", "update", "delete"}},
		{Resource: "persistentvolumeclaims", Verbs: []string{"get", "list", "watch", "create", "delete"}},
		{Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"get", "create", "update", "delete"}},
		{Resource: "events", Verbs: []string{"list"}, Without: "failures are reported without the events of the cluster"},
		{Resource: "resourcequotas", Verbs: []string{"list"}, Without: "quotas are not recorded"},
		{
			Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots", Verbs: []string{"get", "list", "watch", "create", "delete"},
			Without: "there are no snapshots",
		},
		{Resource: "nodes", Verbs: []string{"get", "list", "watch"}, Without: "the nodes are those of the target file", Cluster: true},
		{Group: "storage.k8s.io", Resource: "storageclasses", Verbs: []string{"get", "list"}, Without: "storage classes are not recorded", Cluster: true},
	}
	pod = []Right{
		{Resource: "pods", Verbs: []string{"get", "list", "watch", "create", "delete"}},
		{Resource: "pods/portforward", Verbs: []string{"get", "create"}, Without: "agents can only be reached at the addresses of their pods"},
	}
	kubeVirt = []Right{
		{Resource: "pods", Verbs: []string{"list", "watch", "delete"}}, // delete: of nodes that have failed
		{Group: "kubevirt.io", Resource: "virtualmachines", Verbs: []string{"get", "list", "watch", "create", "delete"}},
		{Group: "kubevirt.io", Resource: "virtualmachineinstances", Verbs: []string{"get", "list", "watch"}},
		{Group: "subresources.kubevirt.io", Resource: "virtualmachines/start", Verbs: []string{"update"}},
		{Group: "subresources.kubevirt.io", Resource: "virtualmachines/stop", Verbs: []string{"update"}},
		{
			Group: "subresources.kubevirt.io", Resource: "virtualmachineinstances/portforward", Verbs: []string{"get"},
			Without: "agents can only be reached at the addresses of their VMs",
		},
		{Group: "kubevirt.io", Resource: "virtualmachineinstancemigrations", Verbs: []string{"get", "list", "watch", "create", "delete"}, Without: unmoved},
		{Group: "kubevirt.io", Resource: "virtualmachines", Verbs: []string{"update"}, Without: unmoved},
		{Resource: "configmaps", Verbs: []string{"update"}, Without: unmoved},
		{Group: "cdi.kubevirt.io", Resource: "datavolumes", Verbs: []string{"get"}, Without: "claims of templates that are not filled yet are not noticed"},
		{Group: "kubevirt.io", Resource: "kubevirts", Verbs: []string{"list"}, Without: "the defaults of KubeVirt are not recorded", Cluster: true},
	}
)

const unmoved = "VMs cannot be moved to another node"

// Maintenance lists what draining a node and cutting its power need beside.
func Maintenance() []Right {
	const without = "nodes cannot be taken out of use"
	return []Right{
		{Resource: "nodes", Verbs: []string{"get", "list", "watch", "update"}, Without: without, Cluster: true},
		{Resource: "pods", Verbs: []string{"list"}, Without: without, Cluster: true},
		{Resource: "pods/eviction", Verbs: []string{"create"}, Without: without, Cluster: true},
	}
}

// Kubelets is the resource through which kubelets are read.
const Kubelets = "nodes/proxy"

// Metrics lists what reading the utilization of nodes and VMs needs beside. The first is enough; the others, for the metrics API, grant
// less: with nodes/proxy, a user can also run commands in the pods of all namespaces, by the kubelets.
func Metrics() []Right {
	const without = "metrics of nodes and VMs are those of the metrics API, or none"
	return []Right{
		{Resource: Kubelets, Verbs: []string{"get"}, Without: without, Cluster: true},
		{Group: "metrics.k8s.io", Resource: "pods", Verbs: []string{"list"}, Without: without},
		{Group: "metrics.k8s.io", Resource: "nodes", Verbs: []string{"list"}, Without: without, Cluster: true},
	}
}

// Of lists the rights for one kind of VMs.
func Of(kind string) []Right {
	if kind == KindKubeVirt {
		return slices.Concat(common, kubeVirt)
	}
	return slices.Concat(common, pod)
}
