package contract_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/kubelab"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/kube/rights"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// roleRules are those of the Role that is shipped; everywhere selects those of the ClusterRole instead.
func roleRules(everywhere bool) []kubelab.Rule {
	var rules []kubelab.Rule
	for _, r := range rights.Of(rights.KindPod) {
		if r.Cluster == everywhere {
			rules = append(rules, kubelab.Rule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: r.Verbs})
		}
	}
	return rules
}

// simulatedNodes are names of simulated nodes.
func simulatedNodes(t *testing.T, c *kubelab.Cluster, n int) []target.NodeConfig {
	t.Helper()
	names := strings.Fields(c.Kubectl(t, "get", "nodes", "-l", kubelab.SimulatedLabel+"=true", "-o", "name"))
	if len(names) < n {
		t.Fatalf("the cluster has the nodes %q", names)
	}
	slices.Sort(names)
	var list []target.NodeConfig
	for _, name := range names[:n] {
		list = append(list, target.NodeConfig{ID: strings.TrimPrefix(name, "node/")})
	}
	return list
}

// inNamespace is a target file for a namespace of the cluster, with the rights of the shipped Role alone.
func inNamespace(t *testing.T, c *kubelab.Cluster, namespace string) target.Config {
	t.Helper()
	return target.Config{
		Provider: kube.ProviderName, Nodes: simulatedNodes(t, c, 2),
		Options: map[string]string{
			"kubeconfig": c.Account(t, namespace, "bragg", roleRules(false)...), "namespace": namespace, "image": "any", "agents": "direct", "reserve": "off",
		},
	}
}

// On a real control plane, with no rights but those of the Role: VMs are created, switched, found again and deleted, on their nodes.
func TestRole(t *testing.T) {
	if testing.Short() {
		t.Skip("a control plane")
	}
	t.Parallel()
	c := kubelab.Shared(t)
	namespace := c.Namespace(t)
	config := inNamespace(t, c, namespace)
	tgt := openAs(t, config, authority(t))
	inventory, err := tgt.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(inventory.Nodes) != 2 || inventory.Nodes[0].ID != config.Nodes[0].ID {
		t.Errorf("nodes are %+v", inventory.Nodes)
	}
	tag := targettest.NewTag("run-1")
	vms, err := tgt.Create(t.Context(), tag, specs(config.Nodes, 4))
	if err != nil {
		t.Fatal(err)
	}
	power := tgt.(target.VMPower)
	if err := power.PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	again := openAs(t, config, nil)
	found, err := again.Owned(t.Context(), tag)
	if err != nil || len(found) != len(vms) {
		t.Fatalf("found %+v, %v", found, err)
	}
	for i, vm := range found {
		if vm.Power != target.PowerOn || vm.NodeID != config.Nodes[i%2].ID {
			t.Errorf("vm %+v", vm)
		}
	}
	if err := power.PowerOffVMs(t.Context(), tag, vms[:2]); err != nil {
		t.Fatal(err)
	}
	if err := again.Delete(t.Context(), tag, found); err != nil {
		t.Fatal(err)
	}
	if left := strings.TrimSpace(c.Kubectl(t, "get", "-n", namespace, "pods,pvc,configmaps,secrets", "-l", object.Ours, "-o", "name")); left != "" {
		t.Errorf("left are %s", left)
	}
}

// Everything that is missing is listed at once, before anything is changed.
func TestMissingRights(t *testing.T) {
	if testing.Short() {
		t.Skip("a control plane")
	}
	t.Parallel()
	c := kubelab.Shared(t)
	namespace := c.Namespace(t)
	config := inNamespace(t, c, namespace)
	config.Options["kubeconfig"] = c.Account(t, namespace, "stranger", kubelab.Rule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}})
	tgt := openAs(t, config, authority(t))
	_, err := tgt.Inventory(t.Context())
	if diag.ExitCode(err) != diag.ExitUnavailable {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"watch, create, delete pods", "secrets", "configmaps", "persistentvolumeclaims", "leases.coordination.k8s.io"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "events") {
		t.Errorf("%v names a right that is not needed", err)
	}
	if _, err := tgt.Create(t.Context(), targettest.NewTag("run-1"), specs(config.Nodes, 1)); err == nil {
		t.Error("created a VM without rights")
	}
}

