package session_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/lab/chassis"
	"github.com/braggdev/bragg/internal/lab/labtest"
	"github.com/braggdev/bragg/internal/testreq"
)

// labPlaces are the failpoints at which the program can die while it works on libvirt hosts. The guest does not matter
// here: a domain whose firmware finds no boot device is enough.
func labPlaces() []string {
	return []string{
		"lease.ask", "lease.held", "session.journalled", "run.start", "vms.create", "vms.created", "vms.clone", "vms.cloned",
		"vms.power-on", "vms.powered-on", "node.power-off", "node.power-on", "node.powered-on", "phase.teardown",
		"undo.power", "undo.vms", "undo.done", "session.release",
	}
}

// TestDeathOnALab kills the controller of hosts with libvirt at places chosen by a seed; TestOutage does so in outages. Cleaning leaves no domain, no volume, no lease and no host without power.
func TestDeathOnALab(t *testing.T) {
	if testing.Short() {
		t.Skip("a lab of two hosts")
	}
	t.Parallel() // it waits most of the time: a BMC may carry out a command of the dead controller late
	l, file, agents := newLibvirtLab(t)
	before := leftOnLab(t, l)
	for _, name := range drawn(t, labPlaces(), 1) {
		t.Run(name, func(t *testing.T) {
			runs := filepath.Join(t.TempDir(), "runs")
			folder := "lab"
			if strings.HasPrefix(name, "vms.power") {
				folder = "labguests"
			}
			dieOf(t, filepath.Join("testdata", folder), runs, name, dieTarget+"="+file, agentDir+"="+agents)
			cleanAll(t, runs, nil)
			for _, h := range l.Hosts {
				if err := l.WaitUp(t.Context(), h.Name); err != nil {
					t.Fatal(err)
				}
			}
			if left := leftOnLab(t, l); !slices.Equal(left, before) {
				t.Errorf("before the run there was %q, now %q", before, left)
			}
			checkFiles(t, runs)
		})
	}
}

// newLibvirtLab makes a lab of two hosts with a template that boots nothing, a target file for it, and a folder with an agent that is
// never started: seeds contain one.
func newLibvirtLab(t *testing.T) (l *lab.Lab, file, agents string) {
	t.Helper()
	image := testreq.Program(t, "qemu-img")
	blank := filepath.Join(t.TempDir(), "blank.qcow2")
	if out, err := exec.Command(image, "create", "-q", "-f", "qcow2", blank, "1M").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(agents, "bragg-agent"), []byte("no guest boots"), 0o700); err != nil {
		t.Fatal(err)
	}
	l = labtest.New(t, lab.Options{Templates: map[string]string{"blank": blank}})
	// The accelerator of the machine is not under test, and detecting it takes one guest per run.
	text := strings.Replace(l.TargetFiles()[0].Text, "options:\n", "options:\n  accelerator: tcg\n", 1)
	return l, write(t, filepath.Join(t.TempDir(), "target.yml"), text), agents
}

// leftOnLab lists the remains on the hosts, and the hosts that are off.
func leftOnLab(t *testing.T, l *lab.Lab) []string {
	t.Helper()
	states, err := l.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for i, s := range states {
		if s.Power != chassis.PowerOn {
			left = append(left, s.Name+" is "+string(s.Power))
			continue
		}
		for _, kind := range [][]string{{"list", "--all", "--name"}, {"secret-list"}, {"net-list", "--all", "--name"}, {"pool-list", "--all", "--name"}} {
			out, err := exec.Command("virsh", append([]string{"-q", "-c", l.Hosts[i].URI()}, kind...)...).CombinedOutput()
			if err != nil {
				left = append(left, s.Name+" does not answer: "+string(out))
				break
			}
			left = append(left, s.Name+" "+kind[0]+" "+strings.Join(strings.Fields(string(out)), " "))
		}
	}
	volumes, err := filepath.Glob(filepath.Join(l.PoolDir(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range testreq.ProcessesNaming(t, l.PoolDir()) {
		left = append(left, "process "+process)
	}
	return append(left, volumes...)
}
