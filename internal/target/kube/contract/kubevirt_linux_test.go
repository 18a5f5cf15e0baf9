package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/lab/kubelab"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/kube/rights"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// definition makes a kind of KubeVirt known to an API server. Nothing acts on its objects.
const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]ss.kubevirt.io}
spec:
  group: kubevirt.io
  scope: Namespaced
  names: {kind: %[1]s, plural: %[2]ss, singular: %[2]s}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
`

// On a real API server, the Role that is shipped for VMs of KubeVirt is enough to make them, to change their nodes and to remove them.
func TestRoleOfKubeVirt(t *testing.T) {
	if testing.Short() {
		t.Skip("a control plane")
	}
	t.Parallel()
	c := kubelab.Shared(t)
	var all strings.Builder
	for _, kind := range []string{"VirtualMachine", "VirtualMachineInstance", "VirtualMachineInstanceMigration"} {
		fmt.Fprintf(&all, definition, kind, strings.ToLower(kind))
	}
	c.Apply(t, all.String())
	c.Kubectl(t, "wait", "--for=condition=Established", "--timeout=60s", "crd/virtualmachines.kubevirt.io", "crd/virtualmachineinstances.kubevirt.io",
		"crd/virtualmachineinstancemigrations.kubevirt.io")
	namespace := c.Namespace(t)
	config := inNamespace(t, c, namespace)
	var rules []kubelab.Rule
	for _, r := range rights.Of(rights.KindKubeVirt) {
		if !r.Cluster {
			rules = append(rules, kubelab.Rule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: r.Verbs})
		}
	}
	config.Options["kubeconfig"] = c.Account(t, namespace, "virtual", rules...)
	config.Options["kind"], config.Options["access_mode"] = rights.KindKubeVirt, "ReadWriteMany"
	tgt := openAs(t, config, authority(t))
	tag := targettest.NewTag("run-1")
	vms, err := tgt.Create(t.Context(), tag, specs(config.Nodes[:1], 2))
	if err != nil {
		t.Fatal(err)
	}
	to := config.Nodes[1].ID
	if err := tgt.(target.Migrator).MigrateVMs(t.Context(), tag, vms[:1], to); err != nil {
		t.Fatal(err)
	}
	if at := c.Kubectl(t, "get", "-n", namespace, "virtualmachine", vms[0].ID, "-o", "jsonpath={.spec.template.spec.affinity}"); !strings.Contains(at, to) {
		t.Errorf("affinity is %s, want %s", at, to)
	}
	again := openAs(t, config, nil)
	found, err := again.Owned(t.Context(), tag)
	if err != nil || len(found) != 2 || found[0].NodeID != to || found[1].NodeID != config.Nodes[0].ID {
		t.Fatalf("found %+v, %v", found, err)
	}
	if err := again.Delete(t.Context(), tag, found); err != nil {
		t.Fatal(err)
	}
	if left := strings.TrimSpace(c.Kubectl(t, "get", "-n", namespace, "virtualmachines,pods,pvc,configmaps,secrets", "-l", object.Ours, "-o", "name")); left != "" {
		t.Errorf("left are %s", left)
	}
}
