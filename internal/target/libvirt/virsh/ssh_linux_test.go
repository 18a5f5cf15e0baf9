package virsh

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/chassis"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/lab/labtest"
	"github.com/braggdev/bragg/internal/sshlink"
	"github.com/braggdev/bragg/internal/testreq"
)

func TestMain(m *testing.M) {
	labtest.Main()
	goleak.VerifyTestMain(m)
}

// Hosts behind ssh: every fault has its own error, and connections that break are made again.
func TestHostsBehindSSH(t *testing.T) {
	if testing.Short() {
		t.Skip("a lab of two hosts")
	}
	l := labtest.New(t, lab.Options{SSH: true})
	t.Run("faults", func(t *testing.T) { faultsOfSSH(t, l) })
	t.Run("cuts", func(t *testing.T) { cutsOfSSH(t, l) })
}

// open returns a host of the lab by a URI that change made.
func open(t *testing.T, l *lab.Lab, host int, change func(string) string) *Host {
	t.Helper()
	h, err := NewHost("n", change(l.SSHURI(l.Hosts[host])), Run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func asItIs(uri string) string { return uri }

func (t *tunnel) link() *sshlink.Link {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return nil
	}
	return t.current.link
}

// faultsOfSSH wants each fault to have its own code and a hint, and soon.
func faultsOfSSH(t *testing.T, r *lab.Lab) {
	stranger := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command(testreq.Program(t, "ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", stranger).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
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
		text   string
		passes bool
	}{
		{name: "wrong host key", uri: replaced(r.KnownHostsFile(), known), code: sshlink.CodeHostKey, text: "another key"},
		{name: "unknown host key", uri: replaced(r.KnownHostsFile(), none), code: sshlink.CodeHostKey, text: "host key unknown"},
		{name: "wrong key", uri: replaced(r.SSHKeyFile(), stranger), code: sshlink.CodeRefused, text: "Permission denied"},
		{name: "no server", uri: replaced("/system", ":1/system"), code: "ssh", text: "Connection refused", passes: true},
		{name: "no libvirt", uri: replaced("/system?", "/system?socket=/run/missing&"), code: "libvirt-ssh-socket", text: "/run/missing", passes: true},
		{name: "no forwarding", uri: asItIs, keys: "no-port-forwarding ", code: "libvirt-ssh-socket", text: "no libvirt answers", passes: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(forbidden, []byte(c.keys+string(allowed)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := open(t, r, 0, c.uri).Run(t.Context(), Call{Args: []string{"nodeinfo"}, Limit: QueryLimit})
			var e *diag.Error
			if !errors.As(err, &e) || e.Code != c.code || e.Hint == "" || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v: %+v", err, e)
			}
			if IsLost(err) != c.passes {
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

// cutsOfSSH wants calls to end in time when the host does not answer, and to succeed when it does.
func cutsOfSSH(t *testing.T, r *lab.Lab) {
	n, h := open(t, r, 1, asItIs), r.Hosts[1].Name
	ask := func(limit time.Duration) error {
		_, err := n.Run(t.Context(), Call{Args: []string{"nodeinfo"}, Limit: limit})
		return err
	}
	if err := ask(QueryLimit); err != nil {
		t.Fatal(err)
	}
	t.Run("ssh is killed", func(t *testing.T) {
		link := n.tunnel.link()
		link.Kill()
		<-link.Gone()
		if err := ask(QueryLimit); err != nil {
			t.Error(err)
		}
	})
	t.Run("network is cut", func(t *testing.T) {
		socket, err := n.Reach(t.Context(), QueryLimit)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Link(t.Context(), h, false); err != nil {
			t.Fatal(err)
		}
		if err := ask(time.Second); !IsLost(err) {
			t.Errorf("got %v", err)
		}
		for _, p := range testreq.ProcessesNaming(t, socket) {
			t.Errorf("a call that was given up still runs: %s", p)
		}
		if err := r.Link(t.Context(), h, true); err != nil {
			t.Fatal(err)
		}
		awaitAnswer(t, ask)
	})
	t.Run("power is cut", func(t *testing.T) {
		if err := r.Reset(t.Context(), h, chassis.ResetForceOff); err != nil {
			t.Fatal(err)
		}
		n.tunnel.drop()
		if err := ask(time.Second); !IsLost(err) {
			t.Errorf("got %v", err)
		}
		if err := errors.Join(r.Reset(t.Context(), h, chassis.ResetOn), r.WaitUp(t.Context(), h)); err != nil {
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
		if err := ask(QueryLimit); err != nil { // the connection is made all the same
			t.Error(err)
		}
	})
	n.Close()
	if err := ask(QueryLimit); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// awaitAnswer waits for an answer: a hanging connection is given up after a while.
func awaitAnswer(t *testing.T, ask func(time.Duration) error) {
	t.Helper()
	for until := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := ask(SilentLimit)
		if err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}