// What the cluster refuses is reported in its own words.
func TestRefusals(t *testing.T) {
	if testing.Short() {
		t.Skip("a control plane")
	}
	c := kubelab.Shared(t)
	quota := "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small, namespace: %s}\nspec: {hard: {pods: \"1\", limits.memory: 1Gi}}\n"
	limit := "apiVersion: v1\nkind: LimitRange\nmetadata: {name: small, namespace: %s}\nspec: {limits: [{type: Container, max: {memory: 32Mi}}]}\n"
	claims := "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: storage, namespace: %s}\nspec: {hard: {requests.storage: 1Gi}}\n"
	for name, test := range map[string]struct {
		manifest   string
		change     func(*target.Config, []target.VMSpec)
		vms        int
		disks      []int64
		code, text string
	}{
		"quota of pods":     {manifest: quota, vms: 2, code: api.CodeQuota, text: "exceeded quota: small"},
		"quota of storage":  {manifest: claims, vms: 1, disks: []int64{2 << 30}, code: api.CodeQuota, text: "exceeded quota: storage"},
		"limit of a policy": {manifest: limit, vms: 1, code: api.CodeAdmission, text: "maximum memory usage per Container is 32Mi"},
		"security level":    {vms: 1, change: func(c *target.Config, _ []target.VMSpec) { c.Options["run_as_user"] = "0" }, code: api.CodeAdmission, text: "violates PodSecurity"},
		"too large": {
			vms: 1, change: func(c *target.Config, s []target.VMSpec) { c.Options["reserve"], s[0].VCPUs = "on", 4000 },
			code: "kube-unschedulable", text: "Insufficient cpu",
		},
		"no storage class": {vms: 1, disks: []int64{1 << 20}, code: "kube-claim-pending", text: "no persistent volumes available for this claim and no storage class is set"},
		"unknown class": {
			vms: 1, disks: []int64{1 << 20}, change: func(c *target.Config, _ []target.VMSpec) { c.Pool = "none" },
			code: "kube-claim-pending", text: `storageclass.storage.k8s.io "none" not found`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := c.Namespace(t)
			if test.manifest != "" {
				c.Apply(t, fmt.Sprintf(test.manifest, namespace))
			}
			if name == "security level" {
				c.Kubectl(t, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
			}
			config := inNamespace(t, c, namespace)
			list := specs(config.Nodes, test.vms, test.disks...)
			if test.change != nil {
				test.change(&config, list)
			}
			config.Options["patience"] = "3s"
			tgt := openAs(t, config, authority(t))
			tag := targettest.NewTag("run-1")
			vms, err := tgt.Create(t.Context(), tag, list)
			if err == nil {
				err = tgt.(target.VMPower).PowerOnVMs(t.Context(), tag, vms)
			}
			wantCode(t, err, test.code, test.text)
			owned, err := tgt.Owned(t.Context(), tag)
			if err != nil {
				t.Fatal(err)
			}
			if err := tgt.Delete(t.Context(), tag, owned); err != nil {
				t.Error(err)
			}
		})
	}
}

// A real API server accepts everything that is printed for a run in the cluster, with strict validation, for both kinds of VMs.
func TestManifestsAreStrict(t *testing.T) {
	if testing.Short() {
		t.Skip("a control plane")
	}
	t.Parallel()
	c := kubelab.Shared(t)
	namespace := c.Namespace(t)
	for _, kind := range rights.Kinds() {
		job := &rights.Job{
			Image: "example.com/bragg:1", Scenario: "four_corners", AgentImage: "example.com/bragg-agent:1", Class: "fast", RunsClass: "slow", RunsSize: "2Gi",
			Arguments: []string{"--rehearse", "60s", "--set", `x={"a": [1, 'b']} # $(HOME)`},
		}
		text, err := rights.Install{Namespace: namespace, Kind: kind, Nodes: true, Drain: true, Metrics: true, Job: job}.Manifests()
		if err != nil {
			t.Fatal(err)
		}
		said, err := c.TryKubectl(t.Context(), text, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		for _, want := range []string{"job.batch/bragg-run", "persistentvolumeclaim/bragg-runs", "configmap/bragg-target", "role.rbac.authorization.k8s.io/bragg"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: the server did not take %s: %s", kind, want, said)
			}
		}
	}
}
