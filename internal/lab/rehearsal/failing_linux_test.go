package rehearsal

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

const (
	doomed   = "Doomed-0001"
	survivor = "Doomed-0002"
)

// failing is a way in which a VM of a run fails that is none of the run's own.
type failing struct {
	name, provider, length string
	fail                   func(r *rig, t *testing.T)
	why                    string // part of the load's error
	event                  interval.EventKind
	finding                string
}

// failures need minutes each: a run waits for a VM that is silent. Providers and agents have short tests of them.
func failures() []failing {
	return []failing{
		{name: "a VM's kernel panics", provider: "libvirt", length: "60s", fail: (*rig).panicGuest, why: "crashed", event: interval.EventVMStopped,
			finding: "vm-stopped"},
		{name: "a VM's agent is frozen", provider: "ssh", length: "30s", fail: (*rig).freezeAgent, why: "silent for", event: interval.EventAgentSilent,
			finding: "run-incomplete"},
	}
}

// failingAfter is how long a VM has load before it fails.
const failingAfter = 5 * time.Second

// survive makes one of two VMs fail under load: the report has the reason, no step exceeds its timeout for it, and the other
// VM's figures are kept.
func (r *rig) survive(t *testing.T, c failing) {
	runs := filepath.Join(t.TempDir(), "runs")
	ctx, end := context.WithCancel(t.Context())
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		if awaitLoad(ctx, runs) {
			time.Sleep(failingAfter)
			c.fail(r, t)
		}
	}()
	code, stdout, stderr := r.command(t, "run", filepath.Join("testdata", "doomed"), "--target", r.target(t, c.provider), "--runs", runs,
		"--rehearse", c.length, "--rehearse-size", "64MiB", "--max-full", "99", "--json")
	end()
	<-failed
	if code != 3 { // incomplete
		t.Errorf("exit code %d", code)
	}
	dirs, err := filepath.Glob(filepath.Join(runs, "*", "manifest.json"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("bundles: %q, %v\n%s%s", dirs, err, stdout, stderr)
	}
	rec := read(t, filepath.Dir(dirs[0]), result.EndedFailed)
	at := rec.reported(t, c)
	operations, errors := rec.done("Writes", at, ever)
	if operations[survivor] == 0 || errors[survivor] > 0 || operations[doomed] > 0 {
		t.Errorf("afterwards operations %v, errors %v: want some on %s alone", operations, errors, survivor)
	}
	if operations, _ := rec.done("Writes", 0, at); operations[doomed] == 0 {
		t.Error("what the VM did before it failed is lost")
	}
	_, text, _ := r.command(t, "report", filepath.Dir(dirs[0]), "--format", "json")
	if !strings.Contains(text, strconv.Quote(c.finding)) {
		t.Errorf("the report has no finding %q", c.finding)
	}
	r.leftovers(t, runs)
	if t.Failed() {
		t.Logf("%s%s", stdout, stderr)
		for _, e := range rec.events {
			t.Log(e)
		}
	}
}

// reported checks the event, and that the step and the load ended with the reason. It returns the time of the event.
func (rec *record) reported(t *testing.T, c failing) int64 {
	t.Helper()
	at := int64(-1)
	load, step := "", ""
	for _, e := range rec.events {
		switch {
		case e.Kind == c.event && e.Subject == doomed:
			at = e.AtNanos
		case e.Kind == interval.EventDisturbance && e.Subject == doomed:
			load = e.Error
		case e.Kind == interval.EventStepEnded && e.Step == "workload.Stop":
			step = e.Error
		}
	}
	if at < 0 {
		t.Errorf("no event %q", c.event)
	}
	for what, text := range map[string]string{"load": load, "step": step} {
		if !strings.Contains(text, doomed) || !strings.Contains(text, c.why) {
			t.Errorf("the %s ended with %q, want %q and the name of the VM", what, text, c.why)
		}
	}
	return at
}

// panicGuest sends the guest an NMI that no device explains, at which the kernel of its template panics.
func (r *rig) panicGuest(t *testing.T) {
	for _, h := range r.Hosts {
		for domain := range strings.FieldsSeq(r.virsh(t, h, "list", "--name")) {
			if strings.Contains(domain, doomed) {
				r.virsh(t, h, "inject-nmi", domain)
				return
			}
		}
	}
	t.Errorf("no domain of %s", doomed)
}

// freezeAgent stops the agent's process, in the lab's own network namespaces.
func (r *rig) freezeAgent(t *testing.T) {
	network := func(process string) string {
		id, _, _ := strings.Cut(process, " ")
		name, _ := os.Readlink(filepath.Join("/proc", id, "ns", "net"))
		return name
	}
	var ours []string
	for _, p := range testreq.ProcessesNaming(t, r.Dir) {
		ours = append(ours, network(p))
	}
	own, _ := os.Readlink("/proc/self/ns/net")
	for _, p := range testreq.ProcessesNaming(t, doomed) {
		id, _, _ := strings.Cut(p, " ")
		pid, err := strconv.Atoi(id)
		if n := network(p); err == nil && n != own && n != "" && slices.Contains(ours, n) && strings.Contains(p, "agent") {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Errorf("no agent of %s", doomed)
}
