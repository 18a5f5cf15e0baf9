package rehearsal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/braggdev/bragg/internal/lab/kubelab"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/kube/rights"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/trust"
)

// account is the service account of tests in each namespace.
const account = "bragg"

// rig is a namespace of the shared cluster, and a target file for it.
type rig struct {
	*kubelab.Cluster
	admin     *api.Client
	namespace string
	config    target.Config
	token     string // of the account
	authority *trust.Authority
}

// newRig makes a namespace as bragg kube install says, whose account has the rights of load and of maintenance.
func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigs(t, 1)[0]
}

// Nodes are in two pairs: on the first are loads, and the nodes of the second may be drained and lose their power.
const (
	pairLabel = "pair"
	loads     = "loads"
	faults    = "faults"
)

var (
	labelled  sync.Once
	faultLock sync.Mutex // held by the test that changes nodes
)

// shared returns the cluster of all tests.
func shared(t *testing.T) *kubelab.Cluster {
	t.Helper()
	c := kubelab.Shared(t)
	labelled.Do(func() {
		for i, n := range c.Nodes {
			pair := loads
			if i >= len(c.Nodes)/2 {
				pair = faults
			}
			c.Kubectl(t, "label", "node", n.Name, pairLabel+"="+pair)
		}
	})
	return c
}

// newRigs makes several at once, with fewer calls.
func newRigs(t *testing.T, n int) []*rig {
	t.Helper()
	c := shared(t)
	rigs := make([]*rig, n)
	var manifests strings.Builder
	for i := range rigs {
		rigs[i] = &rig{Cluster: c, namespace: "t-" + strings.ToLower(rand.Text()[:10])}
		text, err := rights.Install{Namespace: rigs[i].namespace, Nodes: true, Drain: true}.Manifests()
		if err != nil {
			t.Fatal(err)
		}
		manifests.WriteString("---\n" + text)
	}
	c.Apply(t, manifests.String())
	for _, r := range rigs {
		r.furnish(t)
	}
	return rigs
}

// furnish gives a rig what its namespace does not hold.
func (r *rig) furnish(t *testing.T) {
	t.Helper()
	var err error
	if r.authority, err = trust.New("run-1", time.Hour); err != nil {
		t.Fatal(err)
	}
	if r.admin, err = api.New(api.Access{Kubeconfig: r.Kubeconfig(), Namespace: r.namespace}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			events, _ := r.TryKubectl(context.Background(), "", "get", "events,pods,pvc", "-n", r.namespace, "-o", "wide")
			t.Log(events)
		}
		if _, err := r.admin.Raw(context.Background(), http.MethodDelete, "/api/v1/namespaces/"+r.namespace, nil); err != nil {
			t.Error(err)
		}
		r.admin.Close()
	})
	// Pods need the default account, which a controller makes.
	for _, err = r.get(t, "serviceaccounts/default"); api.NotFound(err); _, err = r.get(t, "serviceaccounts/default") {
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.config = target.Config{
		Provider: kube.ProviderName, Pool: kubelab.StorageClass, Endpoint: r.Server, CAFile: filepath.Join(r.Dir, "ca.crt"),
		Credentials: map[string]target.Credential{"platform": {Secret: target.Secret{File: r.newToken(t, 12*time.Hour)}}},
		Options: map[string]string{
			"namespace": r.namespace, "image": r.AgentImage(t), "image_pull_policy": "Never", "agents": "direct", "reserve": "off", "snapshot_class": kubelab.SnapshotClass,
			"node_selector": pairLabel + "=" + loads,
		},
	}
}

// get reads an object of the namespace.
func (r *rig) get(t *testing.T, what string) ([]byte, error) {
	return r.admin.Raw(t.Context(), http.MethodGet, "/api/v1/namespaces/"+r.namespace+"/"+what, nil)
}

// newToken writes a token of the account to a file.
func (r *rig) newToken(t *testing.T, life time.Duration) (path string) {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":%d}}`, int(life.Seconds()))
	text, err := r.admin.Raw(t.Context(), http.MethodPost, "/api/v1/namespaces/"+r.namespace+"/serviceaccounts/"+account+"/token", []byte(body))
	var answer struct{ Status struct{ Token string } }
	if err = errors.Join(err, json.Unmarshal(text, &answer)); err != nil {
		t.Fatal(err)
	}
	r.token = answer.Status.Token
	path = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(r.token), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// onFaultNodes moves the target to the nodes that may be changed, until the end of the test.
func (r *rig) onFaultNodes(t *testing.T) {
	t.Helper()
	faultLock.Lock()
	t.Cleanup(faultLock.Unlock)
	r.config.Options["node_selector"] = pairLabel + "=" + faults
}

// withBMCs gives the nodes that may be changed BMCs that switch them.
func (r *rig) withBMCs(t *testing.T) {
	t.Helper()
	r.onFaultNodes(t)
	r.config.Credentials = maps.Clone(r.config.Credentials)
	maps.Copy(r.config.Credentials, targettest.Credentials(t))
	r.config.Allow.NodePower = true
	for _, n := range r.Nodes[len(r.Nodes)/2:] {
		seen, err := api.Get[corev1.Node](t.Context(), r.admin, api.Nodes, n.Name)
		if err != nil {
			t.Fatal(err)
		}
		b := targettest.NewBMC(t, seen.Status.NodeInfo.SystemUUID, r.powerOf(t, n.Name))
		r.config.Nodes = append(r.config.Nodes, target.NodeConfig{ID: n.Name, BMC: b.Config})
	}
}

// powerOf switches a node. A BMC does not wait until its machine has booted.
func (r *rig) powerOf(t *testing.T, node string) func(on bool) {
	var one sync.Mutex
	var booting sync.WaitGroup
	t.Cleanup(func() {
		booting.Wait()
		r.PowerOn(t, node)
	})
	return func(on bool) {
		one.Lock()
		if !on {
			defer one.Unlock()
			r.PowerOff(t, node)
			return
		}
		booting.Go(func() {
			defer one.Unlock()
			r.PowerOn(t, node)
		})
	}
}

// open opens the target as a program does that can reach agents.
func (r *rig) open(t *testing.T) target.Target {
	t.Helper()
	opened, err := kube.Provider().Open(t.Context(), r.config, target.OpenOptions{Dir: t.TempDir(), Authority: r.authority})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	if l, ok := opened.(target.NodeLimiter); ok {
		l.LimitNodesOff(1)
	}
	return opened
}

// left lists what there is of VMs in the namespace.
func (r *rig) left(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, kind := range []api.Resource{api.Pods, api.Claims, api.ConfigMaps, api.Secrets, api.Snapshots} {
		all, err := api.List[struct {
			metav1.ObjectMeta `json:"metadata"`
		}](t.Context(), r.admin, kind, metav1.ListOptions{LabelSelector: object.Ours})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			list = append(list, kind.Resource+"/"+o.Name)
		}
	}
	return list
}

// specs describes VMs with one small disk on the nodes for loads.
func (r *rig) specs(n int) []target.VMSpec {
	list := make([]target.VMSpec, n)
	for i := range list {
		list[i] = target.VMSpec{
			Name: fmt.Sprintf("OLTP-%04d", i+1), Group: "OLTP", Ordinal: i, Template: "any", VCPUs: 1, RAMBytes: 64 << 20, DiskBytes: []int64{4 << 20},
			NodeID: r.Nodes[i%(len(r.Nodes)/2)].Name,
		}
	}
	return list
}
