package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/kubelock"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/kube/rights"
)

// cluster is the namespace with its records of VMs, and the nodes.
type cluster struct {
	config   target.Config
	settings settings
	client   *api.Client
	records  *api.Mirror[corev1.ConfigMap]
	hosts    *api.Mirror[corev1.Node]
	runner   runner
	watched  []waiter // what the runner watches
	power    *nodePower
	leases   string // scope

	checking sync.Mutex
	checked  bool
	lacks    rights.Lacks
}

func newCluster(c target.Config, s settings, client *api.Client, leases string) *cluster {
	return &cluster{
		config: c, settings: s, client: client, leases: leases, records: api.NewMirror[corev1.ConfigMap](client, api.ConfigMaps, object.Ours),
		hosts: api.NewMirror[corev1.Node](client, api.Nodes, labels.Set(s.pods.Selector).String()),
	}
}

// usable returns why the target cannot be used any more.
func (c *cluster) usable(ctx context.Context) error {
	if c.client.Closed() {
		return api.ErrClosed
	}
	return context.Cause(ctx)
}

// allowed checks once whether the user has the rights that are needed, and lists all that are missing.
func (c *cluster) allowed(ctx context.Context) (rights.Lacks, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	c.checking.Lock()
	defer c.checking.Unlock()
	if !c.checked {
		lacks, err := rights.Check(ctx, c.client, rights.Of(c.settings.kind))
		if err != nil {
			return nil, err
		}
		c.lacks = lacks
		c.checked = lacks.Err(c.client.Namespace) == nil // rights may be granted meanwhile
	}
	return c.lacks, c.lacks.Err(c.client.Namespace)
}

// Lock takes the Lease of the namespace.
func (c *cluster) Lock(ctx context.Context, h lease.Holder) (target.Lock, error) {
	if _, err := c.allowed(ctx); err != nil {
		return nil, err
	}
	group, err := lease.Together(ctx, h, []lease.Place{kubelock.Place{Client: c.client, Scope: c.leases}})
	if err != nil {
		return nil, err
	}
	return group, nil
}

// node is one node, as the cluster and the target file describe it.
type node struct {
	config target.NodeConfig
	seen   *corev1.Node // nil: the user may not read nodes
}

func (n node) describe() target.Node {
	one := target.Node{ID: n.config.ID, Name: n.config.Name, Address: n.config.Address, HasBMC: n.config.BMC != nil}
	if one.Name == "" {
		one.Name = one.ID
	}
	if n.seen == nil {
		return one
	}
	one.CPUs, one.RAMBytes = int(n.seen.Status.Allocatable.Cpu().Value()), n.seen.Status.Allocatable.Memory().Value()
	for _, a := range n.seen.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && one.Address == "" {
			one.Address = a.Address
		}
	}
	return one
}

// unready returns why no pod can be started on a node; "": it can, as far as that is known.
func (n node) unready() string {
	if n.seen == nil {
		return ""
	}
	for _, condition := range n.seen.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return "is not ready: " + api.Words(condition.Message)
		}
	}
	if n.seen.Spec.Unschedulable {
		return "is cordoned"
	}
	return ""
}

// nodes lists the nodes in the order of node slices: those of the target file, then all others by name. Control plane nodes, and
// others whose taints the target file does not tolerate, are left out: no VM could run there.
func (c *cluster) nodes(ctx context.Context) ([]node, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	var all []node
	for _, config := range c.config.Nodes {
		all = append(all, node{config: config})
	}
	found, err := c.hosts.All(ctx)
	if api.Forbidden(err) {
		if len(all) > 0 {
			return all, nil
		}
		return nil, &diag.Error{
			Code: "kube-no-nodes", Exit: diag.ExitUnavailable, Message: "the user may not list the nodes of the cluster, and the target file has none",
			Hint: "write their names below nodes: in the target file, or grant the ClusterRole that bragg kube install prints", Err: err,
		}
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b api.Seen[corev1.Node]) int { return strings.Compare(a.Name, b.Name) })
	for i := range found {
		one := &found[i].Object
		at := slices.IndexFunc(all, func(n node) bool { return n.config.ID == one.Name })
		if at >= 0 {
			all[at].seen = one
		} else if tolerated(one, c.settings.pods.Tolerations) {
			all = append(all, node{config: target.NodeConfig{ID: one.Name}, seen: one})
		}
	}
	for _, n := range all {
		if n.seen == nil {
			return nil, &diag.Error{
				Code: "kube-no-nodes", Exit: diag.ExitData, Message: fmt.Sprintf("node %q of the target file: the cluster has no such node", n.config.ID),
				Hint: "kubectl get nodes lists them; options of the target file may exclude it (node_selector)",
			}
		}
	}
	if len(all) == 0 {
		return nil, &diag.Error{Code: "kube-no-nodes", Exit: diag.ExitUnavailable, Message: "the cluster has no node where VMs could run"}
	}
	return all, nil
}

