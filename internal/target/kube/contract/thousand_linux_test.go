package contract_test

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/lab/kubelab"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// A thousand pods on simulated nodes: each is on its node, and the API server is called a bounded number of times. Objects are listed
// and watched once, however many pods there are.
func TestThousandPods(t *testing.T) {
	if testing.Short() {
		t.Skip("a control plane")
	}
	t.Parallel()
	const pods = 1000
	c := kubelab.Shared(t)
	namespace := c.Namespace(t)
	config := inNamespace(t, c, namespace)
	config.Nodes = simulatedNodes(t, c, 20)
	tgt := openAs(t, config, authority(t))
	tag := targettest.NewTag("run-1")
	vms, err := tgt.Create(t.Context(), tag, specs(config.Nodes, pods))
	if err != nil {
		t.Fatal(err)
	}
	if err := tgt.(target.VMPower).PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	for range 20 { // what a fleet polls costs nothing
		owned, err := tgt.Owned(t.Context(), tag)
		if err != nil || len(owned) != pods {
			t.Fatalf("%d VMs, %v", len(owned), err)
		}
		for i, vm := range owned {
			if vm.Power != target.PowerOn || vm.NodeID != config.Nodes[i%len(config.Nodes)].ID {
				t.Fatalf("vm %+v", vm)
			}
		}
	}
	if err := tgt.Delete(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	total := 0
	for _, r := range c.Requests(t, "system:serviceaccount:"+namespace+":bragg") {
		count[r.Verb+" "+r.Resource]++
		total++
	}
	t.Logf("%d calls: %v", total, count)
	// A watch begins again where its server ends it, as it does with those that read slowly; a list does not.
	const perPod, constant, lists, watches = 7, 60, 3, 40
	if total > perPod*pods+constant {
		t.Errorf("%d calls for %d pods, want at most %d for each: %v", total, pods, perPod, count)
	}
	for kind, n := range count {
		if strings.HasPrefix(kind, "list ") && n > lists || strings.HasPrefix(kind, "watch ") && n > watches {
			t.Errorf("%d times %s", n, kind)
		}
	}
}
