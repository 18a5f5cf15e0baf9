package ssh_test

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
	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/ssh"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/trust"
)

// TestMain is also the program on hosts: the host's half, and agents.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch {
		case os.Args[1] == hostvm.Verb:
			os.Exit(hostvm.Command(context.Background(), os.Args[2:], "test"))
		case strings.HasPrefix(os.Args[1], "{"):
			os.Exit(agent.Command(context.Background(), os.Args[1:], agent.Program{
				Generators: map[string]load.Generator{}, Version: "test", Stderr: os.Stderr,
			}))
		}
	}
	os.Exit(m.Run())
}

// rig is hosts with a folder for their VMs, and one for temporary files, in which no other test leaves any.
type rig struct {
	*testreq.SSH
	pool      string
	temps     string
	authority *trust.Authority
}

func newRig(t *testing.T, count int) *rig {
	t.Helper()
	if testing.Short() {
		t.Skip("needs servers of ssh")
	}
	// Short: it is found in command lines, and the path of a socket has a bound.
	pool, err := os.MkdirTemp("", "bragg-pool")
	if err != nil {
		t.Fatal(err)
	}
	temps, err := os.MkdirTemp("", "bragg-temp")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{SSH: testreq.SSHD(t, count, "TMPDIR="+temps), pool: pool, temps: temps}
	t.Cleanup(func() {
		if left := r.left(); len(left) > 0 {
			t.Errorf("left on hosts: %q", left)
		}
		_ = os.RemoveAll(pool)
		_ = os.RemoveAll(temps)
	})
	if r.authority, err = trust.New("run-1", time.Hour); err != nil {
		t.Fatal(err)
	}
	return r
}

// left lists what VMs left on the hosts: files, and processes in their folders.
func (r *rig) left() []string {
	left, _ := filepath.Glob(r.pool + "/*")
	// A program that is on its way when a connection ends takes its folder along a little later.
	var temps []string
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		temps, _ = filepath.Glob(r.temps + "/bragg-agent.*")
		if len(temps) == 0 || time.Now().After(until) {
			break
		}
	}
	left = append(left, temps...)
	return append(left, r.agents()...)
}

// agents lists the processes that run in folders of VMs.
func (r *rig) agents() []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if cwd, err := os.Readlink(dir + "/cwd"); err == nil && strings.HasPrefix(cwd, r.pool) {
			found = append(found, dir+" in "+cwd)
		}
	}
	return found
}

func (r *rig) config() target.Config {
	c := target.Config{
		Provider: "ssh", Name: "hosts", Pool: r.pool, Options: map[string]string{"ssh_options": strings.Join(r.Options, " ")},
	}
	for i, address := range r.Hosts() {
		c.Nodes = append(c.Nodes, target.NodeConfig{ID: fmt.Sprintf("node-%d", i+1), Address: address})
	}
	return c
}

func (r *rig) open(t *testing.T) *ssh.Target {
	t.Helper()
	return r.openWith(t, r.config())
}

func (r *rig) openWith(t *testing.T, c target.Config) *ssh.Target {
	t.Helper()
	opened, err := ssh.Open(t.Context(), c, target.OpenOptions{Authority: r.authority, Leases: r.pool, AgentProgram: ownProgram})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// ownProgram is the test's program as the agent's.
func ownProgram(string) (string, error) { return os.Executable() }

// TestContract runs against two hosts, each with an sshd of its own.
func TestContract(t *testing.T) {
	r := newRig(t, 2)
	targettest.Run(t, targettest.Harness{
		Open:   func(t *testing.T) target.Target { return r.open(t) },
		Reopen: func(t *testing.T, _ target.Target) target.Target { return r.open(t) },
		Greet: func(ctx context.Context, conn net.Conn) (string, error) {
			client := client.New(conn, client.Options{})
			defer client.Close()
			hello, err := client.Hello(ctx)
			return hello.Boot, err
		},
		WriteDisk: func(t *testing.T, _ target.VM, d target.Disk, offset int64, data []byte) {
			f, err := os.OpenFile(d.Path, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt(data, offset)
				_ = f.Close()
			}
			if err != nil {
				t.Error(err)
			}
		},
		ReadDisk: func(t *testing.T, _ target.VM, d target.Disk, offset int64, length int) []byte {
			data := make([]byte, length)
			f, err := os.Open(d.Path)
			if err == nil {
				_, err = f.ReadAt(data, offset)
				_ = f.Close()
			}
			if err != nil {
				t.Error(err)
			}
			return data
		},
		Leftovers: func(*testing.T, target.Target) []string { return r.left() },
	})
}
