package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/target/vsphere"
)

func TestMain(m *testing.M) {
	harness().Main()
	goleak.VerifyTestMain(m)
}

func specs(ctx context.Context, v target.Target, n int) []target.VMSpec {
	inventory, err := v.Inventory(ctx)
	if err != nil {
		log.Fatal(err)
	}
	all := make([]target.VMSpec, n)
	for i := range all {
		all[i] = target.VMSpec{
			Name: fmt.Sprintf("OLTP-%04d", i+1), Group: "OLTP", Ordinal: i, Template: "linux", VCPUs: 1, RAMBytes: 512 << 20,
			DiskBytes: []int64{4 << 20}, NodeID: inventory.Nodes[i%len(inventory.Nodes)].ID,
		}
	}
	return all
}

// rig is a vCenter of one test.
type rig struct {
	*vcsim.Server
	dir, file string
	config    target.Config
	tag       target.Tag
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s, err := vcsim.Start(vcsim.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	r := &rig{Server: s, dir: t.TempDir(), tag: targettest.NewTag("run-1")}
	r.parse(t, "")
	return r
}

func (r *rig) parse(t *testing.T, more string) {
	t.Helper()
	text, err := r.TargetFile(r.dir, more)
	if err != nil {
		t.Fatal(err)
	}
	r.file = r.dir + "/target.yml"
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, list := target.ParseConfig(r.file, []byte(text), []target.Provider{vsphere.Provider()})
	if len(list) > 0 {
		t.Fatal(list)
	}
	r.config = c
}

func (r *rig) open(t *testing.T) target.Target {
	t.Helper()
	v, err := vsphere.Provider().Open(t.Context(), r.config, target.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func (r *rig) create(t *testing.T, v target.Target, n int) []target.VM {
	t.Helper()
	vms, err := v.Create(t.Context(), r.tag, specs(t.Context(), v, n))
	if err != nil {
		t.Fatal(err)
	}
	return vms
}

// left lists the VMs that are not those of the user.
func (r *rig) left() []string {
	var all []string
	for name := range r.VMs() {
		if name != vcsim.Foreign && name != vcsim.Template {
			all = append(all, name)
		}
	}
	return all
}

// noSecret fails if a text holds the password of the vCenter.
func noSecret(t *testing.T, what string, v any) {
	t.Helper()
	text := fmt.Sprintf("%v %+v %#v", v, v, v)
	if encoded, err := json.Marshal(v); err == nil {
		text += string(encoded)
	}
	if strings.Contains(text, vcsim.Password) {
		t.Errorf("%s holds the password: %.300s", what, text)
	}
}
