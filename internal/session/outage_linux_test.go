package session_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/chassis"
	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/session/restore"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/target/kube/kubetest"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/testreq"
)

// site is a target of two hosts with BMCs, as an outage sees it. Where the platform has a management of its own, that runs on the hosts:
// it does not answer while all are off.
type site struct {
	file        string            // target file
	template    string            // of VMs; they stay off
	environment []string          // of controllers
	off         func() []string   // hosts without power, or that do not answer
	left        func() []string   // what the run made
	bmcs        []*targettest.BMC // of the cluster
	boots       func(yes bool)    // of the cluster and ssh: whether the first node boots when it has power
}

// sites are all providers whose nodes can have BMCs. TestOutage fails if one is missing.
var sites = map[string]func(t *testing.T) site{
	"ssh": outageOfSSH, "libvirt": outageOfLibvirt, "vsphere": outageOfVCenter, "nutanix": outageOfPrism, "kubernetes": outageOfCluster,
}

// withoutBMCs are the providers whose nodes are simulated in the controller: they end with it.
var withoutBMCs = []string{"local", "fake"}

const outageScenario = `name: outage
display_name: Outage
summary: Hosts lose their power
description: For tests in which the program dies in an outage.
tags: [test]
estimated_runtime: 1
vms: [{db: {template: %s, vcpus: 1, ram_mb: 64, data_disks: {count: 1, size: 1}, count_per_node: 1}}]
workloads: []
results: []
setup: [{vm_group.CloneFromTemplate: {vm_group_name: db}}]
run:
  - nodes.PowerOff: {nodes: %q}
  - nodes.PowerOn: {nodes: %[2]q}
  - test.Wait: {duration_secs: 60}
teardown: [{cluster.CleanUp: {}}]
`

// In every outage, with one host off and with all, the controller is killed. One cleaning switches all hosts on and removes all that the run
// left, although nothing of the target answers without power.
func TestOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("hosts lose their power")
	}
	t.Parallel()
	for _, p := range builtin.Providers() {
		if sites[p.Name] == nil && !slices.Contains(withoutBMCs, p.Name) {
			t.Errorf("provider %s has no outage here", p.Name)
		}
	}
	for name, make := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := make(t)
			for _, nodes := range []string{"0", ":"} {
				t.Run(nodes, s.outage(nodes))
			}
		})
	}
}

// outage is one death, with the nodes of a slice off.
func (s site) outage(nodes string) func(t *testing.T) {
	return func(t *testing.T) {
		runs := s.die(t, nodes)
		if left := s.left(); len(left) == 0 {
			t.Error("the death left nothing to remove")
		}
		if c := s.clean(t, runs); c.Err != nil || c.Live || !c.Sealed {
			t.Errorf("%+v", c)
		}
		s.checkRecovered(t, runs)
	}
}

// die runs a controller, kills it as soon as the nodes are off, and returns its folder of runs.
func (s site) die(t *testing.T, nodes string) (runs string) {
	t.Helper()
	want := map[string]int{"0": 1, ":": 2}[nodes]
	runs = s.dieWhen(t, fmt.Sprintf(outageScenario, s.template, nodes), func(string) bool { return len(s.off()) >= want })
	if off := s.off(); len(off) != want {
		t.Fatalf("without power are %q, want %d", off, want)
	}
	return runs
}

// dieWhen kills the controller of a scenario as soon as something is true of its folder of runs.
func (s site) dieWhen(t *testing.T, scenario string, when func(runs string) bool) (runs string) {
	t.Helper()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "test.yml"), scenario)
	runs = filepath.Join(t.TempDir(), "runs")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	c := exec.Command(self)
	c.Env = append(os.Environ(), dieAt+"=nowhere", dieRuns+"="+runs, dieScenario+"="+folder, dieTarget+"="+s.file)
	c.Env = append(c.Env, s.environment...)
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for !when(runs) {
		select {
		case err := <-ended:
			t.Fatalf("the controller ended before the outage: %v\n%s", err, &said)
		case <-time.After(10 * time.Millisecond):
		}
	}
	_ = c.Process.Kill()
	<-ended
	return runs
}

// simulatedHosts execute commands of their BMCs at once, and boot in seconds.
var simulatedHosts = restore.Patience{
	BMCs: bmc.Options{Poll: 20 * time.Millisecond, Settle: 100 * time.Millisecond, Late: 500 * time.Millisecond, Again: 100 * time.Millisecond, LoginPause: time.Millisecond},
	Open: 2 * time.Second,
}