// lifeTaints are of nodes that are down or cordoned for now: they are still nodes of the target.
const lifeTaints = "node.kubernetes.io/"

func tolerated(n *corev1.Node, tolerations []corev1.Toleration) bool {
	for _, taint := range n.Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || strings.HasPrefix(taint.Key, lifeTaints) {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
			return (t.Effect == "" || t.Effect == taint.Effect) && t.Key == taint.Key && (t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
		}) {
			return false
		}
	}
	return true
}

// node returns the node with that id.
func (c *cluster) node(ctx context.Context, id string) (node, error) {
	all, err := c.nodes(ctx)
	if err != nil {
		return node{}, err
	}
	for _, n := range all {
		if n.config.ID == id {
			return n, nil
		}
	}
	return node{}, fmt.Errorf("find node %q: no such node", id)
}

// podsOn lists the pods on a node, of all namespaces.
func (c *cluster) podsOn(ctx context.Context, nodeID string) ([]corev1.Pod, error) {
	return api.Everywhere[corev1.Pod](ctx, c.client, api.Pods, metav1.ListOptions{FieldSelector: "spec.nodeName=" + nodeID})
}

// Ready returns nil when the user has the needed rights and all nodes are ready.
func (c *cluster) Ready(ctx context.Context) error {
	if _, err := c.allowed(ctx); err != nil {
		return err
	}
	all, err := c.nodes(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range all {
		if why := n.unready(); why != "" {
			errs = append(errs, fmt.Errorf("node %q %s", n.config.ID, why))
		} else if c.power.off(ctx, n.config.ID) {
			errs = append(errs, fmt.Errorf("node %q has no power", n.config.ID))
		}
	}
	return errors.Join(errs...)
}

// HostUp returns nil when the cluster calls the node ready.
func (c *cluster) HostUp(ctx context.Context, nodeID string) error {
	n, err := c.node(ctx, nodeID)
	if err != nil {
		return err
	}
	if why := n.unready(); why != "" && !n.seen.Spec.Unschedulable {
		return fmt.Errorf("node %q %s", nodeID, why)
	}
	return nil
}

// owned returns the records with the mark, in no order.
func (c *cluster) owned(ctx context.Context, mark string) ([]object.Record, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	all, err := c.records.All(ctx)
	if err != nil {
		return nil, err
	}
	var list []object.Record
	for i := range all {
		if r, ok := object.ReadRecord(&all[i].Object); ok && r.Mark == mark {
			list = append(list, r)
		}
	}
	return list, nil
}

// find returns the records of VMs, in the order of vms. One that does not exist is an error, or with orGone nil. If any is foreign,
// the result is an error.
func (c *cluster) find(ctx context.Context, tag target.Tag, vms []target.VM, orGone bool) ([]*object.Record, error) {
	if err := errors.Join(tag.Check(), c.usable(ctx)); err != nil {
		return nil, err
	}
	all, err := c.records.All(ctx)
	if err != nil {
		return nil, err
	}
	byID := map[string]object.Record{}
	for i := range all {
		if r, ok := object.ReadRecord(&all[i].Object); ok {
			byID[r.VM.ID] = r
		}
	}
	list := make([]*object.Record, len(vms))
	for i, vm := range vms {
		r, ok := byID[vm.ID]
		switch {
		case !ok && !orGone:
			return nil, fmt.Errorf("vm %q does not exist", vm.Name)
		case ok && r.Mark != tag.Mark():
			return nil, target.Foreign(fmt.Sprintf("vm %q", vm.Name))
		case ok:
			list[i] = &r
		}
	}
	return list, nil
}

// eachMax bounds how many VMs one call processes at the same time. Most of them wait for the cluster, which limits the rate of
// calls by itself.
const eachMax = 64

// onEach calls do for VMs, which errors name, several at a time. A nil record is skipped.
func onEach(ctx context.Context, action string, list []*object.Record, do func(r object.Record) error) error {
	return each(ctx, len(list), func(i int) error {
		if list[i] == nil {
			return nil
		}
		name := list[i].VM.Name
		ended := target.Observe(ctx, name)
		err := do(*list[i])
		ended(err)
		if err != nil {
			return fmt.Errorf("%s vm %q: %w", action, name, err)
		}
		return nil
	})
}

// each is target.Each for many VMs: of errors that differ in names only it returns the first.
func each(ctx context.Context, n int, do func(i int) error) error {
	return errors.Join(few(target.EachOf(ctx, n, eachMax, do))...)
}
