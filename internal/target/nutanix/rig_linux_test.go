package nutanix

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/trust"
)

// TestMain is also the agent in VMs.
func TestMain(m *testing.M) {
	harness().Main()
	if len(os.Args) > 1 && os.Args[1] == "__agent" {
		os.Exit(agent.Command(context.Background(), os.Args[2:], agent.Program{
			Generators: map[string]load.Generator{}, Version: "test", Stderr: os.Stderr,
		}))
	}
	testreq.Waiting(4)
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

const (
	template = "debian"
	quick    = 100 // divides the pauses of the client
)

// rig is an emulated Prism with an image, and hosts with BMCs.
type rig struct {
	*prism.Emulator
	config    target.Config
	authority *trust.Authority
}

func newRig(t *testing.T, o prism.Options) *rig {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return newRigOf(t, o, []string{self, "__agent"})
}

// newRigOf is newRig with another agent.
func newRigOf(t *testing.T, o prism.Options, agent []string) *rig {
	t.Helper()
	o.Agent = agent
	o.Credentials.Password = password
	e, err := prism.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	if _, err := e.AddImage("bragg-debian-12", strings.NewReader("system")); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &rig{Emulator: e, config: target.Config{
		Provider: "nutanix", Endpoint: e.URL, Fingerprint: e.Fingerprint, Templates: map[string]string{template: "bragg-debian-12"},
		Credentials: map[string]target.Credential{"platform": {User: e.Credentials.User, Secret: target.Secret{File: secret}}},
	}}
	if r.authority, err = trust.New("run-1", time.Hour); err != nil {
		t.Fatal(err)
	}
	return r
}

const password = "Tr0ub4dor-and-3"

// withBMCs gives the hosts BMCs, and lets the target file allow their use.
func (r *rig) withBMCs(t *testing.T) {
	t.Helper()
	var hosts []state.Host
	r.State.Read(func(d *state.Data) {
		for _, h := range d.Hosts {
			hosts = append(hosts, *h)
		}
	})
	for name, c := range targettest.Credentials(t) {
		r.config.Credentials[name] = c
	}
	for i, h := range hosts {
		uuid := fmt.Sprintf("5a3c1f00-0000-4000-8000-%012d", i)
		b := targettest.NewBMC(t, uuid, func(on bool) {
			if on {
				_ = r.RestoreHost(h.ID)
			} else {
				_ = r.CutHost(h.ID)
			}
		})
		r.config.Nodes = append(r.config.Nodes, target.NodeConfig{ID: h.Name, UUID: uuid, BMC: b.Config})
	}
	r.config.Allow = target.Allow{NodePower: true, CVMs: true, Maintenance: true}
}

func (r *rig) open(t *testing.T, authority *trust.Authority) target.Target {
	t.Helper()
	l, err := open(t.Context(), r.config, target.OpenOptions{Authority: authority}, quick)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := l.(target.NodeLimiter); ok {
		p.LimitNodesOff(1)
	}
	if p, ok := l.(powered); ok {
		p.bmcs.Tune(bmc.Options{Poll: 20 * time.Millisecond, Settle: 100 * time.Millisecond})
	}
	return l
}

// greet returns the boot of the agent at the other end.
func greet(ctx context.Context, conn net.Conn) (string, error) {
	hello, err := client.New(conn, client.Options{}).Hello(ctx)
	return hello.Boot, err
}

// path is the file of a disk of a VM.
func (r *rig) path(t *testing.T, vm target.VM, d target.Disk) string {
	t.Helper()
	path := ""
	r.State.Read(func(data *state.Data) {
		for _, one := range data.VM(vm.ID).Disks {
			if one.Bus == "SCSI" && "/dev/"+target.DiskName(one.Index) == d.Device {
				path = r.DiskPath(one.ID)
			}
		}
	})
	if path == "" {
		t.Fatalf("vm %q has no disk %s", vm.Name, d.Device)
	}
	return path
}

func (r *rig) writeDisk(t *testing.T, vm target.VM, d target.Disk, offset int64, data []byte) {
	t.Helper()
	f, err := os.OpenFile(r.path(t, vm, d), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, offset); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) readDisk(t *testing.T, vm target.VM, d target.Disk, offset int64, length int) []byte {
	t.Helper()
	f, err := os.Open(r.path(t, vm, d))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data := make([]byte, length)
	if _, err := f.ReadAt(data, offset); err != nil {
		t.Fatal(err)
	}
	return data
}

// leftovers are VMs and recovery points.
func (r *rig) leftovers() (left []string) {
	r.State.Read(func(d *state.Data) {
		for _, vm := range d.VMs {
			left = append(left, "vm "+vm.Name)
		}
		for _, p := range d.Points {
			left = append(left, "recovery point "+p.Name)
		}
		for _, c := range d.Categories {
			if c.Key == leaseKey {
				left = append(left, "lease "+c.Description)
			}
		}
	})
	return left
}

// specs describes n VMs with one small disk, spread over the nodes.
func specs(t *testing.T, l target.Target, group string, n int) []target.VMSpec {
	t.Helper()
	inventory, err := l.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := make([]target.VMSpec, n)
	for i := range all {
		all[i] = target.VMSpec{
			Name: fmt.Sprintf("%s-%04d", group, i+1), Group: group, Ordinal: i, Template: template, VCPUs: 1, RAMBytes: 256 << 20,
			DiskBytes: []int64{4 << 20}, NodeID: inventory.Nodes[i%len(inventory.Nodes)].ID,
		}
	}
	return all
}
