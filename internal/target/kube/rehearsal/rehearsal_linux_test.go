package rehearsal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/result/resulttest"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
)

// user is a user's machine beside a cluster: the program and a target file.
type user struct {
	*rig
	*programtest.User
}

// newUser builds the programs, puts the image of the agent on the nodes as a user would, and writes the target file of a rig.
func newUser(t *testing.T, r *rig) *user {
	t.Helper()
	u := &user{r, programtest.NewUser(t)}
	const image = "example.com/bragg-agent:rig"
	archive := filepath.Join(filepath.Dir(u.File), "agent.tar")
	if code, out := u.command(t, "kube", "image", "--name", image, "-o", archive); code != 0 {
		t.Fatalf("bragg kube image: %s", out)
	}
	r.LoadArchive(t, archive)
	r.config.Options["image"] = image
	if err := os.WriteFile(u.File, []byte(targetFile(r.config)), 0o600); err != nil {
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

// command carries out bragg with these arguments, and searches its output for secrets.
func (u *user) command(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	u.wantNoSecret(t, "the argument list", []byte(strings.Join(args, " ")))
	code, output = u.Command(t, args...)
	u.wantNoSecret(t, "the output of bragg "+args[0], []byte(output))
	return code, output
}

func (u *user) wantNoSecret(t *testing.T, where string, text []byte) {
	t.Helper()
	resulttest.NoSecretIn(t, where, string(text), u.token)
}

// rehearsals are the scenarios that every platform carries out.
var rehearsals = []programtest.Rehearsal{
	{Scenario: "four_corners", Length: "5s", Set: []string{"vms_per_node=1"}},
	{Scenario: "node_failure", Length: "60s", Set: []string{"scan_vms=1"}, Soak: true},
	{Scenario: "snapshot_impact", Length: "20s", Soak: true},
	{Scenario: "clone_impact", Length: "20s", Set: []string{"desktops_per_node=2"}, Soak: true},
	{Scenario: "noisy_neighbor", Length: "20s", Soak: true},
}

// Shipped scenarios on pods, on nodes whose power a BMC switches. The first is short enough for every test.
func TestRehearsals(t *testing.T) {
	if testing.Short() {
		t.Skip("loads run for a minute")
	}
	t.Parallel()
	r := newRig(t)
	if programtest.Soak() {
		r.withBMCs(t)
		r.config.Allow.Maintenance = true
	}
	u := newUser(t, r)
	for _, c := range rehearsals {
		t.Run(c.Scenario, func(t *testing.T) {
			u.check(t, u.Rehearse(t, c))
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