func (s site) cleaning(runs string) session.Cleaning {
	p := program(runs)
	for _, one := range s.environment {
		if dir, ok := strings.CutPrefix(one, agentDir+"="); ok {
			p.AgentDir = dir
		}
	}
	return session.Cleaning{Runs: runs, Program: p, Patience: simulatedHosts}
}

func (s site) clean(t *testing.T, runs string) session.Cleaned {
	t.Helper()
	return cleanOne(t, s.cleaning(runs))
}

func cleanOne(t *testing.T, c session.Cleaning) session.Cleaned {
	t.Helper()
	began := time.Now()
	c.Say = func(_, text string) { t.Log(time.Since(began).Round(time.Second/10), text) }
	cleaned, err := session.Clean(context.Background(), c)
	if err != nil || len(cleaned) != 1 {
		t.Fatalf("%+v, %v", cleaned, err)
	}
	return cleaned[0]
}

// checkRecovered checks that all hosts are on, nothing of the run is left, and its bundle is sealed.
func (s site) checkRecovered(t *testing.T, runs string) {
	t.Helper()
	if off := s.off(); len(off) > 0 {
		t.Errorf("without power are %q", off)
	}
	if left := s.left(); len(left) > 0 {
		t.Errorf("left is %q", left)
	}
	checkFiles(t, runs)
	all, err := result.List(runs)
	if err != nil || len(all) != 1 || all[0].State != result.StateAborted {
		t.Errorf("bundles %+v, %v", all, err)
	}
}

// What goes wrong with power after the death of a controller ends the cleaning with the reason, powers on whatever can be, and forgets
// nothing: the next cleaning does the rest.
func TestOutageThatLasts(t *testing.T) {
	if testing.Short() {
		t.Skip("hosts lose their power")
	}
	t.Parallel()
	tests := map[string]struct {
		spoil, fix func(s site)
		off        []string // still, after the first cleaning
		want       string
	}{
		"a BMC of another machine": {
			spoil: func(s site) { s.bmcs[0].SetUUID(outageUUID(9)) }, fix: func(s site) { s.bmcs[0].SetUUID(clusterUUID(0)) },
			off: []string{"node-1"}, want: `power on node "node-1": the BMC at`,
		},
		"a BMC that does nothing": {
			spoil: func(s site) { s.bmcs[0].SetDeaf(true) }, fix: func(s site) { s.bmcs[0].SetDeaf(false) },
			off: []string{"node-1"}, want: `power on through the BMC of node "node-1"`,
		},
		"a host that does not boot": {
			spoil: func(s site) { s.boots(false) }, fix: func(s site) { s.boots(true) },
			want: `node "node-1" has power, and did not answer in 3s`,
		},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := outageOfCluster(t)
			runs := s.die(t, ":")
			c.spoil(s)
			cleaning := s.cleaning(runs)
			cleaning.Patience.Answer = 3 * time.Second
			cleaning.Patience.BMCs.Timeout, cleaning.Patience.BMCs.Trying = time.Second, time.Second
			if done := cleanOne(t, cleaning); done.Err == nil || done.Sealed || !strings.Contains(done.Err.Error(), c.want) {
				t.Errorf("%+v, want %s", done, c.want)
			}
			if off := s.off(); !slices.Equal(off, c.off) {
				t.Errorf("without power are %q, want %q", off, c.off)
			}
			c.fix(s)
			if done := s.clean(t, runs); done.Err != nil || !done.Sealed {
				t.Errorf("%+v", done)
			}
			s.checkRecovered(t, runs)
		})
	}
}

// Cleaning is killed before and after it restores power, and another one begins meanwhile.
func TestKilledCleaningOfAnOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("hosts lose their power")
	}
	t.Parallel()
	for _, at := range []string{"recover.power", "recover.powered", "recover.undo", "vms.delete", "recover.ended"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			s := outageOfCluster(t)
			runs := s.die(t, ":")
			first := s.cleaning(runs)
			first.Failpoint = func(name string) error {
				if name != at {
					return nil
				}
				if second := s.clean(t, runs); !second.Live {
					t.Errorf("a second cleaning at the same time: %+v", second)
				}
				return errInjected
			}
			if done := cleanOne(t, first); done.Err == nil {
				t.Errorf("%+v", done)
			}
			if done := s.clean(t, runs); done.Err != nil || !done.Sealed {
				t.Errorf("%+v", done)
			}
			s.checkRecovered(t, runs)
		})
	}
}

