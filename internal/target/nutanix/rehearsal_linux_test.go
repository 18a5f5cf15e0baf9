package nutanix

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/result/resulttest"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
	"github.com/braggdev/bragg/internal/testreq"
)

// user is a user's machine beside an emulated Prism.
type user struct {
	*rig
	bragg string
	file  string // target file
	state string // folder of programs' state
}

func newUser(t *testing.T, o state.Options) *user {
	t.Helper()
	testreq.Root(t)
	if testing.Short() {
		t.Skip("loads run on agents")
	}
	programs, dir := programtest.Built(t, "bragg", "bragg-agent"), t.TempDir()
	u := &user{
		rig: newRigOf(t, prism.Options{State: o}, []string{filepath.Join(programs, "bragg-agent")}), bragg: filepath.Join(programs, "bragg"), state: filepath.Join(dir, "state"),
	}
	u.withBMCs(t)
	var b strings.Builder
	fmt.Fprintf(&b, "provider: nutanix\nname: prism\nendpoint: %s\nfingerprint: %s\ntemplates: {ubuntu1604: bragg-debian-12}\naddresses: dhcp\n", u.URL, u.Fingerprint)
	b.WriteString("allow: {node_power: true, cvms: true, maintenance: true, overrides: [controller]}\ncredentials:\n")
	for name, c := range u.config.Credentials {
		fmt.Fprintf(&b, "  %s: {user: %s, secret: {file: %q}}\n", name, c.User, c.Secret.File)
	}
	b.WriteString("nodes:\n")
	for _, n := range u.config.Nodes {
		fmt.Fprintf(&b, "  - id: %s\n    uuid: %s\n    bmc: {protocol: redfish, address: %q, tls: none, credential: %s}\n", n.ID, n.UUID, n.BMC.Address, n.BMC.Credential)
	}
	u.file = filepath.Join(dir, "target.yml")
	if err := os.WriteFile(u.file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return u
}

// command is bragg with these arguments.
func (u *user) command(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, u.bragg, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+u.state)
	return cmd, &out
}

// wantNoSecret searches a folder and an output for secrets.
func wantNoSecret(t *testing.T, dir, output string) {
	t.Helper()
	resulttest.NoSecretIn(t, "the output", output, password)
	resulttest.NoSecret(t, dir, password)
}

// TestRehearsals runs shipped scenarios with the real programs.
func TestRehearsals(t *testing.T) {
	t.Parallel() // beside the contract, which waits for BMCs most of the time
	u := newUser(t, state.Options{})
	for _, c := range []struct {
		name, length string
		set          []string
		gate         bool
	}{
		{name: "four_corners", length: "8s", set: []string{"vms_per_node=1"}, gate: true},
		{name: "node_failure", length: "30s", set: []string{"scan_vms=1"}},
		{name: "snapshot_impact", length: "40s"},
		{name: "clone_impact", length: "40s", set: []string{"desktops_per_node=2"}},
		{name: "noisy_neighbor", length: "30s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.gate {
				programtest.SoakOnly(t, "loads run for a minute")
			}
			runs := filepath.Join(t.TempDir(), "runs")
			args := []string{"run", c.name, "--target", u.file, "--runs", runs, "--rehearse", c.length, "--rehearse-size", "16MiB", "--max-full", "99"}
			for _, s := range c.set {
				args = append(args, "--set", s)
			}
			began := time.Now()
			cmd, out := u.command(t.Context(), args...)
			err := cmd.Run()
			t.Logf("%v: %v\n%s", time.Since(began).Round(time.Second), err, out)
			// On a busy machine the figures may miss the thresholds of a scenario.
			if code := cmd.ProcessState.ExitCode(); code != diag.ExitPass && code != diag.ExitFailed {
				t.Errorf("bragg %s: %v", c.name, err)
			}
			wantNoSecret(t, runs, out.String())
			t.Logf("%d operations", resulttest.Operations(t, resulttest.Only(t, runs)))
			if left := u.leftovers(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// TestKilled kills a controller under load. Cleaning up removes what it left, and nothing of others.
func TestKilled(t *testing.T) {
	t.Parallel() // beside the contract, which waits for BMCs most of the time
	u := newUser(t, state.Options{})
	var cluster, host string
	u.State.Read(func(d *state.Data) { cluster, host = d.Cluster.ID, d.Hosts[0].ID })
	task, _, err := u.State.CreateVM(state.VMSpec{
		Name: "OLTP-0001", Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, MemoryBytes: 64 << 20, ClusterID: cluster, HostID: host, PowerOn: true,
	})
	if err == nil {
		err = u.State.Await(task)
	}
	if err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(t.TempDir(), "runs")
	cmd, out := u.command(t.Context(), "run", "snapshot_impact", "--target", u.file, "--runs", runs, "--rehearse", "60s", "--rehearse-size", "16MiB", "--max-full", "99")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	snapshots := func() (n int) {
		u.State.Read(func(d *state.Data) { n = len(d.Points) })
		return n
	}
	for limit := time.Now().Add(3 * time.Minute); snapshots() == 0 && time.Now().Before(limit); {
		time.Sleep(50 * time.Millisecond)
	}
	if snapshots() == 0 {
		t.Error("the run takes no snapshots")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	clean, said := u.command(t.Context(), "clean", "--runs", runs)
	if err := clean.Run(); err != nil {
		t.Errorf("clean: %v\n%s\n%s", err, said, out)
	}
	if left := u.leftovers(); len(left) != 1 || left[0] != "vm OLTP-0001" {
		t.Errorf("left: %q\n%s", left, said)
	}
	wantNoSecret(t, runs, out.String()+said.String())
}
