// Package faults tests what is left on an AHV cluster of runs whose controller was killed at their failpoints.
package faults

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
)

const (
	asAgent      = "__agent"
	asController = "__controller"
	password     = "c0rrect-horse-battery"
	apiKey       = "0d9f51c6-2a0b-4f0e-9a55-7f3f0c1d8a11"
)

// TestMain is also the agent in VMs, and a controller that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asAgent {
		var generators load.Kinds = session.Catalog().Generators
		os.Exit(agent.Command(context.Background(), os.Args[2:], agent.Program{Generators: generators.ByName(), Version: "test", Stderr: os.Stderr}))
	}
	if len(os.Args) == 3 && os.Args[1] == asController {
		if err := control(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil { // tests wait for loads and BMCs most of the time
		panic(err)
	}
	os.Exit(m.Run())
}

// rig is an emulated cluster with BMCs, VMs of others, and a user's machine beside it.
type rig struct {
	*prism.Emulator
	dir, file string // file is the target file
	foreign   []string
}

// newRig starts a cluster. With key, its user logs in by an API key.
func newRig(t *testing.T, key bool) *rig {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := prism.Options{Agent: []string{self, asAgent}, State: state.Options{HADelay: 200 * time.Millisecond}}
	o.Credentials.Password, o.Credentials.APIKey = password, apiKey
	e, err := prism.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	if _, err := e.AddImage("ubuntu1604", strings.NewReader("system")); err != nil {
		t.Fatal(err)
	}
	if _, err := e.BMCs(); err != nil {
		t.Fatal(err)
	}
	r := &rig{Emulator: e, dir: t.TempDir()}
	r.file = filepath.Join(r.dir, "target.yml")
	secret := filepath.Join(r.dir, "secrets", "password")
	if err := os.Mkdir(filepath.Dir(secret), 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(e.TargetFile(secret), "allow:\n", "allow:\n  overrides: [controller]\n", 1)
	if key {
		other := filepath.Join(r.dir, "secrets", "key")
		r.write(t, other, apiKey)
		before, after, _ := strings.Cut(text, "  platform: {")
		_, after, _ = strings.Cut(after, "\n")
		text = before + fmt.Sprintf("  api_key: {secret: {file: %q}}\n", other) + after
	}
	r.write(t, secret, password)
	r.write(t, r.file, text)
	for _, name := range []string{"db-0001", "OLTP-0001", "bragg-db-0001"} {
		r.addForeign(t, name)
	}
	return r
}

func (r *rig) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// addForeign makes a VM of another client. It is off, so that it does not keep hosts from losing their power.
func (r *rig) addForeign(t *testing.T, name string) {
	t.Helper()
	s := state.VMSpec{Name: name, Description: "of accounting", Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, MemoryBytes: 64 << 20}
	r.State.Read(func(d *state.Data) { s.ClusterID = d.Cluster.ID })
	task, _, err := r.State.CreateVM(s)
	if err == nil {
		err = r.State.Await(task)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.foreign = append(r.foreign, name)
}

// checkLeft fails if something of a run is left, a host is off, or something of others has changed.
func (r *rig) checkLeft(t *testing.T) {
	t.Helper()
	var names, left []string
	r.State.Read(func(d *state.Data) {
		for _, vm := range d.VMs {
			names = append(names, vm.Name)
			if vm.Description != "of accounting" || vm.Power != state.Off {
				left = append(left, "VM "+vm.Name)
			}
		}
		for _, p := range d.Points {
			left = append(left, "recovery point "+p.Name)
		}
		for _, c := range d.Categories {
			left = append(left, "category "+c.Key)
		}
		for _, h := range d.Hosts {
			if !h.Up || h.Maintenance != state.Normal {
				left = append(left, "host "+h.Name+" without power")
			}
		}
	})
	slices.Sort(names)
	want := slices.Sorted(slices.Values(r.foreign))
	if !slices.Equal(names, want) || len(left) > 0 {
		t.Errorf("there are VMs %q, want %q; left are %q", names, want, left)
	}
	if running := r.Machine.Running(); len(running) > 0 {
		t.Errorf("agents of %q run", running)
	}
}

// checkSecrets searches the files below a folder, and a text, for the secrets of the target file.
func (r *rig) checkSecrets(t *testing.T, dir, text string) {
	t.Helper()
	check := func(what, text string) {
		for _, secret := range []string{password, apiKey} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has a secret of the target file", what)
			}
		}
	}
	check("the output", text)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		check(path, string(data))
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
}

// order is what a controller does: the run of a scenario, or its cleaning, up to a failpoint.
type order struct {
	File      string // target file
	Runs      string // folder of runs
	Failpoint string // at which it dies
	Scenario  string // folder; "": one that passes nearly every failpoint
}

// program is this test as bragg.
func program(runs string) session.Program {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return session.Program{Version: "test", AgentCommand: []string{self, asAgent}, Leases: runs}
}

// tiny is a scenario that passes nearly every failpoint.
var tiny = filepath.Join("..", "..", "..", "session", "testdata", "tiny")

// prepare plans the scenario of an order.
func prepare(ctx context.Context, o order) (*session.Prepared, error) {
	return session.Prepare(ctx, session.Order{
		Source: scenario.Source{Path: cmp.Or(o.Scenario, tiny), Trusted: true}, Runs: o.Runs, Target: o.File,
		Plan: planner.Options{FullPercentMax: 100}, Program: program(o.Runs),
	})
}
