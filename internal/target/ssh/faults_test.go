package ssh_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/ssh"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// Errors in a target file are reported before any host is contacted.
func TestBadTargetFiles(t *testing.T) {
	good := target.NodeConfig{ID: "a", Address: "root@a:22"}
	for name, c := range map[string]struct {
		config target.Config
		want   string
	}{
		"no nodes":     {target.Config{}, "no nodes"},
		"an option":    {target.Config{Nodes: []target.NodeConfig{{ID: "x", Address: "-oProxyCommand=reboot"}}}, "invalid host name"},
		"a command":    {target.Config{Nodes: []target.NodeConfig{{ID: "x", Address: "$(reboot)"}}}, "invalid host name"},
		"id as host":   {target.Config{Nodes: []target.NodeConfig{{ID: "no host"}}}, "invalid host name"},
		"other option": {target.Config{Nodes: []target.NodeConfig{good}, Options: map[string]string{"ssh_option": "x"}}, `"ssh_option"`},
		"no value":     {target.Config{Nodes: []target.NodeConfig{good}, Options: map[string]string{"ssh_options": "-F /etc/passwd"}}, "Name=value"},
	} {
		_, err := ssh.Open(t.Context(), c.config, target.OpenOptions{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// Hosts that cannot be used say so, with what to do, and keep nothing.
func TestUnusableHosts(t *testing.T) {
	r := newRig(t, 1)
	for name, c := range map[string]struct {
		change func(c *target.Config)
		want   string
	}{
		"no server": {func(c *target.Config) { c.Nodes[0].Address = "127.0.0.1:1" }, "ssh cannot reach it"},
		"unknown host": { // ssh takes the first of several values
			func(c *target.Config) {
				c.Options["ssh_options"] = "UserKnownHostsFile=/dev/null " + c.Options["ssh_options"]
			}, "host key unknown",
		},
		"no such pool": {func(c *target.Config) { c.Pool = r.pool + "/nowhere" }, "no such file"},
		"no folder":    {func(c *target.Config) { c.Pool = "/etc/hostname" }, "not a directory"},
		"relative":     {func(c *target.Config) { c.Pool = "pool" }, "does not begin with a slash"},
	} {
		config := r.config()
		c.change(&config)
		opened := r.openWith(t, config)
		_, err := opened.Inventory(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || diag.ExitCode(err) != diag.ExitUnavailable {
			t.Errorf("%s: got %v with exit %d, want %q", name, err, diag.ExitCode(err), c.want)
		}
		if err := opened.Close(); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
	}
}

// A cancelled caller gets the cause of the cancellation, not "host unavailable".
func TestGivenUp(t *testing.T) {
	r := newRig(t, 1)
	opened := r.open(t)
	defer opened.Close()
	if err := opened.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	why := errors.New("the user pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	for _, id := range r.Sessions(0) { // from now on the host says nothing
		if err := syscall.Kill(id, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Kill(id, syscall.SIGCONT) }()
	}
	ended := make(chan error)
	go func() { ended <- opened.Ready(ctx) }()
	time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
	if err := <-ended; !errors.Is(err, why) || diag.ExitCode(err) == diag.ExitUnavailable {
		t.Errorf("got %v with exit %d", err, diag.ExitCode(err))
	}
}

// A connection that breaks costs neither VMs nor their agents, and the next call makes another.
func TestBrokenConnection(t *testing.T) {
	r := newRig(t, 1)
	opened := r.open(t)
	tag := targettest.NewTag("run-1")
	vms, err := opened.Create(t.Context(), tag, []target.VMSpec{{Name: "OLTP-0001", Group: "OLTP", NodeID: "node-1", VCPUs: 1, DiskBytes: []int64{1 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	boot := func() string {
		conn, err := opened.DialAgent(t.Context(), vms[0])
		if err != nil {
			t.Fatal(err)
		}
		client := client.New(conn, client.Options{})
		defer client.Close()
		hello, err := client.Hello(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return hello.Boot
	}
	if err := opened.PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	before := boot()
	for range 3 {
		if n := r.Break(0); n == 0 {
			t.Fatal("no session is there to be broken")
		}
		if after := boot(); after != before {
			t.Errorf("the agent was restarted: %s, was %s", after, before)
		}
	}
	if err := opened.Delete(t.Context(), tag, vms); err != nil {
		t.Error(err)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
}
