package rehearsal

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/kubelab"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
)

// What a cluster refuses ends the real program with the exit code that is documented and the cluster's own words, and leaves nothing.
func TestFailedRuns(t *testing.T) {
	programtest.SoakOnly(t, "runs on a real cluster for minutes")
	for name, c := range map[string]struct {
		change func(t *testing.T, r *rig)
		code   int
		text   string
		vms    int // on each node, 0: 1
	}{
		"quota": {
			func(t *testing.T, r *rig) {
				r.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small, namespace: %s}\nspec: {hard: {pods: \"1\"}}\n", r.namespace))
			}, diag.ExitUndecided, "exceeded quota: small", 0,
		},
		"admission": {
			func(t *testing.T, r *rig) {
				r.config.Options["run_as_user"] = "0"
				r.Kubectl(t, "label", "namespace", r.namespace, "pod-security.kubernetes.io/enforce=restricted")
			}, diag.ExitUndecided, "violates PodSecurity", 0,
		},
		"no room": {
			func(_ *testing.T, r *rig) {
				r.config.Options["reserve"], r.config.Options["patience"] = "on", "5s"
			}, diag.ExitUndecided, "Insufficient cpu", 2,
		},
		// A user who may not list nodes names them: the scheduler sees first that they have other labels.
		"no such node": {
			func(t *testing.T, r *rig) {
				r.Kubectl(t, "delete", "clusterrolebinding", r.namespace+"-"+account)
				for _, n := range r.Nodes[:2] {
					r.config.Nodes = append(r.config.Nodes, target.NodeConfig{ID: n.Name})
				}
				r.config.Options["node_selector"], r.config.Options["patience"] = "rack=none", "5s"
			}, diag.ExitUndecided, "didn't match Pod's node affinity/selector", 0,
		},
		"image": {
			func(_ *testing.T, r *rig) { r.config.Options["image"] = "registry.invalid/none:1" }, diag.ExitUndecided, "ErrImageNeverPull", 0,
		},
		"full storage": {
			func(_ *testing.T, r *rig) {
				r.config.Pool, r.config.Options["patience"] = kubelab.StorageClassFull, "20s"
			}, diag.ExitUndecided, kubelab.FullMessage, 0,
		},
		"expired token": {
			func(t *testing.T, r *rig) {
				path := "/api/v1/namespaces/" + r.namespace + "/serviceaccounts/" + account
				if _, err := r.admin.Raw(t.Context(), http.MethodDelete, path, nil); err != nil {
					t.Fatal(err)
				}
			}, diag.ExitUnavailable, "Unauthorized", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			u := newUser(t, r)
			c.change(t, r)
			if err := os.WriteFile(u.File, []byte(targetFile(r.config)), 0o600); err != nil {
				t.Fatal(err)
			}
			runs := filepath.Join(t.TempDir(), "runs")
			if err := os.Mkdir(runs, 0o700); err != nil {
				t.Fatal(err)
			}
			code, out := u.command(t, u.Arguments(programtest.Rehearsal{Scenario: "four_corners", Length: "5s", Set: []string{fmt.Sprint("vms_per_node=", max(1, c.vms))}}, runs)...)
			t.Logf("exit code %d\n%s", code, out)
			if code != c.code || !strings.Contains(out, c.text) {
				t.Errorf("exit code %d, want %d and %q", code, c.code, c.text)
			}
			u.search(t, runs)
			if left := r.left(t); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}