// A controller that dies while a host boots leaves nothing that is off, and a target that does not answer yet. Cleaning waits for it.
func TestKilledWhileAHostBoots(t *testing.T) {
	if testing.Short() {
		t.Skip("hosts lose their power")
	}
	t.Parallel()
	s := outageOfSSH(t)
	s.boots(false)
	text := strings.Replace(fmt.Sprintf(outageScenario, s.template, "0"), "nodes.PowerOn: {", "nodes.PowerOn: {wait_secs: 0, ", 1)
	runs := s.dieWhen(t, text, func(runs string) bool {
		journals, _ := filepath.Glob(filepath.Join(runs, ".control", "*.journal"))
		return len(journals) > 0 && strings.Contains(read(t, journals[0]), `"kind":"undone"`)
	})
	boots := time.AfterFunc(3*time.Second, func() { s.boots(true) })
	defer boots.Stop()
	if done := s.clean(t, runs); done.Err != nil || !done.Sealed {
		t.Errorf("%+v", done)
	}
	s.checkRecovered(t, runs)
}

// A target that another controller uses keeps its power as it is.
func TestOutageOfATargetInUse(t *testing.T) {
	if testing.Short() {
		t.Skip("hosts lose their power")
	}
	t.Parallel()
	s := outageOfCluster(t)
	runs := s.die(t, "0")
	opened, err := builtin.Open(t.Context(), s.file, target.OpenOptions{Leases: runs})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	lock, err := opened.(target.Locker).Lock(t.Context(), lease.NewHolder("of another", 1<<40))
	if err != nil {
		t.Fatal(err)
	}
	if done := s.clean(t, runs); !done.Live || done.Err != nil {
		t.Errorf("%+v", done)
	}
	if off := s.off(); len(off) != 1 || len(s.bmcs[0].Resets()) != 1 {
		t.Errorf("without power are %q, orders were %q", off, s.bmcs[0].Resets())
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
	if done := s.clean(t, runs); done.Err != nil || !done.Sealed {
		t.Errorf("%+v", done)
	}
	s.checkRecovered(t, runs)
}

// dark is a front of a platform that runs on its own hosts: while all are off, connections end without an answer.
func dark(off func() []string, platform http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(off()) < 2 {
			platform.ServeHTTP(w, r)
			return
		}
		panic(http.ErrAbortHandler)
	})
}

// write writes a file of a test and returns its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// bmcsOf starts BMCs for the nodes of a target file. switched is called with the number of the node.
func bmcsOf(t *testing.T, uuid func(i int) string, switched func(i int, on bool)) (bmcs []*targettest.BMC, off func() []string) {
	t.Helper()
	var without [2]atomic.Bool
	for i := range without {
		bmcs = append(bmcs, targettest.NewBMC(t, uuid(i), func(on bool) {
			without[i].Store(!on)
			switched(i, on)
		}))
	}
	return bmcs, func() (names []string) {
		for i := range without {
			if without[i].Load() {
				names = append(names, fmt.Sprint("node-", i+1))
			}
		}
		return names
	}
}

// lines are entries of a target file for such BMCs.
func lines(bmcs []*targettest.BMC, more func(i int) string) string {
	text := "nodes:\n"
	for i, b := range bmcs {
		text += fmt.Sprintf("  - {id: node-%d, %sbmc: {protocol: redfish, address: %q, tls: none, credential: bmc}}\n", i+1, more(i), b.Config.Address)
	}
	return text
}

func outageOfSSH(t *testing.T) site {
	if err := hostAgent(); err != nil {
		t.Fatal(err)
	}
	h, agents := newServers(t), hostAgentDir
	var dead atomic.Bool // node-1 does not boot
	bmcs, off := bmcsOf(t, outageUUID, func(i int, on bool) {
		switch {
		case !on:
			h.KillServer(t, i)
		case i > 0 || !dead.Load():
			h.Serve(t, i)
		}
	})
	secret := write(t, filepath.Join(t.TempDir(), "secret"), "secret")
	// All hosts are this machine: its identity does not distinguish them.
	file := write(t, filepath.Join(t.TempDir(), "target.yml"), fmt.Sprintf("provider: ssh\nname: hosts\npool: %q\n%soptions: {ssh_options: %q}\n"+
		"credentials: {bmc: {user: bragg, secret: {file: %q}}}\nallow: {node_power: true, overrides: [identity, controller, foreign-vms]}\n",
		h.pool, lines(bmcs, func(i int) string { return fmt.Sprintf("address: %q, ", h.Hosts()[i]) }), strings.Join(h.Options, " "), secret))
	return site{file: file, template: "any", environment: []string{agentDir + "=" + agents}, off: off, left: func() []string {
		left, _ := filepath.Glob(h.pool + "/*")
		return left
	}, boots: func(yes bool) {
		if dead.Swap(!yes) && yes {
			h.Serve(t, 0)
		}
	}}
}

