package rehearsal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

// soakVariable asks for every scenario on every provider; "make soak" sets it.
const soakVariable = "BRAGG_SOAK_REHEARSALS"

// rehearsal is one scenario and what must have happened.
type rehearsal struct {
	name     string
	scenario string // shipped, or a folder
	set      []string
	length   string
	size     string // of its data; "": 64 MiB
	check    func(*testing.T, *record)
	shell    bool     // it has playbooks
	marks    []string // each is part of a mark on the charts
	soak     bool     // only in a soak
	ssh      bool     // the provider ssh can do it too; in a soak it does
	overSSH  bool     // in a soak it is carried out on libvirt hosts that ssh reaches, too
	// beside acts as another party during the run; the returned function reverts it.
	beside func(t *testing.T, r *rig, runs string) (undo func())
}

func rehearsals(t *testing.T) []rehearsal {
	return []rehearsal{
		{name: "four_corners", scenario: "four_corners", set: []string{"vms_per_node=2"}, length: "15s", check: allCorners,
			ssh: true},
		{name: "node_failure", scenario: "node_failure", set: []string{"scan_vms=1"}, length: "30s", check: nodeLost, ssh: true, overSSH: true,
			marks: []string{"Cutting the power of host-1", "host-1 is off", "host-1 is on"}},
		{name: "migration", scenario: filepath.Join("testdata", "migration"), length: "15s", check: moved, overSSH: true,
			marks: []string{`migrating 1 VMs from node "host-1" to node "host-2"`, "finished migrating 1 VMs"}},
		{name: "strays", scenario: filepath.Join("testdata", "migration"), length: "15s", check: strayed, beside: meddle,
			marks: []string{"Stayers-0001 is on host-2 and no longer on host-1, and no step moved it"}, soak: true},
		{name: "snapshot_impact", scenario: "snapshot_impact", length: "40s", check: loadGoesThrough("OLTP", "vm_group.CreatePeriodicSnapshots"),
			marks: []string{"napshot"}, soak: true, ssh: true},
		{name: "clone_impact", scenario: "clone_impact", set: []string{"desktops_per_node=2"}, length: "40s",
			check: loadGoesOn("OLTP", "vm_group.Grow"), soak: true, ssh: true},
		{name: "clone_impact linked", scenario: "clone_impact", set: []string{"desktops_per_node=2", "linked_clone=true"}, length: "40s",
			check: loadGoesOn("OLTP", "vm_group.Grow"), soak: true, ssh: true},
		{name: "total_power_loss", scenario: "total_power_loss", length: "40s", check: loadIsBack("OLTP", "OLTP Again"),
			marks: []string{"host-1 is off", "host-2 is off", "host-1 is on", "host-2 is on"}, soak: true, ssh: true},
		{name: "rolling_upgrade", scenario: oneCPU(t, "rolling_upgrade"), length: "60s", check: loadGoesOn("OLTP", "nodes.Shutdown"), soak: true},
		{name: "All-Power-Down", scenario: corpus(t, "garyjlittle/All-Power-Down"), length: "40s",
			check: loadIsBack("OLTP", "OLTP_POST"), soak: true, ssh: true, // it does not wait for nodes to be off
			marks: []string{"Cutting the power of host-1", "Cutting the power of host-2", "host-1 is on", "host-2 is on"}},
	}
}

