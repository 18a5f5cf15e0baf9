// Package kube is the target for Kubernetes clusters: pods with volumes as VMs, or VMs of KubeVirt.
//
//	Create ──▶ ConfigMap with the VM's record and mark ──▶ a claim for each disk ──▶ bound volumes       (create.go, disks)
//	PowerOnVMs ──▶ Secret with the agent's identity ──▶ pod on the VM's node ──▶ container runs          (pods.go, pod.go)
//	PowerOffVMs ──▶ pod deleted, and gone                                                                (pods.go)
//	Delete ──▶ pod, snapshots, claims ──▶ Secret ──▶ ConfigMap: what is left can be found by its mark    (delete.go)
//
// The ConfigMap is made first and deleted last, so there is always an object that names the owner of a volume. Objects carry
// the mark in an annotation, and its begin in a label, by which they are listed: no finalizer keeps them when this program dies.
// Objects are listed once and watched from then on (package api), so that waiting for a thousand pods takes few calls.
//
// A pod is not a machine: it shares the kernel and the page cache of its node, and the power of a pod is the life of its
// processes. Target is composed of parts, each with the capabilities of one subject.
package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/agentlink"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/disks"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/kube/rights"
	"github.com/braggdev/bragg/internal/target/kube/virt"
)

// ProviderName is as target files spell it.
const ProviderName = "kubernetes"

// Target is a namespace of a cluster.
type Target struct {
	*cluster    // nodes, rights, lock, what others have there
	*builder    // Create, CloneVM
	*remover    // Owned, Delete
	*operations // power of VMs
	*agents     // connections to agents
	*reports    // events of the platform
	*maintenance
	*metrics // of nodes and pods
	power    *nodePower
}

var (
	_ target.Target       = (*Target)(nil)
	_ target.AgentDialer  = (*Target)(nil)
	_ target.Addresser    = (*Target)(nil)
	_ target.VMPower      = (*Target)(nil)
	_ target.Cloner       = (*Target)(nil)
	_ target.ReadyChecker = (*Target)(nil)
	_ target.Locker       = (*Target)(nil)
	_ target.OtherLister  = (*Target)(nil)
	_ target.HostChecker  = (*Target)(nil)
	_ target.EventWatcher = (*Target)(nil)
	_ target.Maintainer   = (*Target)(nil)
	_ target.NodeMeter    = (*Target)(nil)
	_ target.VMMeter      = (*Target)(nil)
	_ target.Limited      = (*Target)(nil)
)

// Provider is the entry of the list of providers.
func Provider() target.Provider {
	return target.Provider{
		Name:       ProviderName,
		Summary:    "Kubernetes clusters: pods with volumes as VMs, or VMs of KubeVirt",
		FindsNodes: true,
		Open:       open,
	}
}

func open(ctx context.Context, c target.Config, o target.OpenOptions) (target.Target, error) {
	s, err := readSettings(c)
	if err != nil {
		return nil, err
	}
	client, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	if s.kind == rights.KindKubeVirt {
		if err := virt.Installed(ctx, client); err != nil {
			client.Close()
			return nil, err
		}
	}
	t := assemble(c, o, s, client)
	if !slices.ContainsFunc(c.Nodes, func(n target.NodeConfig) bool { return n.BMC != nil }) {
		return compose(ctx, t)
	}
	if t.power.bmcs, err = bmc.OpenNodes(ctx, c, t.power); err != nil {
		client.Close()
		return nil, err
	}
	return compose(ctx, t)
}

// connect prepares the client as the target file says.
func connect(ctx context.Context, c target.Config) (*api.Client, error) {
	a := api.Access{
		Endpoint: c.Endpoint, Trust: c.Trust("the API server"), Kubeconfig: c.Options["kubeconfig"], Context: c.Options["context"],
		Namespace: c.Options["namespace"], UserAgent: "bragg",
	}
	if a.Kubeconfig != "" {
		a.Kubeconfig = c.FilePath(a.Kubeconfig)
	}
	if c.Endpoint == "" {
		return api.New(a)
	}
	for _, name := range []string{"platform", "api_key"} {
		given, ok := c.Credentials[name]
		if !ok {
			continue
		}
		var err error
		if a.Token, err = given.Secret.Read(ctx); err != nil {
			return nil, fmt.Errorf("credential %q: %w", name, err)
		}
		return api.New(a)
	}
	return nil, &diag.Error{
		Code: "kube-credential", Exit: diag.ExitData, Message: "an endpoint needs a credential \"platform\" with the token of a service account",
		Hint: "or omit the endpoint: then the kubeconfig is used",
	}
}

func assemble(c target.Config, o target.OpenOptions, s settings, client *api.Client) *Target {
	hosts := newCluster(c, s, client, o.Leases)
	power := &nodePower{cluster: hosts}
	hosts.power = power
	locks := &target.KeyLocks{}
	claims := disks.NewClaims(client, disks.Options{Class: s.class, Access: s.access, Patience: s.patience})
	builds := &builder{cluster: hosts, claims: claims, snapshots: disks.NewSnapshots(client, s.snapshotClass, s.patience), settings: s}
	calls := &agents{cluster: hosts, mode: s.agents}
	told, figures := &reports{cluster: hosts}, &metrics{cluster: hosts}
	if s.kind == rights.KindKubeVirt {
		m := newMachines(hosts, s, o.Authority)
		launchers := api.NewMirror[pod](client, api.Pods, object.Ours)
		builds.machines, calls.vms, told.vms, hosts.runner, hosts.watched = m, m, m, m, []waiter{m.virt, launchers}
		figures.pods = launchers
	} else {
		p := newPods(hosts, s, client, o.Authority)
		calls.vms, told.vms, hosts.runner, hosts.watched = p, p, p, []waiter{p.mirror}
		figures.pods = p.mirror
	}
	calls.link = &agentlink.Dialer{Authority: o.Authority, AddressOf: calls.AddressOf, MayAnswer: calls.mayAnswer, Dial: calls.dial}
	return &Target{
		cluster: hosts, power: power, agents: calls, reports: told, builder: builds, metrics: figures,
		remover:     &remover{cluster: hosts, claims: claims, snapshots: builds.snapshots, run: hosts.runner, agents: calls, locks: locks},
		maintenance: &maintenance{cluster: hosts, locks: &target.KeyLocks{}, limit: evictMax},
		operations:  &operations{cluster: hosts, run: hosts.runner, agents: calls, locks: locks},
	}
}

// TuneBMCs sets how BMCs are switched, before their first use: simulated ones need less patience than real ones.
func (t *Target) TuneBMCs(o bmc.Options) { t.power.bmcs.Tune(o) }

// Close ends the connections to agents and all watches. VMs and volumes stay.
func (t *Target) Close() error {
	t.link.Close()
	t.client.Close()
	t.cluster.records.Wait()
	t.cluster.hosts.Wait()
	t.builder.claims.Wait()
	t.builder.snapshots.Wait()
	for _, m := range t.cluster.watched {
		m.Wait()
	}
	return nil
}

func displayName(c target.Config, namespace string) string {
	return cmp.Or(c.Name, "namespace "+namespace)
}
