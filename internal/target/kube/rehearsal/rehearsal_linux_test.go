package rehearsal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/result/resulttest"
	"github.com/braggdev/bragg/internal/target"
)

// hangGuard ends what should have ended long before.
const hangGuard = 20 * time.Minute

// user is a user's machine beside a cluster: the program and a target file.
type user struct {
	*rig
	bragg, file string
}

// newUser builds the programs, puts the image of the agent on the nodes as a user would, and writes the target file of a rig.
func newUser(t *testing.T, r *rig) *user {
	t.Helper()
	dir := t.TempDir()
	u := &user{rig: r, bragg: filepath.Join(dir, "bragg"), file: filepath.Join(dir, "target.yml")}
	for _, name := range []string{"bragg", "bragg-agent"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), "-trimpath", "-ldflags", "-s -w", "github.com/braggdev/bragg/cmd/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v: %s", name, err, out)
		}
	}
	const image = "example.com/bragg-agent:rig"
	archive := filepath.Join(dir, "agent.tar")
	if code, out := u.command(t, "kube", "image", "--name", image, "-o", archive); code != 0 {
		t.Fatalf("bragg kube image: %s", out)
	}
	r.LoadArchive(t, archive)
	r.config.Options["image"] = image
	if err := os.WriteFile(u.file, []byte(targetFile(r.config)), 0o600); err != nil {
		t.Fatal(err)
	}
	return u
}

// targetFile is a target file that says what a configuration does.
func targetFile(c target.Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "provider: %s\nname: rig\nendpoint: %s\nca_file: %q\npool: %s\ncredentials:\n", c.Provider, c.Endpoint, c.CAFile, c.Pool)
	for name, one := range c.Credentials {
		user := ""
		if one.User != "" {
			user = "user: " + one.User + ", "
		}
		fmt.Fprintf(&b, "  %s: {%ssecret: {file: %q}}\n", name, user, one.Secret.File)
	}
	b.WriteString("options:\n")
	for name, value := range c.Options {
		fmt.Fprintf(&b, "  %s: %q\n", name, value)
	}
	fmt.Fprintf(&b, "allow: {node_power: %t, maintenance: %t}\n", c.Allow.NodePower, c.Allow.Maintenance)
	for i, n := range c.Nodes {
		if i == 0 {
			b.WriteString("nodes:\n")
		}
		if n.BMC == nil {
			fmt.Fprintf(&b, "  - {id: %s}\n", n.ID)
			continue
		}
		fmt.Fprintf(&b, "  - {id: %s, bmc: {protocol: %s, address: %q, tls: none, credential: %s}}\n", n.ID, n.BMC.Protocol, n.BMC.Address, n.BMC.Credential)
	}
	return b.String()
}

// command carries out bragg with these arguments.
func (u *user) command(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	c, out, cancel := u.prepare(t, args...)
	defer cancel()
	if err := c.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("bragg %s: %v", strings.Join(args, " "), err)
	}
	u.wantNoSecret(t, "the output of bragg "+args[0], out.Bytes())
	return c.ProcessState.ExitCode(), out.String()
}

func (u *user) prepare(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer, context.CancelFunc) {
	t.Helper()
	u.wantNoSecret(t, "the argument list", []byte(strings.Join(args, " ")))
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	var out bytes.Buffer
	c := exec.CommandContext(ctx, u.bragg, args...)
	c.Stdout, c.Stderr = &out, &out
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(filepath.Dir(u.bragg), "state"))
	return c, &out, cancel
}

// arguments are those of a short rehearsal.
func (u *user) arguments(scenario, runs, length string, set ...string) []string {
	args := []string{"run", scenario, "--target", u.file, "--runs", runs, "--rehearse", length, "--rehearse-size", "16MiB", "--max-full", "99"}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	return args
}

func (u *user) wantNoSecret(t *testing.T, where string, text []byte) {
	t.Helper()
	resulttest.NoSecretIn(t, where, string(text), u.token)
}

// rehearsals are the scenarios that every platform carries out.
var rehearsals = []struct {
	scenario, length string
	set              []string
}{
	{scenario: "four_corners", length: "5s", set: []string{"vms_per_node=1"}},
	{scenario: "node_failure", length: "60s", set: []string{"scan_vms=1"}},
	{scenario: "snapshot_impact", length: "20s"},
	{scenario: "clone_impact", length: "20s", set: []string{"desktops_per_node=2"}},
	{scenario: "noisy_neighbor", length: "20s"},
}

// Shipped scenarios on pods, on nodes whose power a BMC switches. The first is short enough for every test.
func TestRehearsals(t *testing.T) {
	if testing.Short() {
		t.Skip("loads run for a minute")
	}
	t.Parallel()
	r := newRig(t)
	if os.Getenv(soakVariable) != "" {
		r.withBMCs(t)
		r.config.Allow.Maintenance = true
	}
	u := newUser(t, r)
	for i, c := range rehearsals {
		if i > 0 && os.Getenv(soakVariable) == "" {
			break
		}
		t.Run(c.scenario, func(t *testing.T) {
			runs := filepath.Join(t.TempDir(), "runs")
			began := time.Now()
			code, out := u.command(t, u.arguments(c.scenario, runs, c.length, c.set...)...)
			t.Logf("exit code %d after %s", code, time.Since(began).Round(time.Second))
			if code != 0 {
				t.Fatalf("%s", out)
			}
			u.check(t, runs)
			if _, said := u.command(t, "clean", "--runs", runs); !strings.Contains(said, "Nothing to clean") {
				t.Errorf("bragg clean found something: %s", said)
			}
			if left := u.left(t); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// check wants operations in a sealed bundle, the storage that they were on, and no secret in any file.
func (u *user) check(t *testing.T, runs string) {
	t.Helper()
	u.search(t, runs)
	bundle := resulttest.Only(t, runs)
	t.Logf("%d operations", resulttest.Operations(t, bundle))
	u.wantStorage(t, runs, bundle.Manifest().Target.Facts)
}

// search searches all files of runs for secrets.
func (u *user) search(t *testing.T, runs string) {
	t.Helper()
	resulttest.NoSecret(t, runs, u.token)
}