// oneCPU copies a shipped scenario, with VMs of one vCPU: guests with several often do not survive a live migration under load by the
// emulation of QEMU 7.2.
func oneCPU(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "..", "scenarios", name))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "test.yml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), "vcpus: 4", "vcpus: 1")
	if changed == string(text) {
		t.Fatalf("%s has no VMs of 4 vCPUs", name)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// corpus is the path of a public scenario of X-Ray's, where a soak needs it.
func corpus(t *testing.T, name string) string {
	if os.Getenv(soakVariable) == "" {
		return ""
	}
	return testreq.Corpus(t, filepath.Join("xray", name))
}

// TestRehearsalsOnGuests carries scenarios out on guests that boot, while hosts lose power and guests move.
func TestRehearsalsOnGuests(t *testing.T) {
	if testing.Short() {
		t.Skip("guests boot, and loads run for minutes")
	}
	r := newRig(t)
	run := func(name string, soak bool, test func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			if soak {
				testreq.Soak(t, soakVariable, "guests boot and loads run for minutes")
			}
			test(t)
		})
	}
	for _, c := range rehearsals(t) {
		run(c.name, c.soak, func(t *testing.T) { r.rehearse(t, c, "libvirt") })
		if c.ssh {
			run(c.name+" over ssh", true, func(t *testing.T) { r.rehearse(t, c, "ssh") })
		}
		if c.overSSH {
			run(c.name+" on "+overSSH, true, func(t *testing.T) { r.rehearse(t, c, overSSH) })
		}
	}
	for _, c := range failures() {
		run(c.name, true, func(t *testing.T) { r.survive(t, c) })
	}
}

func (r *rig) rehearse(t *testing.T, c rehearsal, provider string) {
	runs := filepath.Join(t.TempDir(), "runs")
	args := []string{"run", c.scenario, "--target", r.target(t, provider), "--runs", runs, "--rehearse", c.length,
		"--rehearse-size", cmp.Or(c.size, "64MiB"), "--max-full", "99", "--json"}
	for _, s := range c.set {
		args = append(args, "--set", s)
	}
	if c.shell {
		args = append(args, "--allow-shell")
	}
	undo := func() {}
	if c.beside != nil {
		undo = c.beside(t, r, runs)
	}
	code, stdout, stderr := r.command(t, args...)
	undo()
	if code != 0 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	dirs, err := filepath.Glob(filepath.Join(runs, "*", "manifest.json"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("bundles: %q, %v\n%s%s", dirs, err, stdout, stderr)
	}
	rec := read(t, filepath.Dir(dirs[0]), result.EndedCompleted)
	c.check(t, rec)
	marks := r.marks(t, filepath.Dir(dirs[0]))
	for _, want := range c.marks {
		if !slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(m, want) }) {
			t.Errorf("no mark %q on the charts, only %q", want, marks)
		}
	}
	r.leftovers(t, runs)
	if t.Failed() {
		t.Logf("%s%s", stdout, stderr)
		for _, e := range rec.events {
			t.Log(e)
		}
	}
}

