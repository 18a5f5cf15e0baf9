package libvirt

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/sshlink"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/testreq"
)

// overSSH makes the rig's hosts be reached by ssh, each URI as change leaves it.
func (r *rig) overSSH(change func(uri string) string) *rig {
	other := *r
	other.config.Nodes = slices.Clone(r.config.Nodes)
	for i, h := range r.Hosts {
		other.config.Nodes[i].Endpoint = change(r.SSHURI(h))
	}
	return &other
}

func asItIs(uri string) string { return uri }

// Hosts that ssh reaches are as good as those with a socket here: a VM is made from what is uploaded, a lease is kept, and all
// of it takes one connection for each host.
func TestOverSSH(t *testing.T) {
	r := newRigOf(t, lab.Options{SSH: true})
	over := r.overSSH(asItIs)
	dir := t.TempDir()
	l := over.open(t, dir, nil, nil)
	inventory, err := l.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range inventory.Facts {
		if strings.HasPrefix(f.Name, "state of") {
			t.Errorf("%s: %s", f.Name, f.Value)
		}
	}
	lock, err := l.(target.Locker).Lock(t.Context(), lease.NewHolder("run-1", 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.open(t, t.TempDir(), nil, nil).(target.Locker).Lock(t.Context(), lease.NewHolder("run-2", 0)); !errors.As(err, new(*lease.HeldError)) {
		t.Errorf("two controllers have it: %v", err)
	}
	first := links(l)
	vms, err := l.Create(t.Context(), testTag(), specsOn(over.config, "G", 2))
	if err != nil {
		t.Fatal(err)
	}
	n := plain(l).nodes[0]
	content := []byte(strings.Repeat("sector of 16 B.\n", 4<<20/16))
	p, err := n.readPool(t.Context(), n.pool)
	if err == nil {
		err = n.uploadVolume(t.Context(), p, volumeName(testTag().Mark(), vms[0].ID, "sdb"), content)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := r.readDisk(t, vms[0], vms[0].Disks[0], 0, len(content)); string(got) != string(content) {
		t.Error("an upload has other content than it should")
	}
	if err := l.(target.Migrator).MigrateVMs(t.Context(), testTag(), vms[:1], over.config.Nodes[1].ID); err != nil {
		t.Error(err)
	}
	if err := l.Delete(t.Context(), testTag(), vms); err != nil {
		t.Error(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
	if now := links(l); !slices.Equal(first, now) {
		t.Error("more than one connection was made to a host")
	}
	if left := r.leftovers(t, dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	for _, p := range testreq.ProcessesNaming(t, r.KnownHostsFile()) {
		t.Errorf("left: %s", p)
	}
	t.Run("faults", func(t *testing.T) { r.faultsOfSSH(t) })
	t.Run("cuts", func(t *testing.T) { r.cutsOfSSH(t) })
}

// plain is the target without what its BMCs add.
func plain(l target.Target) *Target {
	if p, ok := l.(powered); ok {
		return p.Target
	}
	return l.(*Target)
}

func links(l target.Target) (all []*sshlink.Link) {
	for _, n := range plain(l).nodes {
		all = append(all, n.tunnel.link())
	}
	return all
}

func (t *tunnel) link() *sshlink.Link {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lent == nil {
		return nil
	}
	return t.lent.link
}

// faultsOfSSH wants each fault told by its own code, with a hint, and soon.
func (r *rig) faultsOfSSH(t *testing.T) {
	stranger := filepath.Join(t.TempDir(), "key")
	command(t, testreq.Program(t, "ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", stranger)
	public, err := os.ReadFile(stranger + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	known, none := filepath.Join(t.TempDir(), "known"), filepath.Join(t.TempDir(), "none")
	var lines string
	for _, h := range r.Hosts {
		lines += h.Address.String() + " " + string(public)
	}
	if err := errors.Join(os.WriteFile(known, []byte(lines), 0o600), os.WriteFile(none, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	forbidden := filepath.Join(r.Dir, "ssh", "authorized_keys")
	allowed, err := os.ReadFile(forbidden)
	if err != nil {
		t.Fatal(err)
	}
	replaced := func(old, with string) func(string) string {
		return func(uri string) string { return strings.ReplaceAll(uri, old, with) }
	}
	for _, c := range []struct {
		name   string
		uri    func(string) string
		keys   string // authorized, before the right one
		code   string
		told   string
		passes bool
	}{
		{name: "wrong host key", uri: replaced(r.KnownHostsFile(), known), code: sshlink.CodeHostKey, told: "another key"},
		{name: "unknown host key", uri: replaced(r.KnownHostsFile(), none), code: sshlink.CodeHostKey, told: "not known"},
		{name: "wrong key", uri: replaced(r.SSHKeyFile(), stranger), code: sshlink.CodeRefused, told: "Permission denied"},
		{name: "no server", uri: replaced("/system", ":1/system"), code: "ssh", told: "Connection refused", passes: true},
		{name: "no libvirt", uri: replaced("/system?", "/system?socket=/run/nobody&"), code: "libvirt-ssh-socket", told: "/run/nobody", passes: true},
		{name: "no forwarding", uri: asItIs, keys: "no-port-forwarding ", code: "libvirt-ssh-socket", told: "no libvirt answers", passes: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(forbidden, []byte(c.keys+string(allowed)), 0o600); err != nil {
				t.Fatal(err)
			}
			l := r.overSSH(c.uri).open(t, t.TempDir(), nil, nil)
			_, err := plain(l).nodes[0].run(t.Context(), call{args: []string{"nodeinfo"}, limit: queryLimit})
			var told *diag.Error
			if !errors.As(err, &told) || told.Code != c.code || told.Hint == "" || !strings.Contains(err.Error(), c.told) {
				t.Errorf("got %v: %+v", err, told)
			}
			if isLost(err) != c.passes {
				t.Errorf("it may pass: %v, want %v", !c.passes, c.passes)
			}
			if strings.ContainsAny(err.Error(), "\r\n") || strings.Contains(err.Error(), "@@@") {
				t.Errorf("not fit for people: %q", err)
			}
		})
	}
	if err := os.WriteFile(forbidden, allowed, 0o600); err != nil {
		t.Fatal(err)
	}
}

// cutsOfSSH wants calls to end in time when nobody answers, and the next to get through when somebody does.
func (r *rig) cutsOfSSH(t *testing.T) {
	l := r.overSSH(asItIs).open(t, t.TempDir(), nil, nil)
	n, h := plain(l).nodes[1], r.Hosts[1].Name
	ask := func(limit time.Duration) error {
		_, err := n.run(t.Context(), call{args: []string{"nodeinfo"}, limit: limit})
		return err
	}
	if err := ask(queryLimit); err != nil {
		t.Fatal(err)
	}
	t.Run("ssh is killed", func(t *testing.T) {
		link := n.tunnel.link()
		link.Kill()
		<-link.Gone()
		if err := ask(queryLimit); err != nil {
			t.Error(err)
		}
	})
	t.Run("network is cut", func(t *testing.T) {
		socket, err := n.reach(t.Context(), queryLimit)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Link(t.Context(), h, false); err != nil {
			t.Fatal(err)
		}
		if err := ask(time.Second); !isLost(err) {
			t.Errorf("got %v", err)
		}
		for _, p := range testreq.ProcessesNaming(t, socket) {
			t.Errorf("a call that was given up goes on: %s", p)
		}
		if err := r.Link(t.Context(), h, true); err != nil {
			t.Fatal(err)
		}
		awaitAnswer(t, ask)
	})
	t.Run("power is cut", func(t *testing.T) {
		if err := r.Reset(t.Context(), h, lab.ResetForceOff); err != nil {
			t.Fatal(err)
		}
		n.tunnel.drop()
		if err := ask(time.Second); !isLost(err) {
			t.Errorf("got %v", err)
		}
		if err := errors.Join(r.Reset(t.Context(), h, lab.ResetOn), r.WaitUp(t.Context(), h)); err != nil {
			t.Fatal(err)
		}
		awaitAnswer(t, ask)
	})
	t.Run("caller gives up", func(t *testing.T) {
		n.tunnel.drop()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := n.tunnel.reach(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if err := ask(queryLimit); err != nil { // the connection is made all the same
			t.Error(err)
		}
	})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ask(queryLimit); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// awaitAnswer wants an answer in the end: a connection that hangs is given up after a while.
func awaitAnswer(t *testing.T, ask func(time.Duration) error) {
	t.Helper()
	for until := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := ask(silentLimit)
		if err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// What a controller that was killed left of tunnels is removed; what is in use, or is something else, stays.
func TestSweepSockets(t *testing.T) {
	parent, err := os.MkdirTemp("/tmp", "bragg-sweep-") // a short path, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	folder := func(name string) string {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	listen := func(path string) *net.UnixListener {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		return l
	}
	kill := func(path string) { _ = listen(path).Close() }
	kill(filepath.Join(folder("bragg-tunnel-1"), "0"))
	kill(filepath.Join(parent, "bragg-tunnel-1", "1"))
	used := listen(filepath.Join(folder("bragg-tunnel-2"), "0"))
	defer used.Close()
	kill(filepath.Join(parent, "bragg-tunnel-2", "1"))
	folder("bragg-tunnel-3") // is being made
	kill(filepath.Join(folder("bragg-tunnel-4"), "0"))
	if err := os.WriteFile(filepath.Join(parent, "bragg-tunnel-4", "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kill(filepath.Join(folder("bragg-tunnel-mine"), "0"))
	if err := os.Symlink(folder("elsewhere"), filepath.Join(parent, "bragg-tunnel-5")); err != nil {
		t.Fatal(err)
	}
	kill(filepath.Join(parent, "elsewhere", "0"))
	sweepSockets(parent)
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{"bragg-tunnel-2", "bragg-tunnel-3", "bragg-tunnel-4", "bragg-tunnel-5", "bragg-tunnel-mine", "elsewhere"}
	if !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}

// A virsh that is ended by writing to a closed connection lost its answer; one that somebody killed did not say so.
func TestHungUp(t *testing.T) {
	t.Parallel()
	for signal, want := range map[syscall.Signal]bool{syscall.SIGPIPE: true, syscall.SIGKILL: false} {
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := failed(call{}, "", cmd.Wait()); isLost(err) != want {
			t.Errorf("%v: %v", signal, err)
		}
	}
}
