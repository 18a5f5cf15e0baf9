package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
)

// bootPod is how long a pod takes whose image is on the node.
const bootPod = 5 * time.Second

// Inventory describes the nodes and what the user may do. It returns an error that lists all rights that are missing.
func (t *Target) Inventory(ctx context.Context) (target.Inventory, error) {
	lacks, err := t.allowed(ctx)
	if err != nil {
		return target.Inventory{}, err
	}
	if err := t.premises(ctx); err != nil {
		return target.Inventory{}, err
	}
	nodes, err := t.nodes(ctx)
	if err != nil {
		return target.Inventory{}, err
	}
	c := t.cluster.config
	i := target.Inventory{
		Provider: ProviderName, Name: displayName(c, t.client.Namespace), Templates: slices.Sorted(maps.Keys(c.Templates)),
		AnyTemplate: len(c.Templates) == 0, Replication: c.Replication, PowerAllowed: c.Allow.NodePower, MaintenanceAllowed: c.Allow.Maintenance, Overcommits: !t.cluster.settings.pods.Reserve,
		Boots: map[string]target.Boot{},
	}
	if m := t.builder.machines; m != nil {
		m.describe(&i)
	} else {
		i.Simulates = map[target.Capability]string{
			target.CapVMPower: "a pod is not a machine: power off ends its processes, and unsynced data stay in the page cache of its node",
		}
		for _, name := range i.Templates {
			i.Boots[name] = target.Boot{Alone: bootPod, Basis: "assumed, with the image on the node", AgentOnly: true}
		}
	}
	for _, n := range nodes {
		i.Nodes = append(i.Nodes, n.describe())
	}
	i.Facts = slices.Concat(c.Facts, t.facts(ctx, nodes), t.metrics.facts(), lacks.Facts(), t.power.bmcs.Facts())
	return i, nil
}

// facts are what a report must say of the cluster. What cannot be read is missing.
func (t *Target) facts(ctx context.Context, nodes []node) []target.Fact {
	facts := []target.Fact{{Name: "namespace", Value: t.client.Namespace}}
	add := func(name, value string) { facts = append(facts, target.Fact{Name: name, Value: value}) }
	if version, err := t.client.Version(ctx); err == nil {
		add("Kubernetes", version)
	}
	s := t.cluster.settings
	mode := modeFilesystem
	if s.pods.Block {
		mode = modeBlock
	}
	add("volume mode", mode)
	add("access mode", string(s.access))
	if m := t.builder.machines; m != nil {
		facts = append(facts, m.virt.Facts(ctx)...)
	}
	if class, ok := t.class(ctx); ok {
		add("storage class", className(class))
		add("CSI driver", class.Provisioner)
		add("reclaim policy", reclaim(class))
		if text := parameters(class.Parameters); text != "" {
			add("parameters of the storage class", text)
		}
	} else if s.class != "" {
		add("storage class", s.class)
	}
	by := map[string][]string{}
	for _, n := range nodes {
		if n.seen != nil {
			info := n.seen.Status.NodeInfo
			text := fmt.Sprintf("kubelet %s, %s, kernel %s, %s", info.KubeletVersion, info.OSImage, info.KernelVersion, info.ContainerRuntimeVersion)
			by[text] = append(by[text], n.config.ID)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(by)) {
		add("software of "+strings.Join(by[text], ", "), api.Words(text))
	}
	quotas, _ := api.List[corev1.ResourceQuota](ctx, t.client, api.Quotas, metav1.ListOptions{})
	for _, q := range quotas {
		add("quota "+q.Name, usage(q))
	}
	return facts
}

const defaultClass = "storageclass.kubernetes.io/is-default-class"

// class returns the storage class of volumes.
func (t *Target) class(ctx context.Context) (storagev1.StorageClass, bool) {
	list, err := api.List[storagev1.StorageClass](ctx, t.client, api.StorageClasses, metav1.ListOptions{})
	if err != nil {
		return storagev1.StorageClass{}, false
	}
	for _, one := range list {
		if name := t.cluster.settings.class; one.Name == name || name == "" && one.Annotations[defaultClass] == "true" {
			return one, true
		}
	}
	return storagev1.StorageClass{}, false
}

func className(c storagev1.StorageClass) string {
	if c.VolumeBindingMode != nil {
		return c.Name + ", binding " + string(*c.VolumeBindingMode)
	}
	return c.Name
}

func reclaim(c storagev1.StorageClass) string {
	if c.ReclaimPolicy == nil || *c.ReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return "Delete"
	}
	return string(*c.ReclaimPolicy) + ": the volumes of deleted VMs stay in the storage until an administrator removes them"
}

// parameters leaves out names of secrets.
func parameters(all map[string]string) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !strings.Contains(strings.ToLower(key), "secret") {
			texts = append(texts, key+"="+all[key])
		}
	}
	return api.Words(strings.Join(texts, ", "))
}

func usage(q corev1.ResourceQuota) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		used, hard := q.Status.Used[name], q.Status.Hard[name]
		texts = append(texts, fmt.Sprintf("%s %s of %s", name, used.String(), hard.String()))
	}
	return api.Words(strings.Join(texts, ", "))
}
