package kubelab_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/kubelab"
)

func TestMain(m *testing.M) { os.Exit(kubelab.Main(m, kubelab.Options{Nodes: 3, SimulatedNodes: 100})) }

// A thousand pods run on simulated nodes only as far as the API server can see, and that is what tests of placement need.
func TestThousandPods(t *testing.T) {
	t.Parallel()
	c := kubelab.Shared(t)
	ns := c.Namespace(t)
	const pods = 1000
	c.Apply(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: many, namespace: %s}
spec:
  replicas: %d
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec:
      nodeSelector: {%s: "true"}
      terminationGracePeriodSeconds: 0
      containers: [{name: agent, image: none}]
`, ns, pods, kubelab.SimulatedLabel))
	begin := time.Now()
	c.Kubectl(t, "rollout", "status", "-n", ns, "deployment/many", "--timeout=240s")
	t.Logf("%d pods ran after %v", pods, time.Since(begin))
	out := c.Kubectl(t, "get", "pods", "-n", ns, "-o", `jsonpath={range .items[*]}{.spec.nodeName} {.status.phase} {.status.podIP}{"\n"}{end}`)
	lines := strings.Fields(strings.ReplaceAll(strings.TrimSpace(out), " ", "\t"))
	nodes, addresses := map[string]int{}, map[string]bool{}
	for chunk := range slices.Chunk(lines, 3) {
		nodes[chunk[0]]++
		addresses[chunk[2]] = true
		if chunk[1] != "Running" {
			t.Fatalf("pod %q", chunk)
		}
	}
	if len(addresses) != pods || len(nodes) < 50 {
		t.Errorf("%d addresses on %d nodes, want %d on most nodes", len(addresses), len(nodes), pods)
	}
}

// An account can do what its rules allow and no more, and its requests are listed.
func TestAccount(t *testing.T) {
	t.Parallel()
	c := kubelab.Shared(t)
	ns := c.Namespace(t)
	config := c.Account(t, ns, "runner", kubelab.Rule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
	as := func(args ...string) error {
		_, err := c.TryKubectl(t.Context(), "", append([]string{"--kubeconfig=" + config}, args...)...)
		return err
	}
	if err := as("get", "pods"); err != nil {
		t.Error(err)
	}
	if err := as("get", "secrets"); err == nil || !strings.Contains(err.Error(), "secrets is forbidden") {
		t.Errorf("listing Secrets: %v", err)
	}
	var got []string
	for _, r := range c.Requests(t, "system:serviceaccount:"+ns+":runner") {
		if r.Resource != "" { // discovery
			got = append(got, fmt.Sprint(r.Verb, " ", r.Resource, " ", r.Namespace, " ", r.Code))
		}
	}
	if want := []string{"list pods " + ns + " 200", "list secrets " + ns + " 403"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
}