func outageUUID(i int) string { return fmt.Sprintf("5a3c1f00-0000-4000-8000-%012d", i+1) }

func outageOfLibvirt(t *testing.T) site {
	l, file, agents := newLibvirtLab(t)
	before := leftOnLab(t, l)
	return site{
		file: file, template: "blank", environment: []string{agentDir + "=" + agents},
		off: func() (off []string) {
			states, err := l.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range states {
				if s.Power != chassis.PowerOn {
					off = append(off, s.Name)
				}
			}
			return off
		},
		left: func() []string {
			return slices.DeleteFunc(leftOnLab(t, l), func(one string) bool { return slices.Contains(before, one) })
		},
	}
}

func outageOfVCenter(t *testing.T) site {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := vcsim.Start(vcsim.Options{Dir: t.TempDir(), Agent: []string{self, "__agent"}, Hosts: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if _, err := s.BMCs(vcsim.Password); err != nil {
		t.Fatal(err)
	}
	off := func() (names []string) {
		for _, h := range s.Hosts() {
			if s.HostState(h) != "connected" {
				names = append(names, h.Name)
			}
		}
		return names
	}
	s.Front(func(vCenter http.Handler) http.Handler { return dark(off, vCenter) })
	dir := t.TempDir()
	text, err := s.TargetFile(dir, "allow: {node_power: true, overrides: [controller, foreign-vms, redundancy]}\n")
	if err != nil {
		t.Fatal(err)
	}
	return site{file: write(t, filepath.Join(dir, "target.yml"), text), template: "linux", off: off, left: func() (names []string) {
		for name := range s.VMs() {
			if name != vcsim.Foreign && name != vcsim.Template {
				names = append(names, name)
			}
		}
		return names
	}}
}

func outageOfPrism(t *testing.T) site {
	testreq.Root(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := prism.Options{Agent: []string{self, "__agent"}, State: state.Options{NoHA: true, Hosts: 2}}
	o.Credentials.Password = vcsim.Password
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
	off := func() (names []string) {
		e.State.Read(func(d *state.Data) {
			for _, h := range d.Hosts {
				if !h.Up {
					names = append(names, h.Name)
				}
			}
		})
		return names
	}
	e.Front(func(gate http.Handler) http.Handler { return dark(off, gate) })
	dir := t.TempDir()
	text := strings.Replace(e.TargetFile(write(t, filepath.Join(dir, "secret"), vcsim.Password)), "allow:\n", "allow:\n  overrides: [controller, redundancy]\n", 1)
	return site{file: write(t, filepath.Join(dir, "target.yml"), text), template: "ubuntu1604", off: off, left: func() (names []string) {
		e.State.Read(func(d *state.Data) {
			for _, vm := range d.VMs {
				names = append(names, vm.Name)
			}
		})
		return names
	}}
}

func outageOfCluster(t *testing.T) site {
	s := kubetest.New(t, "node-1", "node-2")
	var dead atomic.Bool // node-1 does not boot
	bmcs, off := bmcsOf(t, clusterUUID, func(i int, on bool) { s.SetNode(fmt.Sprint("node-", i+1), on && (i > 0 || !dead.Load())) })
	kubetest.Front(s, func(server http.Handler) http.Handler { return dark(off, server) })
	dir := t.TempDir()
	token, secret := write(t, filepath.Join(dir, "token"), s.Token), write(t, filepath.Join(dir, "secret"), "secret")
	file := write(t, filepath.Join(dir, "target.yml"), fmt.Sprintf("provider: kubernetes\nname: simulated\nendpoint: %q\ntls: unverified\npool: fast\n%s"+
		"credentials: {platform: {secret: {file: %q}}, bmc: {user: bragg, secret: {file: %q}}}\n"+
		"options: {namespace: %s, image: \"bragg-agent:test\", agents: direct}\nallow: {node_power: true, overrides: [controller, redundancy]}\n",
		s.URL, lines(bmcs, func(i int) string { return fmt.Sprintf("uuid: %s, ", clusterUUID(i)) }), token, secret, kubetest.Namespace))
	return site{file: file, template: "any", off: off, left: func() []string { return kubetest.Left(s) }, bmcs: bmcs, boots: func(yes bool) {
		dead.Store(!yes)
		s.SetNode("node-1", yes && len(off()) == 0)
	}}
}

// clusterUUID is that of a node of kubetest.
func clusterUUID(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1) }
