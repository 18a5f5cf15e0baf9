package builtin_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/lab/labtest"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/trust"
)

// open opens a target of the lab as a program of its own does.
func open(t *testing.T, file string, authority *trust.Authority) target.Target {
	t.Helper()
	l, err := builtin.Open(t.Context(), file, target.OpenOptions{Dir: t.TempDir(), Authority: authority,
		AgentProgram: func(string) (string, error) { return os.Executable() }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// A host is one machine through whichever provider it is reached: who has it over ssh keeps away who comes by libvirt, and the
// other way round. Hosts of a lab share a kernel, and are machines of their own all the same. VMs of others are foreseen.
func TestMachineOfTwoProviders(t *testing.T) {
	if testing.Short() {
		t.Skip("a lab of two hosts")
	}
	l := labtest.New(t, lab.Options{SSH: true})
	files := map[string]string{}
	for _, f := range l.TargetFiles() {
		files[f.Provider+f.Connect] = f.Path
	}
	authority, err := trust.New("run", 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	hosts, hypervisors := open(t, files["ssh"], authority), open(t, files["libvirtsocket"], nil)
	take := func(l target.Target, run string) target.Lock {
		t.Helper()
		lock, err := l.(target.Locker).Lock(t.Context(), lease.NewHolder(run, 0))
		if err != nil {
			t.Fatal(err)
		}
		return lock
	}
	refused := func(l target.Target, by string) {
		t.Helper()
		lock, err := l.(target.Locker).Lock(t.Context(), lease.NewHolder("late", 0))
		var held *lease.HeldError
		if !errors.As(err, &held) || held.By.Run != by {
			t.Errorf("got %v, %v; want it held by %q", lock, err, by)
		}
		if err == nil {
			_ = lock.Unlock()
		}
	}
	first := take(hosts, "over ssh")
	refused(hypervisors, "over ssh")
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	second := take(hypervisors, "by libvirt")
	refused(hosts, "by libvirt")
	if err := second.Unlock(); err != nil {
		t.Fatal(err)
	}
	// One host alone: the other is another machine.
	half := strings.Replace(read(t, files["ssh"]), nodeText(t, files["ssh"], 1), "", 1)
	other := strings.Replace(read(t, files["libvirtsocket"]), nodeText(t, files["libvirtsocket"], 0), "", 1)
	left, right := open(t, write(t, half), authority), open(t, write(t, other), nil)
	one, two := take(left, "the first host"), take(right, "the second host")
	if err := errors.Join(one.Unlock(), two.Unlock()); err != nil {
		t.Fatal(err)
	}
	foresees(t, hosts, hypervisors, l)
}

// foresees wants agents on a host and guests of it to be counted by both providers.
func foresees(t *testing.T, hosts, hypervisors target.Target, l *lab.Lab) {
	t.Helper()
	node := l.Hosts[0].UUID
	seen := func(at target.Target) string {
		t.Helper()
		found, err := at.(target.PowerCutForeseer).Foresee(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(found.Foreign, ", ")
	}
	if got := seen(hypervisors); got != "" {
		t.Errorf("on an empty host there is %q", got)
	}
	tag := targettest.NewTag("run-1")
	vms, err := hosts.Create(t.Context(), tag, []target.VMSpec{{Name: "A", NodeID: node, VCPUs: 1, DiskBytes: []int64{1 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := hosts.(target.VMPower).PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	later := open(t, filepath.Join(l.Dir, "ssh.yml"), nil)
	if got := seen(later); !strings.Contains(got, "bragg's VM") {
		t.Errorf("of the agent of another run a program sees %q", got)
	}
	if err := hosts.Delete(t.Context(), tag, vms); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// nodeText is the entry of a node in a target file.
func nodeText(t *testing.T, file string, index int) string {
	t.Helper()
	parts := strings.Split(read(t, file), "  - id: ")
	text := "  - id: " + parts[1+index]
	for _, end := range []string{"\npool:", "\ntemplates:"} {
		if i := strings.Index(text, end); i >= 0 {
			text = text[:i+1]
		}
	}
	return text
}