// marks are the labels of what the report draws on the charts' time axis, at moments within the run.
func (r *rig) marks(t *testing.T, dir string) []string {
	t.Helper()
	var report struct {
		Ended         string
		DurationNanos int64 `json:"duration_ns"`
		Marks         []struct {
			At    int64 `json:"at_ns"`
			Label string
		}
		Results []struct {
			Name   string
			Series []json.RawMessage
		}
	}
	text := r.must(t, "report", dir, "--format", "json")
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, m := range report.Marks {
		if m.At <= 0 || m.At > report.DurationNanos {
			t.Errorf("mark %q is at %d ns of a run of %d", m.Label, m.At, report.DurationNanos)
		}
		labels = append(labels, m.Label)
	}
	for _, res := range report.Results {
		if len(res.Series) == 0 {
			t.Errorf("result %q has nothing to draw", res.Name)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range labels {
		if quoted, _ := json.Marshal(label); !strings.Contains(string(page), string(quoted)) {
			t.Errorf("the page does not draw %q", label)
		}
	}
	return labels
}

// record is what a bundle holds.
type record struct {
	dir       string // of the bundle
	events    []interval.Event
	intervals []interval.Interval
	samples   []result.Sample
	provider  string
	summary   result.Summary
}

// read wants a sealed and whole bundle of a run that ended so.
func read(t *testing.T, dir, ended string) *record {
	t.Helper()
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.State() != result.StateSealed {
		t.Errorf("the bundle is %q", b.State())
	}
	if err := b.VerifySeal(); err != nil {
		t.Error(err)
	}
	if b.Manifest().Rehearsal == nil {
		t.Error("the manifest does not say that this was a rehearsal")
	}
	rec := &record{dir: dir, provider: b.Manifest().Target.Provider}
	if rec.summary, err = b.Summary(); err != nil {
		t.Fatal(err)
	}
	if rec.summary.Ended != ended {
		t.Errorf("the run %s: %s", rec.summary.Ended, rec.summary.Reason)
	}
	for e, err := range b.Events() {
		if err != nil {
			t.Fatal(err)
		}
		rec.events = append(rec.events, e)
	}
	for iv, err := range b.Intervals() {
		if err != nil {
			t.Fatal(err)
		}
		rec.intervals = append(rec.intervals, iv)
	}
	for s, err := range b.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		rec.samples = append(rec.samples, s)
	}
	return rec
}

// step returns when the first step of that name began and the last one ended, and wants that all did without an error.
func (rec *record) step(t *testing.T, name string) (from, to int64) {
	t.Helper()
	from, to = -1, -1
	for _, e := range rec.events {
		switch {
		case e.Step != name:
		case e.Kind == interval.EventStepStarted && from < 0:
			from = e.AtNanos
		case e.Kind == interval.EventStepEnded:
			to = e.AtNanos
			if e.Error != "" {
				t.Errorf("%s: %s", name, e.Error)
			}
		}
	}
	if from < 0 || to < from {
		t.Errorf("step %s was not carried out", name)
	}
	return from, to
}

// done counts operations and errors of a workload proper on each VM, in intervals that lie within a span of time.
func (rec *record) done(workload string, from, to int64) (operations, errors map[string]uint64) {
	return rec.count(workload, func(iv *interval.Interval) bool { return iv.StartNanos >= from && iv.EndNanos() <= to })
}

// during counts them in intervals that have a part of the span: what happens in it may be over in less than a second.
func (rec *record) during(workload string, from, to int64) (operations, errors map[string]uint64) {
	return rec.count(workload, func(iv *interval.Interval) bool { return iv.EndNanos() > from && iv.StartNanos < to })
}

func (rec *record) count(workload string, counts func(*interval.Interval) bool) (operations, errors map[string]uint64) {
	operations, errors = map[string]uint64{}, map[string]uint64{}
	for i := range rec.intervals {
		iv := &rec.intervals[i]
		if iv.Workload != workload || iv.Prefill || !counts(iv) {
			continue
		}
		for j := range iv.Directions {
			d := &iv.Directions[j]
			operations[iv.VM] += d.Operations
			errors[iv.VM] += d.ErrorCount()
		}
	}
	return operations, errors
}

const ever = int64(1) << 62

// allCorners wants every load on all four VMs, and no errors.
func allCorners(t *testing.T, rec *record) {
	for _, workload := range []string{"Random Read", "Sequential Read", "Random Write", "Sequential Write"} {
		operations, errors := rec.done(workload, 0, ever)
		working(t, workload, operations, errors, 4)
	}
}

// working wants operations on that many VMs, and no errors.
func working(t *testing.T, workload string, operations, errors map[string]uint64, vms int) {
	t.Helper()
	count := 0
	for vm, n := range operations {
		if n > 0 {
			count++
		}
		if errors[vm] > 0 {
			t.Errorf("%s on %s: %d errors", workload, vm, errors[vm])
		}
	}
	if count < vms {
		t.Errorf("%s: operations %v, want some on %d VMs", workload, operations, vms)
	}
}

// nodeLost wants the databases of both nodes before the cut, and that of one alone while the node is off and when it is
// back. A tenant of the other node scans all the time.
func nodeLost(t *testing.T, rec *record) {
	cut, off := rec.step(t, "nodes.PowerOff")
	on, back := rec.step(t, "nodes.PowerOn")
	for _, span := range []struct {
		name      string
		from, to  int64
		databases int
	}{{"before the cut", 0, cut, 2}, {"without the node", off, on, 1}, {"when the node is back", back, ever, 1}} {
		operations, errors := rec.done("OLTP", span.from, span.to)
		working(t, "OLTP "+span.name, operations, errors, span.databases)
		operations, errors = rec.done("Scan", span.from, span.to)
		working(t, "Scan "+span.name, operations, errors, 1)
	}
	operations, _ := rec.done("OLTP", off, ever)
	if operations["OLTP-0001"] > 0 {
		t.Errorf("the VM that lost its power did %d operations afterwards", operations["OLTP-0001"])
	}
	if rec.provider == "libvirt" {
		unmetered(t, rec, "OLTP-0001", off, on)
	}
}

// moved wants the VM's node changed, and load on it before, and after the migration without errors.
func moved(t *testing.T, rec *record) {
	from, to := rec.step(t, "vm_group.MigrateGroup")
	var nodes []string
	for _, e := range rec.events {
		if e.Kind == interval.EventPlaced && e.Subject == "Movers-0001" {
			nodes = append(nodes, e.Node)
		}
	}
	if nodes = slices.Compact(nodes); len(nodes) != 2 {
		t.Errorf("Movers-0001 was on nodes %q, want two", nodes)
	}
	for _, span := range [][2]int64{{0, from}, {to, ever}} {
		operations, errors := rec.done("Movers", span[0], span[1])
		working(t, "Movers", operations, errors, 1)
	}
	operations, errors := rec.done("Movers", 0, ever)
	working(t, "Movers", operations, errors, 1)
	operations, errors = rec.during("Stayers", from, to)
	working(t, "Stayers during the migration", operations, errors, 2)
	for _, vm := range []string{"Stayers-0001", "Stayers-0002"} {
		metersAgree(t, rec, vm)
	}
	modest(t, rec, "Movers-0001", 1e9)
}

// loadGoesOn wants the load on both VMs before a step and after it, without errors.
func loadGoesOn(workload, step string) func(*testing.T, *record) {
	return func(t *testing.T, rec *record) {
		from, to := rec.step(t, step)
		for _, span := range [][2]int64{{0, from}, {to, ever}} {
			operations, errors := rec.done(workload, span[0], span[1])
			working(t, workload, operations, errors, 2)
		}
	}
}

// loadGoesThrough wants the load on both VMs while a step lasts that begins with it, and after it, without errors.
func loadGoesThrough(workload, step string) func(*testing.T, *record) {
	return func(t *testing.T, rec *record) {
		from, to := rec.step(t, step)
		for _, span := range [][2]int64{{from, to}, {to, ever}} {
			operations, errors := rec.done(workload, span[0], span[1])
			working(t, workload, operations, errors, 2)
		}
	}
}

// loadIsBack wants a load on both VMs before all power is cut, none of it in the dark, and another one afterwards.
func loadIsBack(before, after string) func(*testing.T, *record) {
	return func(t *testing.T, rec *record) {
		cut, off := rec.step(t, "nodes.PowerOff")
		on, back := rec.step(t, "nodes.PowerOn")
		operations, errors := rec.done(before, 0, cut)
		working(t, before, operations, errors, 2)
		if operations, _ := rec.done(before, off, on); len(operations) > 0 {
			t.Errorf("operations without power: %v", operations)
		}
		operations, errors = rec.done(after, back, ever)
		working(t, after, operations, errors, 2)
		rec.recovered(t)
	}
}

// recovered wants a moment for every milestone that the run itself causes: it turns nodes and VMs on again, and asks for no agent
// of a VM that it keeps off.
func (rec *record) recovered(t *testing.T) {
	t.Helper()
	if rec.summary.Durations == nil || len(rec.summary.Durations.Recoveries) == 0 {
		t.Fatal("the report has no recovery")
	}
	for _, r := range rec.summary.Durations.Recoveries {
		var said []string
		for _, p := range r.Phases {
			at := "unknown: " + p.Unknown
			if p.AtNanos != nil {
				at = fmt.Sprintf("%v after, at most %v earlier", time.Duration(*p.AtNanos-r.FromNanos).Round(time.Millisecond),
					time.Duration(p.UncertainNanos).Round(time.Millisecond))
			} else if p.Name == "power-on command" || p.Name == "VM up" || p.Name == "first I/O" {
				t.Errorf("%s, %s: %s", r.Node, p.Name, p.Unknown)
			}
			said = append(said, p.Name+" "+at)
		}
		t.Logf("%s lost power at %v: %s", r.Node, time.Duration(r.FromNanos).Round(time.Millisecond), strings.Join(said, "; "))
	}
}
