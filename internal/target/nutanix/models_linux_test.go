package nutanix

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/testreq"
)

// recorded are the requests of version 4 that change something, as JSON lines.
type recorded struct {
	mu    sync.Mutex
	lines bytes.Buffer
	seen  map[string]bool
}

// before records the requests of a gate.
func (c *recorded) before(gate http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodOptions && strings.Contains(r.URL.Path, "/v4.") {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			line, _ := json.Marshal(map[string]string{"method": r.Method, "path": r.URL.Path, "body": string(body)})
			c.mu.Lock()
			c.lines.Write(append(line, '\n'))
			c.seen[r.Method+" "+filepath.Base(r.URL.Path)] = true
			c.mu.Unlock()
		}
		gate.ServeHTTP(w, r)
	})
}

// fixed makes a VM with an address that is not by DHCP, and removes it.
func (r *rig) fixed(t *testing.T, c *ahv.Cluster) error {
	t.Helper()
	s := ahv.Spec{Name: "fixed", Sockets: 1, Cores: 1, RAMBytes: 1 << 30, UserData: []byte("#cloud-config")}
	r.State.Read(func(d *state.Data) {
		s.Host, s.Image, s.Container, s.Subnet = d.Hosts[0].ID, d.Images[0].ID, d.Containers[0].ID, d.Subnets[0].ID
		address := d.Subnets[0].Prefix.Addr().As4()
		address[3] = 200
		s.Address = netip.AddrFrom4(address).String()
	})
	id, err := c.Create(t.Context(), s, uuid.New())
	if err != nil {
		return err
	}
	return c.Delete(t.Context(), id)
}

// Requests have the fields, types, values and lengths that the models of Nutanix's SDKs have, also for objects that are read, changed and
// written back.
func TestRequestsFitModels(t *testing.T) {
	if testing.Short() {
		t.Skip("needs Python and Nutanix's SDKs")
	}
	python := testreq.NutanixPython(t)
	r := newRig(t, prism.Options{})
	r.config.Allow = target.Allow{Maintenance: true, ContainerSettings: true}
	requests := &recorded{seen: map[string]bool{}}
	r.Front(requests.before)
	l, err := open(t.Context(), r.config, target.OpenOptions{Authority: r.authority, Dir: t.TempDir()}, quick)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tag := targettest.NewTag("run-1")
	lock, err := l.(target.Locker).Lock(t.Context(), lease.NewHolder("run-1", 0))
	if err != nil {
		t.Fatal(err)
	}
	long := specs(t, l, strings.Repeat("a-rather-long-name-", 6), 2)
	if err := life(t.Context(), l, tag, long, specs(t, l, "CLONE", 1)); err != nil {
		t.Fatal(err)
	}
	vms, err := l.Create(t.Context(), tag, specs(t, l, "OLTP", 1))
	if err != nil {
		t.Fatal(err)
	}
	s, yes := l.(*Target), true
	for _, change := range []func() error{
		func() error { return s.SnapshotVMs(t.Context(), tag, vms, strings.Repeat("long", 50)) },
		func() error { return s.RevertVMs(t.Context(), tag, vms, strings.Repeat("long", 50)) },
		func() error { return s.EnterMaintenance(t.Context(), vms[0].NodeID) },
		func() error { return s.ExitMaintenance(t.Context(), vms[0].NodeID) },
		func() error { return s.SetContainer(t.Context(), tag, target.ContainerSettings{Compression: &yes}) },
		func() error { return s.RestoreContainer(t.Context(), tag) },
		func() error { return r.fixed(t, s.cluster.ahv) },
		func() error { return l.Delete(t.Context(), tag, vms) },
		lock.Unlock,
	} {
		if err := change(); err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{"POST vms", "POST clone", "POST revert", "POST migrate-to-host", "POST recovery-points", "POST categories", "POST enter-host-maintenance"} {
		if !requests.seen[want] {
			t.Errorf("no %s among %v", want, requests.seen)
		}
	}
	script, err := os.ReadFile(filepath.Join("testdata", "models.py"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", string(script))
	cmd.Stdin = &requests.lines
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
