package agentvm

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/trust"
)

func hello(t *testing.T, a *trust.Authority, vm, address string) string {
	t.Helper()
	var conn net.Conn
	var err error
	for range 100 { // it may not listen yet
		if conn, err = tls.Dial("tcp", net.JoinHostPort(address, agentPort), a.Controller(vm)); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(conn, client.Options{})
	defer c.Close()
	h, err := c.Hello(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if h.VM != vm {
		t.Errorf("the agent of %q answers as %q", vm, h.VM)
	}
	return h.Boot
}

// A VM is a real agent with its own identity, address and disks; its disks survive a power cut.
func TestMachines(t *testing.T) {
	testreq.Root(t)
	if testing.Short() {
		t.Skip("builds the agent")
	}
	dir := t.TempDir()
	agent := filepath.Join(dir, "bragg-agent")
	if err := testreq.Build(dir, "github.com/braggdev/bragg/cmd/bragg-agent"); err != nil {
		t.Fatal(err)
	}
	authority, err := trust.New("run", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	m := &Machines{Agent: agent, Dir: dir}
	defer m.Close()
	boots := map[string]bool{}
	var vms []VM
	for i, name := range []string{"OLTP-0001", "OLTP-0002"} {
		files, err := authority.Agent(name)
		if err != nil {
			t.Fatal(err)
		}
		user, _, _, err := image.CloudInit(image.Guest{InstanceID: fmt.Sprint("i-", i), VM: name, Listen: ":7401", MetricsListen: "10.0.0.1:7402",
			VCPUs: 1, RAMBytes: 1 << 30, Identity: files})
		if err != nil {
			t.Fatal(err)
		}
		disk := filepath.Join(dir, name)
		if err := os.WriteFile(disk, bytes.Repeat([]byte{byte(i + 1)}, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		vms = append(vms, VM{ID: name, UserData: user, Address: fmt.Sprintf("127.201.%d.%d", os.Getpid()%250, i+1),
			Disks: []Disk{{"/dev/sdb", disk}, {"/dev/disk/by-id/data", disk}}})
	}
	for range 2 {
		for i, v := range vms {
			if err := errors.Join(m.Start(v), m.Start(v)); err != nil {
				t.Fatal(err)
			}
			boot := hello(t, authority, v.ID, v.Address)
			if boots[boot] || !m.Running(v.ID) {
				t.Errorf("%s answers as an earlier process", v.ID)
			}
			boots[boot] = true
			root := fmt.Sprintf("/proc/%d/root/dev/", m.on[v.ID].process.Process.Pid)
			for _, name := range []string{"sdb", "disk/by-id/data"} {
				if got, err := os.ReadFile(root + name); err != nil || len(got) != 1<<20 || got[0] != byte(i+1) {
					t.Errorf("%s sees %d bytes as %s: %v", v.ID, len(got), name, err)
				}
			}
		}
		for _, v := range vms {
			m.Stop(v.ID)
			m.Stop(v.ID)
			if m.Running(v.ID) {
				t.Errorf("%s runs without power", v.ID)
			}
			if c, err := net.Dial("tcp", net.JoinHostPort(v.Address, agentPort)); err == nil {
				_ = c.Close()
				t.Errorf("%s answers without power", v.ID)
			}
		}
	}
	if err := m.Start(VM{ID: "other", UserData: []byte("#cloud-config\nhostname: x\n")}); err != nil || m.Running("other") {
		t.Errorf("a VM without an agent: %v", err)
	}
	if err := m.Start(VM{ID: "hostile", UserData: vms[0].UserData, Address: "127.0.0.9", Disks: []Disk{{"/etc/passwd", "/dev/null"}}}); err == nil {
		t.Error("a disk outside of /dev was taken")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "vm-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	m.Close()
	if err := m.Start(vms[0]); err == nil {
		t.Error("closed machines were started")
	}
}
