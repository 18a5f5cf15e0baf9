// Package kubelab gives tests a Kubernetes cluster in namespaces of this machine: a real control plane, real nodes with kubelet and
// containerd, and simulated nodes where many are needed. It needs root, and no network.
//
//	test ──▶ keeper: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, simulated kubelets
//	 │        │ switch: a bridge; the API server answers there, and at the address of the service "kubernetes"
//	 │        ├──▶ node-1: containerd, kubelet ──▶ pods
//	 │        └──▶ node-2: …                       ▲
//	 └── interface of the cluster's network ───────┘ pods and nodes can be dialled
//
// The keeper is the first process of a PID namespace, each node is the first of one below it, with mounts and a network of its own. So
// a node loses power when one process is killed, and a cluster ends with one process, by the kernel's hand. It ends when the test's
// process does, however that ends. Beyond its folder a cluster has control groups, loop devices and a network interface on the
// machine; what is left of them after the keeper was killed too is removed when the next cluster is made.
//
// Nodes share the machine's kernel, processors and disk. Simulated nodes have no containers: nothing listens at the addresses of
// their pods.
package kubelab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/testreq"
)

// Options are what a cluster is made of. Without any node there is a control plane alone.
type Options struct {
	Nodes          int // real nodes, at most 8
	SimulatedNodes int // at most 1000, with room for 110 pods each
	// Housekeeping is how often kubelets read the counters of busy control groups; 0: as they do by themselves, every 10 to 16 s.
	Housekeeping time.Duration
}

const (
	nodesMax     = 8
	simulatedMax = 1000
)

// Names that are the same in all clusters.
const (
	// SimulatedLabel is "true" on simulated nodes, and missing on real ones.
	SimulatedLabel = "bragg.dev/simulated"
	// SimulatedPower is an annotation of simulated nodes: with the value "off" the node's lease is no longer renewed.
	SimulatedPower = "bragg.dev/power"
)

// Cluster is a cluster that runs.
type Cluster struct {
	Dir    string // everything of it
	Server string // URL of the API server, reachable from this process
	Nodes  []Node // the real ones

	program string // see testreq.Kubernetes
	keeper  *link
	agent   sync.Once // its image is there
}

// Node is a real node.
type Node struct {
	Name    string
	Address netip.Addr // reachable from this process, as its pods are
}

// Kubeconfig is the path of a kubeconfig with all rights.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "admin.kubeconfig") }

// New makes a cluster for the time of one test.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	c := start(t, o)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.LastWords())
		}
		if err := c.end(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// shared is the cluster of all tests of a test binary.
var shared struct {
	mu      sync.Mutex
	handled bool
	options Options
	cluster *Cluster
	failed  bool
}

// Main is what TestMain of a package with clusters calls: os.Exit(kubelab.Main(m, options)). The options are those of the shared
// cluster. The test binary is executed again for parts of clusters.
func Main(m *testing.M, o Options) int {
	if len(os.Args) > 1 && os.Args[1] == verb {
		return part(os.Args[2:])
	}
	shared.handled, shared.options = true, o
	code := m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if c := shared.cluster; c != nil {
		if code != 0 {
			fmt.Fprintln(os.Stderr, c.LastWords())
		}
		if err := c.end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// Shared returns the cluster of this test binary, which the first call makes and Main ends. Tests keep to namespaces of their own.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.failed {
		t.Fatal("the shared cluster did not start: see the first test that needed it")
	}
	if shared.cluster == nil {
		defer func() { shared.failed = t.Failed() }()
		shared.cluster = start(t, shared.options)
	}
	return shared.cluster
}

// start makes a cluster, or skips where this machine lacks what that needs.
func start(t testing.TB, o Options) *Cluster {
	t.Helper()
	p := require(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), upTimeLimit)
	defer cancel()
	c, err := up(ctx, o, p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// require skips where this machine lacks what a cluster needs.
func require(t testing.TB, o Options) programs {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a Kubernetes cluster")
	}
	if !shared.handled {
		t.Fatal("TestMain of this package must call kubelab.Main")
	}
	if o.Nodes < 0 || o.Nodes > nodesMax || o.SimulatedNodes < 0 || o.SimulatedNodes > simulatedMax {
		t.Fatalf("a cluster of %d nodes and %d simulated ones: want at most %d and %d", o.Nodes, o.SimulatedNodes, nodesMax, simulatedMax)
	}
	testreq.Root(t)
	p := programs{Kube: testreq.Kubernetes(t), Etcd: testreq.Program(t, "etcd"), Nsenter: testreq.Program(t, "nsenter")}
	if o.Nodes > 0 {
		for _, name := range []string{"containerd", "ctr", "runc", "losetup", "blkid", "mkfs.ext4"} {
			testreq.Program(t, name)
		}
		p.Containerd, p.Busybox = testreq.Program(t, "containerd"), testreq.Program(t, "busybox")
		if _, err := os.Stat(pluginDir); err != nil {
			testreq.Skip(t, "containernetworking-plugins is not installed")
		}
	}
	return p
}

// LastWords are the ends of all logs.
func (c *Cluster) LastWords() string { return lastWords(c.Dir) }

func lastWords(dir string) string {
	const bytesMax = 1500
	var all strings.Builder
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	more, _ := filepath.Glob(filepath.Join(dir, "nodes", "*", "*.log"))
	for _, path := range append(logs, more...) {
		text, err := os.ReadFile(path)
		if err != nil || len(text) == 0 {
			continue
		}
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&all, "--- %s ---\n%s\n", name, text[max(0, len(text)-bytesMax):])
	}
	return all.String()
}

// end removes the cluster and waits until nothing of it is left.
func (c *Cluster) end() error {
	err := c.keeper.end()
	left, looked := remains(c.Dir)
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("the cluster left %q", left))
	}
	return errors.Join(err, looked)
}

// PowerOff takes the power from a real node: all its processes are killed at once, the kubelet and containers included.
func (c *Cluster) PowerOff(t testing.TB, node string) {
	t.Helper()
	if err := c.keeper.request(order{Do: orderOff, Node: node}); err != nil {
		t.Fatal(err)
	}
}

// PowerOn boots a node that is off and returns when its kubelet answers.
func (c *Cluster) PowerOn(t testing.TB, node string) {
	t.Helper()
	if err := c.keeper.request(order{Do: orderOn, Node: node}); err != nil {
		t.Fatal(err)
	}
}
